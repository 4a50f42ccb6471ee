"""Tasks and calls whose arguments are lost with a node on the way: they wait until these are made
again, and the driver lives."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.cluster_utils import Cluster
from rendezvous import Gate

MEGABYTES = 1_000_000


def hold_up(arrived, gate):
    """Runs in a worker as it reads its arguments: says which it is."""
    mine = f"{arrived.path}.{os.getpid()}"
    os.symlink(str(os.getpid()), mine)
    os.replace(mine, arrived.path + ".pid")
    arrived.open()
    gate.wait()


class Slow:
    """An argument that is not read before its gate opens. What stands behind it is read later."""

    def __init__(self, arrived, gate):
        self.arrived, self.gate = arrived, gate

    def __reduce__(self):
        return hold_up, (self.arrived, self.gate)


@ray.remote(resources={"made": 1})
def make(number, gate, size=MEGABYTES):
    """A value of a node that has "made"; made again, it waits for the gate."""
    mark = f"{gate.path}.made-{number}"
    if os.path.exists(mark):
        gate.wait()
    open(mark, "w").close()
    return np.full(size, number % 251, dtype=np.uint8)


@ray.remote(resources={"stays": 1}, max_retries=0)
def total(_, array):
    return int(array.sum(dtype=np.int64))


@ray.remote(resources={"stays": 1})
class Adder:
    def pid(self):
        return os.getpid()

    def add(self, _, array):
        return int(array.sum(dtype=np.int64))


@pytest.fixture
def three():
    """A head, a node that stays, and one where values are made, which is to be lost."""
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    cluster.stays = cluster.add_node(num_cpus=2, resources={"stays": 2})
    cluster.lost = cluster.add_node(num_cpus=2, resources={"made": 2})
    cluster.connect()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def made(*arguments):
    ref = make.remote(*arguments)
    ray.wait([ref], timeout=60, fetch_local=False)
    return ref


def lose(cluster):
    """The node where values are made is gone, another one comes, and the driver knows it."""
    cluster.remove_node(cluster.lost, allow_graceful=False)
    cluster.lost = cluster.add_node(num_cpus=2, resources={"made": 2})


@pytest.fixture
def gates(tmp_path):
    """Of a maker, of a reader; and one that opens as the reader has arrived."""
    return [Gate(str(tmp_path / name)) for name in ("maker", "reader", "arrived")]


def wait_for(gate):
    wait_until(lambda: os.path.exists(gate.path), timeout=60, message=f"{gate.path} is open")


def test_a_task_waits_for_the_slow_maker_of_its_argument(three, gates):
    maker, reader, arrived = gates
    value = made(7, maker)
    # It may not run again: that its argument was lost does not count as a try.
    result = total.remote(Slow(arrived, reader), value)
    wait_for(arrived)
    lose(three)
    reader.open()
    ready, _ = ray.wait([result], timeout=1)
    assert not ready
    maker.open()
    assert ray.get(result, timeout=60) == 7 * MEGABYTES


def test_a_task_whose_worker_dies_meanwhile_waits_too(three, gates):
    maker, reader, arrived = gates
    value = made(5, maker)
    result = total.options(max_retries=1).remote(Slow(arrived, reader), value)
    wait_for(arrived)
    lose(three)
    os.kill(int(os.readlink(arrived.path + ".pid")), signal.SIGKILL)
    ready, _ = ray.wait([result], timeout=1)
    assert not ready
    reader.open()
    maker.open()
    assert ray.get(result, timeout=60) == 5 * MEGABYTES


@pytest.mark.parametrize("is_killed", [False, True])
def test_calls_wait_for_the_slow_maker_of_their_argument(three, gates, is_killed):
    maker, reader, arrived = gates
    actor = Adder.options(max_restarts=1, max_task_retries=1).remote()
    pid = ray.get(actor.pid.remote(), timeout=60)
    value = made(3, maker)
    small = np.ones(10, dtype=np.uint8)
    slow = actor.add.remote(Slow(arrived, reader), value)
    others = [actor.add.remote(None, value), actor.add.remote(None, small)]
    wait_for(arrived)
    lose(three)
    if is_killed:
        os.kill(pid, signal.SIGKILL)
    reader.open()
    ready, _ = ray.wait([slow], timeout=1)
    assert not ready
    maker.open()
    assert ray.get([slow, *others], timeout=60) == [3 * MEGABYTES, 3 * MEGABYTES, 10]


def test_a_node_dies_in_the_middle_of_a_transfer(three, gates):
    maker, reader, arrived = gates
    value = made(2, maker, 50 * MEGABYTES)
    reader.open()
    result = total.remote(Slow(arrived, reader), value)
    # Stopped before it has sent all, it dies before it sends the rest.
    wait_for(arrived)
    os.kill(three.lost.pid, signal.SIGSTOP)
    lose(three)
    maker.open()
    assert ray.get(result, timeout=60) == 100 * MEGABYTES
    assert int(ray.get(value, timeout=60)[-1]) == 2


def test_a_shuffle_survives_a_node(three, tmp_path):
    gate = Gate(str(tmp_path / "open"))
    gate.open()
    three.add_node(num_cpus=2, resources={"made": 2, "stays": 2})

    @ray.remote(resources={"made": 0.5}, num_returns=4)
    def split(number):
        return [np.full(200_000, number * 4 + part) for part in range(4)]

    @ray.remote(resources={"stays": 0.5})
    def merge(*parts):
        time.sleep(0.05)
        return [int(part[0]) for part in parts]

    parts = [split.remote(number) for number in range(12)]
    merged = [merge.remote(*(split[index] for split in parts)) for index in range(4)]
    again = [merge.remote(*(split[index] for split in parts)) for index in range(4)]
    ray.wait(merged, num_returns=1, timeout=60, fetch_local=False)
    lose(three)
    expected = [[number * 4 + part for number in range(12)] for part in range(4)]
    assert ray.get(merged, timeout=120) == expected
    assert ray.get(again, timeout=120) == expected
