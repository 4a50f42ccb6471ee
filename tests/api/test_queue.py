"""`util.queue.Queue`: one queue for tasks, actors, coroutines and the driver."""

from __future__ import annotations

import asyncio

import oxiray as ray
import pytest
from oxiray.util.queue import Empty, Full, Queue


@ray.remote
def put(queue, *items):
    for item in items:
        queue.put(item)


@ray.remote
def take(queue, count):
    return [queue.get() for _ in range(count)]


def test_first_in_first_out(cluster):
    queue = Queue()
    for item in range(10):
        queue.put(item)
    assert (len(queue), queue.size(), queue.qsize(), queue.empty()) == (10, 10, 10, False)
    assert [queue.get() for _ in range(10)] == list(range(10))
    assert queue.empty() and not queue.full()


def test_without_waiting(cluster):
    queue = Queue(maxsize=2)
    with pytest.raises(Empty):
        queue.get_nowait()
    with pytest.raises(Empty):
        queue.get(block=False)
    queue.put_nowait(1)
    queue.put(2, block=False)
    assert queue.full()
    with pytest.raises(Full):
        queue.put_nowait(3)
    with pytest.raises(Full):
        queue.put(3, block=False)


def test_waiting_no_longer_than_asked(cluster):
    queue = Queue(maxsize=1)
    with pytest.raises(Empty):
        queue.get(timeout=0.05)
    queue.put("one")
    with pytest.raises(Full):
        queue.put("two", timeout=0.05)
    for use in (queue.get, lambda timeout: queue.put(1, timeout=timeout)):
        with pytest.raises(ValueError, match="non-negative"):
            use(timeout=-1)
    assert queue.get(timeout=5) == "one", "what timed out is not in it"
    assert queue.empty()


def test_batches_are_whole_or_not_at_all(cluster):
    queue = Queue(maxsize=3)
    queue.put_nowait_batch(iter([1, 2]))
    with pytest.raises(Full):
        queue.put_nowait_batch([3, 4])
    with pytest.raises(Empty):
        queue.get_nowait_batch(3)
    assert queue.get_nowait_batch(2) == [1, 2]
    assert queue.get_nowait_batch(0) == []
    with pytest.raises(TypeError, match="items"):
        queue.put_nowait_batch(5)
    with pytest.raises(TypeError, match="num_items"):
        queue.get_nowait_batch("2")
    with pytest.raises(ValueError, match="num_items"):
        queue.get_nowait_batch(-1)


def test_tasks_wait_for_each_other_through_it(cluster):
    queue = Queue(maxsize=1)
    taken = [take.remote(queue, 10) for _ in range(2)]
    given = [put.remote(queue, *range(start, start + 10)) for start in (0, 10)]
    ray.get(given, timeout=60)
    both = ray.get(taken, timeout=60)
    assert sorted(item for items in both for item in items) == list(range(20))


def test_coroutines(cluster):
    queue = Queue(maxsize=1)

    async def both():
        getter = asyncio.ensure_future(queue.get_async())
        await queue.put_async("a")
        assert await getter == "a"
        await queue.put_async("b", block=False)
        with pytest.raises(Full):
            await queue.put_async("c", timeout=0.01)
        assert await queue.get_async(block=False) == "b"
        with pytest.raises(Empty):
            await queue.get_async(timeout=0.01)

    asyncio.run(both())


def test_its_end(cluster):
    queue = Queue()
    actor = queue.actor
    queue.shutdown()
    queue.shutdown()
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(actor.qsize.remote(), timeout=30)
    queue = Queue(actor_options={"num_cpus": 0.5})
    waits = take.remote(queue, 1)
    ray.kill(queue.actor)
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(waits, timeout=30)
    with pytest.raises(ray.exceptions.RayActorError):
        queue.put(1)
