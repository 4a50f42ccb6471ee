"""Objects: put, get, refs, futures, large values."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import threading

import numpy as np
import oxiray as ray
import pytest
from conftest import is_alive, wait_until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oxiray.exceptions import GetTimeoutError

pytestmark = pytest.mark.usefixtures("cluster")

MB = 1 << 20


@ray.remote
def identity(value):
    return value


@ray.remote
def wait_for(gate):
    gate.wait()
    return "open"


def test_put_and_get():
    ref = ray.put({"a": [1, 2]})
    assert ray.get(ref) == {"a": [1, 2]}
    assert ray.get(ref) == {"a": [1, 2]}


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=values)
def test_any_value_comes_back(value):
    assert ray.get(ray.put(value)) == value
    assert ray.get(identity.remote(value)) == value


def test_get_of_a_list_keeps_its_order_and_duplicates():
    a, b = ray.put("a"), ray.put("b")
    assert ray.get([b, a, b]) == ["b", "a", "b"]
    assert ray.get([]) == []


def test_a_value_is_a_copy():
    value = [1]
    ref = ray.put(value)
    value.append(2)
    assert ray.get(ref) == [1]


@pytest.mark.parametrize("size", [0, 1, 1000, 100_000, 8 * MB])
def test_arrays(size):
    array = np.arange(size, dtype=np.uint8)
    got = ray.get(identity.remote(ray.put(array)))
    np.testing.assert_array_equal(got, array)
    assert got.dtype == array.dtype


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(600_000.0).reshape(1000, 600)),
        np.arange(1_200_000.0).reshape(1000, 1200)[::2, ::3],
        np.array([object, None, "x"], dtype=object),
        np.array("2026-11-15", dtype="datetime64[D]"),
        np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]),
    ],
    ids=["fortran", "strided", "objects", "datetime", "record"],
)
def test_arrays_of_every_layout(array):
    np.testing.assert_array_equal(ray.get(identity.remote(array)), array)


def test_large_arrays_are_views_and_read_only():
    got = ray.get(ray.put(np.ones(4 * MB)))
    assert not got.flags.writeable
    assert not got.flags.owndata


def test_a_view_outlives_its_ref():
    got = ray.get(ray.put(np.full(MB, 7.0)))
    fill = [ray.put(np.zeros(MB)) for _ in range(8)]
    assert float(got.sum()) == 7.0 * MB
    del fill


def test_large_bytes_and_mixed_values():
    value = {"bytes": b"x" * (5 * MB), "array": np.ones(MB), "text": "y" * MB, "more": [b"z" * MB]}
    got = ray.get(identity.remote(value))
    assert got["bytes"] == value["bytes"] and got["text"] == value["text"]
    assert got["more"] == value["more"]
    np.testing.assert_array_equal(got["array"], value["array"])


def test_refs_compare_hash_and_show():
    a, b = ray.put(1), ray.put(1)
    assert a != b and a == a and len({a, b, a}) == 2
    assert a != "something else"
    assert a.hex() == a.binary().hex() and len(a.binary()) == 28
    assert repr(a) == f"ObjectRef({a.hex()})"
    assert not a.is_nil()
    assert ray.ObjectID is ray.ObjectRef and isinstance(a, ray.ObjectID)


def test_ref_inside_a_ref():
    inner = ray.put("deep")
    outer = ray.put({"refs": [inner]})
    del inner
    assert ray.get(ray.get(outer)["refs"][0]) == "deep"


def test_a_returned_ref_outlives_its_task():
    @ray.remote
    def make():
        return [ray.put("made inside")]

    (inner,) = ray.get(make.remote())
    assert ray.get(inner) == "made inside"


def test_a_ref_survives_a_pickle_in_this_process():
    ref = ray.put(3)
    assert pickle.loads(pickle.dumps(ref)) == ref


def test_get_times_out(gate):
    ref = wait_for.remote(gate)
    with pytest.raises(GetTimeoutError) as caught:
        ray.get(ref, timeout=0.05)
    assert isinstance(caught.value, TimeoutError)
    with pytest.raises(GetTimeoutError):
        ray.get([ray.put(1), ref], timeout=0)
    gate.open()
    assert ray.get(ref, timeout=60) == "open"


def test_get_with_a_timeout_returns_at_once_when_ready():
    ref = identity.remote(1)
    ray.wait([ref])
    assert ray.get(ref, timeout=0) == 1


def test_future(gate):
    ref = wait_for.remote(gate)
    future = ref.future()
    assert not future.done()
    gate.open()
    assert future.result(timeout=60) == "open"


def test_future_of_an_error():
    @ray.remote
    def fail():
        raise KeyError("k")

    assert isinstance(fail.remote().future().exception(timeout=60), KeyError)


def test_await():
    async def main():
        first = await identity.remote(1)
        rest = await asyncio.gather(*[identity.remote(i) for i in range(10)])
        return first, rest

    assert asyncio.run(main()) == (1, list(range(10)))


def test_get_in_many_threads():
    ref = ray.put(list(range(1000)))
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(ray.get(ref) == list(range(1000))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8


def test_memory_of_dropped_objects_is_used_again():
    """Ten times the store goes through it: each object must go with its last ref."""
    for _ in range(40):
        ray.put(np.zeros(32 * MB, dtype=np.uint8))


def test_objects_of_user_classes():
    class Matrix:
        def __init__(self, rows):
            self.rows = np.array(rows, dtype=float)

    got = ray.get(identity.remote(Matrix([[1, 2], [3, 4]])))
    assert got.rows.sum() == 10


def test_get_and_wait_keep_the_references_they_wait_for(gate):
    @ray.remote
    def late(i):
        gate.wait()
        return i

    refs = [late.remote(i) for i in range(3)]
    values = []
    getter = threading.Thread(target=lambda: values.append(ray.get(refs)))
    waited = []
    others = [late.remote(i) for i in range(3)]
    waiter = threading.Thread(target=lambda: waited.append(ray.wait(others, num_returns=3)))
    getter.start()
    waiter.start()
    # Each thread has made its copy once somebody besides us counts on the references.
    wait_until(lambda: sys.getrefcount(refs[0]) > 2 and sys.getrefcount(others[0]) > 2)
    refs.clear()
    others.clear()
    gate.open()
    getter.join()
    waiter.join()
    assert values == [[0, 1, 2]] and len(waited[0][0]) == 3


def test_a_failure_is_raised_before_the_rest_is_there(gate):
    @ray.remote
    def late():
        gate.wait()

    @ray.remote
    def fail():
        raise ValueError("at once")

    with pytest.raises(ValueError, match="at once"):
        ray.get([late.remote(), fail.remote()], timeout=30)
    gate.open()


def test_references_outlive_a_worker_that_reached_max_calls():
    @ray.remote(max_calls=1)
    def make():
        return [ray.put("inner")], os.getpid()

    (ref,), pid = ray.get(make.remote())
    assert ray.get(ref) == "inner"
    del ref
    wait_until(lambda: not is_alive(pid))


def test_returns_before_one_that_cannot_be_sent_are_let_go():
    @ray.remote(num_returns=2, max_retries=0)
    def half():
        return bytes(20_000_000), threading.Lock()

    for _ in range(3):
        with pytest.raises(TypeError):
            ray.get(half.remote())
    wait_until(lambda: ray._native.cluster_view()["store_used"] == 0)


def test_get_takes_no_memory_of_its_own(cluster):
    def private():
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))

    ref = ray.put(np.ones(25_000_000, dtype=np.int32))  # 100 MB
    ray.get(ref)
    before = private()
    values = [ray.get(ref) for _ in range(10)]
    assert sum(int(value[::1000].sum()) for value in values) == 10 * 25_000
    assert private() - before < 2_000, "kilobytes"
