"""`init(local_mode=True)`: everything runs in the driver, with a warning."""

from __future__ import annotations

import os

import oxiray as ray
import pytest


@pytest.fixture
def local():
    ray.shutdown()
    with pytest.warns(UserWarning, match="local_mode=True"):
        ray.init(local_mode=True, num_cpus=1, logging_level="error")
    yield
    ray.shutdown()


def test_tasks_run_here(local):
    seen = []

    @ray.remote
    def note(x, y=0):
        seen.append(x + y)
        return os.getpid()

    @ray.remote(num_returns=2)
    def two():
        return 1, 2

    assert ray.get(note.remote(ray.put(1), y=ray.put(2))) == os.getpid()
    assert seen == [3], "it ran here, and when it was called"
    assert ray.get(two.remote()) == [1, 2]
    ready, rest = ray.wait([note.remote(1), note.remote(2)], num_returns=2)
    assert len(ready) == 2 and not rest


def test_errors_come_with_get(local):
    @ray.remote
    def fail():
        raise KeyError("lost")

    ref = fail.remote()
    with pytest.raises(ray.exceptions.RayTaskError) as caught:
        ray.get(ref)
    assert isinstance(caught.value, KeyError)


def test_actors_run_here(local):
    @ray.remote
    class Counter:
        def __init__(self, start):
            self.n = start

        def add(self, k):
            self.n += k
            return self.n, os.getpid()

        async def later(self):
            return self.n

    actor = Counter.options(name="counter").remote(10)
    assert ray.get(actor.add.remote(5)) == (15, os.getpid())
    assert ray.get(actor.later.remote()) == 15
    assert ray.get(ray.get_actor("counter").add.remote(1)) == (16, os.getpid())
    with pytest.raises(AttributeError, match="no method 'sub'"):
        _ = actor.sub
    ray.kill(actor)
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(actor.add.remote(1))
    with pytest.raises(ValueError, match="counter"):
        ray.get_actor("counter")


def test_it_is_over_with_the_session(local):
    @ray.remote
    def where():
        return os.getpid()

    assert ray.get(where.remote()) == os.getpid()
    ray.shutdown()
    ray.init(num_cpus=1, logging_level="error")
    assert ray.get(where.remote()) != os.getpid()
