"""Many of everything: a million queued tasks, a hundred thousand calls in flight, 200 actors."""

from __future__ import annotations

import gc
import os

import oxiray as ray
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def session():
    with ray.init(num_cpus=2, logging_level="error"):
        yield


@ray.remote
def same(x):
    return x


@ray.remote
class Keeper:
    def __init__(self, x):
        self.x = x

    def get(self):
        return self.x


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_million_queued_tasks(gate):
    count = 1_000_000
    ray.get([same.remote(i) for i in range(1000)])

    @ray.remote
    def hold():
        gate.wait()

    blockers = [hold.remote() for _ in range(2)]
    gc.collect()
    before = resident()
    refs = [same.remote(i) for i in range(count)]
    each = (resident() - before) / count
    assert each < 1024, f"{each:.0f} bytes for each queued task"
    gate.open()
    assert sum(ray.get(refs)) == count * (count - 1) // 2
    ray.get(blockers)


def test_a_hundred_thousand_calls_in_flight():
    keeper = Keeper.remote(7)
    ray.get(keeper.get.remote())
    gc.collect()
    before = resident()
    refs = [keeper.get.remote() for _ in range(100_000)]
    assert (resident() - before) / len(refs) < 1024
    assert ray.get(refs) == [7] * len(refs)


def test_two_hundred_actors():
    keepers = [Keeper.remote(i) for i in range(200)]
    assert ray.get([keeper.get.remote() for keeper in keepers]) == list(range(200))


def test_ten_thousand_references_as_arguments_and_in_a_value():
    refs = [ray.put(i) for i in range(10_000)]

    @ray.remote
    def total(*values):
        return sum(values)

    @ray.remote
    def count(values):
        return len(values), sum(ray.get(values))

    assert ray.get(total.remote(*refs)) == sum(range(10_000))
    assert ray.get(count.remote(refs)) == (10_000, sum(range(10_000)))
    assert len(ray.get(ray.put(refs))) == 10_000


def test_three_thousand_returns():
    @ray.remote(num_returns=3000)
    def many():
        return range(3000)

    assert ray.get(many.remote()) == list(range(3000))
