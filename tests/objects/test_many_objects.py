"""Many objects in one call, one value, one get; and large ones that are stored once."""

from __future__ import annotations

import numpy as np
import oxiray as ray
import pytest
from conftest import wait_until
from storehouse import MB, blob, digest, expect_empty, used, view

MANY = 10_000


@pytest.fixture(scope="module", autouse=True)
def session():
    ray.shutdown()
    with ray.init(num_cpus=2, object_store_memory=300 * MB, logging_level="error"):
        yield
        expect_empty()


@ray.remote
def same(value):
    return value


@ray.remote
def total(*values):
    return sum(values)


def test_get_of_many_puts_and_results():
    assert ray.get([ray.put(i) for i in range(MANY)]) == list(range(MANY))
    assert ray.get([same.remote(i) for i in range(MANY)]) == list(range(MANY))


def test_get_of_many_from_the_store():
    """All of them are views at the same time, from several processes."""
    count = 500
    refs = [ray.put(blob(i, 120_000)) for i in range(count)]
    refs += [make.remote(i, 120_000) for i in range(count)]
    values = ray.get(refs)
    assert [digest(value) for value in values] == 2 * [
        digest(blob(i, 120_000)) for i in range(count)
    ]
    assert view()["store_objects"] >= 2 * count
    del values, refs
    expect_empty()


@ray.remote
def make(seed, size):
    return blob(seed, size)


def test_many_refs_as_arguments():
    refs = [same.remote(i) for i in range(MANY)]
    assert ray.get(total.remote(*refs)) == sum(range(MANY))


def test_many_large_arguments():
    refs = [ray.put(blob(i, 120_000)) for i in range(1000)]

    @ray.remote
    def hashes(*values):
        return [digest(value) for value in values]

    assert ray.get(hashes.remote(*refs)) == [digest(blob(i, 120_000)) for i in range(1000)]


def test_an_object_with_many_refs():
    inner = [ray.put(i) for i in range(MANY)]
    outer = ray.put(inner)
    del inner

    @ray.remote
    def through(refs):
        return sum(ray.get(refs)), refs[::100]

    found, some = ray.get(through.remote(outer))
    assert found == sum(range(MANY))
    del outer
    assert ray.get(some) == list(range(0, MANY, 100))
    del some
    wait_until(lambda: ray._native.counts() == (0, 0), message="all refs are let go")


def test_a_task_that_returns_many_refs():
    @ray.remote
    def puts():
        return [ray.put(i) for i in range(MANY)]

    assert sum(ray.get(ray.get(puts.remote()))) == sum(range(MANY))


def test_many_returns():
    @ray.remote(num_returns=3000)
    def many():
        return range(3000)

    assert ray.get(many.remote()) == list(range(3000))


def test_many_large_returns():
    @ray.remote(num_returns=300)
    def many():
        return [blob(i, 120_000) for i in range(300)]

    for i, ref in enumerate(many.remote()):
        assert digest(ray.get(ref)) == digest(blob(i, 120_000))
    del ref
    expect_empty()


@ray.remote
class Waiter:
    """Takes arguments, and waits with them."""

    def take(self, gate, *values):
        gate.wait()
        return [digest(value) for value in values]


def test_an_array_passed_twice_is_stored_once(gate):
    array = blob(1, 20 * MB)
    waiter = Waiter.remote()
    refs = [waiter.take.remote(gate, array, array)]
    assert 20 * MB <= used() < 21 * MB
    refs.append(waiter.take.remote(gate, *ray.get(ray.put([array, array]))))
    gate.open()
    assert ray.get(refs) == 2 * [2 * [digest(array)]]
    assert used() == 0 or wait_until(lambda: used() == 0)


def test_an_array_twice_in_a_value_is_stored_once():
    array = blob(1, 20 * MB)
    ref = ray.put({"a": array, "b": [array]})
    assert 20 * MB <= used() < 21 * MB
    got = ray.get(ref)
    assert got["a"] is got["b"][0]
    del got, ref
    expect_empty()


def test_a_large_argument_of_many_tasks_is_stored_once(gate):
    array = np.arange(20 * MB // 8)
    ref = ray.put(array)

    @ray.remote
    def check(array):
        gate.wait()
        return int(array[-1]), view()["store_used"]

    refs = [check.remote(ref) for _ in range(100)]
    gate.open()
    for last, seen in ray.get(refs):
        assert last == array[-1]
        assert 20 * MB <= seen < 21 * MB
    del ref
    refs.clear()
    expect_empty()
