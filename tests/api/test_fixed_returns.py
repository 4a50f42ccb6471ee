"""Generators with a fixed number of returns: each value is stored as it is made, and kept."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import oxiray as ray
import pytest
from conftest import wait_until
from oxiray import _native
from oxiray.exceptions import RayTaskError, TaskCancelledError

LARGE = 1_000_000


@pytest.fixture(scope="module", autouse=True)
def session():
    ray.shutdown()
    ray.init(num_cpus=2, object_store_memory=200 * LARGE)
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def nothing_leaks():
    before = _native.counts()
    yield
    gc.collect()  # errors that were caught hold the frames that caught them
    wait_until(lambda: _native.counts() <= before, 20, f"{_native.counts()}, before {before}")


def numbers(count, size, error_at=None):
    for number in range(count):
        if number == error_at:
            raise KeyError("in the middle")
        yield np.full(size, number, np.uint8)


class Plain:
    def numbers(self, *args):
        yield from numbers(*args)


class Async(Plain):
    async def nothing(self):
        pass


KINDS = ["task", "actor", "threads", "loop"]


@pytest.fixture(scope="module", params=KINDS)
def make(session, request):
    """Calls the generator as a task, or as a method of an actor of each kind."""
    if request.param == "task":
        yield ray.remote(numbers)
        return
    cls = Async if request.param == "loop" else Plain
    limit = 2 if request.param == "threads" else None
    options = {} if limit is None else {"max_concurrency": limit}
    actor = ray.remote(cls).options(**options).remote()
    yield actor.numbers
    ray.kill(actor)


@pytest.mark.parametrize("size", [1, LARGE])
def test_values_are_the_returns(make, size):
    refs = make.options(num_returns=3).remote(3, size)
    assert [value[0] for value in ray.get(refs)] == [0, 1, 2]
    assert ray.get(make.options(num_returns=1).remote(1, size))[0] == 0


@pytest.mark.parametrize("size", [1, LARGE])
def test_what_was_made_before_an_error_is_kept(make, size):
    refs = make.options(num_returns=4).remote(4, size, 2)
    assert [ray.get(ref)[0] for ref in refs[:2]] == [0, 1]
    for ref in refs[2:]:
        with pytest.raises(KeyError, match="in the middle") as caught:
            ray.get(ref)
        assert isinstance(caught.value, RayTaskError)


def test_too_few_are_an_error_of_those_that_lack(make):
    refs = make.options(num_returns=3).remote(2, 1)
    assert [ray.get(ref)[0] for ref in refs[:2]] == [0, 1]
    with pytest.raises(ValueError, match=r"Task returned 2 objects, but num_returns=3\."):
        ray.get(refs[2])
    with pytest.raises(ValueError, match=r"Task returned 0 objects, but num_returns=1\."):
        ray.get(make.options(num_returns=1).remote(0, 1))


def test_too_many_are_let_go_and_told(make, capfd):
    # As in Ray: there is no reference left by which it could be raised.
    refs = make.options(num_returns=2).remote(3, 1)
    assert [value[0] for value in ray.get(refs)] == [0, 1]
    said = []

    def is_said():
        said.append(capfd.readouterr().err)
        return "Task returned more than num_returns=2 objects." in "".join(said)

    wait_until(is_said, 10, "".join(said))


def test_an_error_after_the_last_value_is_told(capfd):
    @ray.remote(num_returns=2, max_retries=3, retry_exceptions=True)
    def pair():
        yield 1
        yield 2
        raise KeyError("too late")

    assert ray.get(pair.remote()) == [1, 2]
    said = []

    def is_said():
        said.append(capfd.readouterr().err)
        return "too late" in "".join(said)

    wait_until(is_said, 10, "".join(said))


def test_a_value_that_cannot_be_pickled_fails_the_rest():
    @ray.remote(num_returns=3)
    def mixed(as_list):
        values = [1, threading.Lock(), 3]
        return values if as_list else (value for value in values)

    for as_list in (True, False):
        first, *rest = mixed.remote(as_list)
        assert ray.get(first) == 1
        for ref in rest:
            with pytest.raises(TypeError, match="lock"):
                ray.get(ref)


def test_a_list_of_another_length_fails_all():
    @ray.remote(num_returns=3)
    def two():
        return [1, 2]

    for ref in two.remote():
        with pytest.raises(ValueError, match=r"Task returned 2 objects, but num_returns=3\."):
            ray.get(ref)


def test_refs_in_what_was_made_are_kept():
    @ray.remote(num_returns=2)
    def boxed():
        yield [ray.put("inside")]
        raise KeyError("in the middle")

    box, failed = boxed.remote()
    [inner] = ray.get(box)
    del box
    assert ray.get(inner) == "inside"
    with pytest.raises(KeyError, match="in the middle"):
        ray.get(failed)


def test_a_worker_holds_one_value_at_a_time():
    @ray.remote(num_returns=3)
    def watched():
        first = np.zeros(LARGE, np.uint8)
        is_held = weakref.ref(first)
        yield first
        del first
        yield np.zeros(LARGE, np.uint8)
        yield is_held() is not None

    assert not ray.get(watched.remote()[2])


def test_retried_from_the_beginning(tmp_path):
    path = str(tmp_path / "attempts")

    @ray.remote(num_returns=3, max_retries=2, retry_exceptions=[OSError])
    def fails_once():
        with open(path, "a") as file:
            file.write("x")
        has_failed = len(open(path).read()) > 1
        yield np.zeros(LARGE, np.uint8)
        if not has_failed:
            raise OSError("once")
        yield 1
        yield 2

    first, second, third = fails_once.remote()
    assert (ray.get(first)[0], ray.get(second), ray.get(third)) == (0, 1, 2)
    assert open(path).read() == "xx"


def test_retries_that_are_used_up_leave_what_was_made():
    @ray.remote(num_returns=2, max_retries=1, retry_exceptions=True)
    def fails():
        yield "made"
        raise OSError("always")

    made, failed = fails.remote()
    assert ray.get(made) == "made"
    with pytest.raises(OSError, match="always"):
        ray.get(failed)


def test_cancelled_in_the_middle(tmp_path):
    path = tmp_path / "runs"

    @ray.remote(num_returns=2)
    def slow():
        yield np.zeros(LARGE, np.uint8)
        path.touch()
        while True:
            time.sleep(0.01)

    refs = slow.remote()
    wait_until(path.exists, 20)
    ray.cancel(refs[0])
    for ref in refs:
        with pytest.raises(TaskCancelledError):
            ray.get(ref)


def test_none_of_them_are_wanted(tmp_path):
    path = tmp_path / "ran"

    @ray.remote(num_returns=0)
    def nothing():
        path.touch()
        return (value for value in [1])

    assert nothing.remote() is None
    wait_until(path.exists, 20)


@pytest.mark.parametrize("num_returns", [1, 2])
def test_async_generators_are_streams_only(num_returns):
    class Yields:
        async def numbers(self):
            yield 1

    actor = ray.remote(Yields).remote()
    refs = actor.numbers.options(num_returns=num_returns).remote()
    with pytest.raises(TypeError, match=r"async generator .* Leave num_returns out"):
        ray.get(refs if num_returns == 1 else refs[0])
    ray.kill(actor)
