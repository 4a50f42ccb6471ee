"""Streams from other nodes: items come from there, and are made again when a node is lost."""

from __future__ import annotations

import os
import signal

import numpy as np
import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.cluster_utils import Cluster
from oxiray.exceptions import ObjectReconstructionFailedError

SIZE = 1 << 20


@pytest.fixture
def start():
    """Starts a head without CPUs and a node that is to be lost, and connects."""
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})

    def started():
        cluster.there = cluster.add_node(num_cpus=2, resources={"there": 2})
        cluster.connect()
        return cluster

    yield started
    ray.shutdown()
    cluster.shutdown()


def lose(cluster):
    cluster.remove_node(cluster.there, allow_graceful=False)
    cluster.there = cluster.add_node(num_cpus=2, resources={"there": 2})


@ray.remote(resources={"there": 1})
def arrays(until, size=SIZE):
    for number in range(until):
        yield np.full(size, number, dtype=np.uint8)


def numbers(refs):
    return [int(ray.get(ref, timeout=60)[0]) for ref in refs]


@pytest.mark.parametrize("ahead", [-1, 1, 3])
@pytest.mark.parametrize("size", [1, SIZE], ids=["small", "large"])
def test_items_of_another_node(start, ahead, size):
    start()
    generator = arrays.options(_generator_backpressure_num_objects=ahead).remote(20, size)
    assert numbers(generator) == list(range(20))


def test_an_actor_there(start, gate):
    start()

    @ray.remote(resources={"there": 1})
    class Actor:
        async def numbers(self, gate):
            yield np.zeros(SIZE)
            gate.wait()
            yield 1

    actor = Actor.remote()
    generator = actor.numbers.remote(gate)
    assert ray.get(next(generator), timeout=60).sum() == 0
    gate.open()
    assert ray.get(next(generator), timeout=60) == 1


def test_items_that_were_lost_are_made_again(start):
    cluster = start()
    generator = arrays.remote(6)
    refs = [next(generator) for _ in range(4)]
    ray.get(generator.completed(), timeout=60)
    lose(cluster)
    assert numbers(refs) == [0, 1, 2, 3]
    assert numbers(generator) == [4, 5]
    lose(cluster)
    del refs[0]
    assert numbers(refs) == [1, 2, 3]


def test_nothing_but_what_is_held_is_made_again(start, tmp_path):
    cluster = start()
    path = str(tmp_path / "made")

    @ray.remote(resources={"there": 1}, _generator_backpressure_num_objects=2)
    def logged(until):
        for number in range(until):
            with open(path, "a") as file:
                file.write(f"{number}\n")
            yield np.full(SIZE, number, dtype=np.uint8)

    generator = logged.remote(50)
    refs = [next(generator) for _ in range(2)]
    wait_until(lambda: len(open(path).read().split()) == 4)
    del generator
    wait_until(lambda: ray._native.counts()[1] == 0)
    os.unlink(path)
    lose(cluster)
    assert numbers(refs) == [0, 1]
    wait_until(lambda: ray._native.counts()[1] == 0)
    # No further than it may be ahead of the last that is needed.
    assert len(open(path).read().split()) <= 4


def test_items_that_cannot_be_made_again(start):
    cluster = start()
    generator = arrays.options(max_retries=0).remote(2)
    refs = list(generator)
    lose(cluster)
    for ref in refs:
        with pytest.raises(ObjectReconstructionFailedError, match="max_retries=0"):
            ray.get(ref, timeout=60)


def test_a_generator_that_yields_less_when_it_is_run_again(start, tmp_path):
    cluster = start()
    path = str(tmp_path / "tried")

    @ray.remote(resources={"there": 1})
    def fickle():
        for number in range(1 if os.path.exists(path) else 3):
            yield np.full(SIZE, number, dtype=np.uint8)
        open(path, "w").close()

    refs = list(fickle.remote())
    lose(cluster)
    assert numbers(refs[:1]) == [0]
    with pytest.raises(ObjectReconstructionFailedError, match="yielded 1 item"):
        ray.get(refs[2], timeout=60)


def test_a_node_that_is_lost_in_the_middle(start, gate):
    cluster = start()

    @ray.remote(resources={"there": 1})
    def waits(gate):
        for number in range(10):
            if number == 5:
                gate.wait()
            yield np.full(SIZE, number, dtype=np.uint8)

    generator = waits.remote(gate)
    refs = [next(generator) for _ in range(3)]
    wait_until(generator.next_ready)
    lose(cluster)
    gate.open()
    assert numbers(refs) == [0, 1, 2]
    assert numbers(generator) == list(range(3, 10))


def test_an_item_that_was_let_go_is_made_again_while_its_stream_waits(start):
    """A stream that waits for its reader, who waits for what is made of an item before."""
    cluster = start()
    other = cluster.add_node(num_cpus=1, resources={"other": 1})

    @ray.remote(resources={"other": 1})
    def same(array):
        return array

    generator = arrays.options(_generator_backpressure_num_objects=1).remote(4)
    kept = same.remote(next(generator))
    assert ray.wait([kept], timeout=60, fetch_local=False)[0]
    cluster.remove_node(other, allow_graceful=False)
    cluster.add_node(num_cpus=1, resources={"other": 1})
    assert numbers([kept]) == [0]
    assert numbers(generator) == [1, 2, 3]


def test_a_worker_there_that_dies_in_the_middle(start, tmp_path):
    start()
    path = str(tmp_path / "died")

    @ray.remote(resources={"there": 1})
    def dies():
        for number in range(8):
            if number == 5 and not os.path.exists(path):
                open(path, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            yield np.full(SIZE, number, dtype=np.uint8)

    assert numbers(dies.remote()) == list(range(8))
