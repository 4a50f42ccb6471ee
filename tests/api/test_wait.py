"""`wait`: what is ready, what is not, and in which order."""

from __future__ import annotations

import oxiray as ray
import pytest

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
def now(value=None):
    return value


@ray.remote
def later(gate):
    gate.wait()


def test_ready_and_not_ready(gate):
    fast, slow = now.remote(1), later.remote(gate)
    ready, rest = ray.wait([slow, fast])
    assert ready == [fast] and rest == [slow]
    gate.open()
    assert ray.wait([slow]) == ([slow], [])


def test_num_returns_is_the_most_that_is_returned():
    refs = [now.remote(i) for i in range(5)]
    ray.get(refs)
    ready, rest = ray.wait(refs, num_returns=3)
    assert len(ready) == 3 and len(rest) == 2
    assert sorted([*ready, *rest], key=refs.index) == refs


def test_of_those_that_are_ready_the_first_of_the_list_are_returned():
    refs = [now.remote(i) for i in range(6)]
    for ref in reversed(refs):
        ray.get(ref)
    assert ray.wait(refs, num_returns=2) == (refs[:2], refs[2:])
    backwards = refs[::-1]
    assert ray.wait(backwards, num_returns=2) == (backwards[:2], backwards[2:])


def test_both_lists_keep_the_order_given():
    refs = [now.remote(i) for i in range(20)]
    ready, rest = ray.wait(refs, num_returns=20)
    assert ready == refs and rest == []


def test_timeout_zero_asks_without_waiting(gate):
    slow = later.remote(gate)
    assert ray.wait([slow], timeout=0) == ([], [slow])


def test_timeout_returns_what_is_ready(gate):
    fast, slow = now.remote(), later.remote(gate)
    ray.get(fast)
    assert ray.wait([fast, slow], num_returns=2, timeout=0.05) == ([fast], [slow])


def test_a_failed_task_is_ready():
    @ray.remote
    def fail():
        raise ValueError

    ref = fail.remote()
    assert ray.wait([ref], timeout=60) == ([ref], [])


def test_put_objects_are_ready():
    ref = ray.put(1)
    assert ray.wait([ref], timeout=0) == ([ref], [])


def test_fetch_local_is_accepted():
    ref = now.remote()
    assert ray.wait([ref], fetch_local=False, timeout=60) == ([ref], [])


def test_nothing_to_wait_for():
    assert ray.wait([]) == ([], [])


def test_draining_one_by_one(meeting):
    together = meeting(4)

    @ray.remote
    def attend(i):
        together.attend(i)
        return i

    left = [attend.remote(i) for i in range(4)]
    seen = []
    while left:
        ready, left = ray.wait(left)
        assert len(ready) == 1
        seen += ray.get(ready)
    assert sorted(seen) == [0, 1, 2, 3]


def test_thousand_refs():
    left = [now.remote(i) for i in range(1000)]
    count = 0
    while left:
        ready, left = ray.wait(left)
        count += len(ready)
    assert count == 1000


def test_arguments_by_name():
    """As Ray names them."""
    ref = ray.put(value=5)
    assert ray.get(object_refs=ref) == 5
    assert ray.get(object_refs=[ref], timeout=1) == [5]
    assert ray.wait(ray_waitables=[ref], num_returns=1, timeout=None, fetch_local=False) == (
        [ref],
        [],
    )
    ray.cancel(ray_waitable=now.remote(), force=False, recursive=True)
    with pytest.raises(ValueError, match="_tensor_transport"):
        ray.put(1, _tensor_transport="nccl")
