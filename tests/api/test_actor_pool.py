"""`util.ActorPool`: one stream of work for several actors."""

from __future__ import annotations

import os

import oxiray as ray
import pytest
from oxiray.util import ActorPool


@ray.remote
class Worker:
    def double(self, x):
        return 2 * x

    def wait_at(self, gate, x):
        gate.wait()
        return x

    def pair(self, x):
        return x, -x

    def fail(self, x):
        raise ValueError(x)

    def end(self, x):
        os._exit(1)


def double(actor, value):
    return actor.double.remote(value)


@pytest.fixture
def pool(cluster):
    return ActorPool([Worker.remote(), Worker.remote()])


def test_map_keeps_the_order(pool):
    assert list(pool.map(double, range(20))) == [2 * i for i in range(20)]
    assert not pool.has_next() and pool.has_free()


def test_map_unordered_yields_what_is_ready_first(pool, gate):
    def submit(actor, value):
        return actor.wait_at.remote(gate, value) if value == 0 else actor.double.remote(value)

    results = pool.map_unordered(submit, range(6))
    assert [next(results) for _ in range(5)] == [2, 4, 6, 8, 10]
    gate.open()
    assert list(results) == [0]


def test_submit_and_take(pool):
    for value in range(5):
        pool.submit(double, value)
    assert pool.has_next() and not pool.has_free()
    assert [pool.get_next() for _ in range(5)] == [0, 2, 4, 6, 8]
    with pytest.raises(StopIteration):
        pool.get_next()
    with pytest.raises(StopIteration):
        pool.get_next_unordered()


def test_several_refs_count_as_one(pool):
    both = lambda actor, value: list(actor.pair.options(num_returns=2).remote(value))  # noqa: E731
    assert list(pool.map(both, [1, 2, 3])) == [[1, -1], [2, -2], [3, -3]]
    assert sorted(pool.map_unordered(both, [1, 2, 3])) == [[1, -1], [2, -2], [3, -3]]


def test_an_order_that_was_left_is_not_found_again(pool):
    for value in range(2):
        pool.submit(double, value)
    pool.get_next_unordered(), pool.get_next_unordered()
    pool.submit(double, 5)
    assert pool.get_next() == 10


@pytest.mark.parametrize("take", ["get_next", "get_next_unordered"])
def test_a_timeout_leaves_the_work_or_gives_it_up(pool, gate, take):
    take = getattr(pool, take)
    pool.submit(lambda actor, value: actor.wait_at.remote(gate, value), 7)
    with pytest.raises(TimeoutError):
        take(timeout=0.01)
    assert pool.has_next()
    with pytest.raises(TimeoutError, match="ignored"):
        take(timeout=0, ignore_if_timedout=True)
    assert not pool.has_next() and pool.has_free()


def test_a_new_map_gives_up_what_the_last_one_left(pool):
    first = pool.map(double, range(10))
    assert next(first) == 0
    assert list(pool.map(double, [100, 200])) == [200, 400]


def test_an_error_is_raised_and_its_actor_goes_on(pool):
    pool.submit(lambda actor, value: actor.fail.remote(value), 3)
    with pytest.raises(ValueError):
        pool.get_next()
    assert list(pool.map(double, range(3))) == [0, 2, 4]


def test_a_dead_actor_leaves_the_pool(pool):
    pool.submit(lambda actor, value: actor.end.remote(value), 0)
    pool.submit(double, 1)
    pool.submit(double, 2)
    with pytest.raises(ray.exceptions.ActorDiedError):
        pool.get_next()
    assert [pool.get_next(), pool.get_next()] == [2, 4]
    assert pool.pop_idle() is not None
    assert pool.pop_idle() is None


def test_actors_come_and_go(pool):
    actor = pool.pop_idle()
    pool.submit(double, 1)
    pool.submit(double, 2)
    assert pool.pop_idle() is None
    with pytest.raises(ValueError, match="already belongs"):
        pool.push(next(iter(pool._calls.values())).actor)
    pool.push(actor)
    with pytest.raises(ValueError, match="already belongs"):
        pool.push(actor)
    assert [pool.get_next(), pool.get_next()] == [2, 4]
