"""A node is drained: it takes no new work, what it has goes elsewhere, and it leaves."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import time

import numpy as np
import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.cluster_utils import Cluster
from oxiray.util import state
from oxiray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

PROGRAM = os.path.join(sysconfig.get_path("scripts"), "oxiray")
LARGE = 400_000


@pytest.fixture
def three():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.other = cluster.add_node(num_cpus=2, resources={"there": 2})
    cluster.third = cluster.add_node(num_cpus=2)
    cluster.connect()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def drain(cluster, node, *options, code=0):
    command = [PROGRAM, "drain", node, "--address", cluster.address, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def here(node):
    return NodeAffinitySchedulingStrategy(node.node_id, soft=True)


def has_left(node):
    return state.get_node(node.node_id).state == "DEAD"


@ray.remote
def where():
    return ray.get_runtime_context().get_node_id()


@ray.remote(max_retries=0)
def made(number):
    return np.full(LARGE, number)


@ray.remote(max_retries=0)
def slow(path, seconds):
    open(path, "w").close()
    time.sleep(seconds)
    return "done"


@ray.remote
class Counter:
    def __init__(self):
        self.count = 0

    def add(self):
        self.count += 1
        return self.count, ray.get_runtime_context().get_node_id()

    def end(self):
        os._exit(3)


def test_only_copies_of_objects_go_elsewhere(three):
    """None of these can be made again: their tasks may run once."""
    refs = [made.options(scheduling_strategy=here(three.other)).remote(n) for n in range(8)]
    ray.wait(refs, num_returns=len(refs), timeout=60)
    said = drain(three, three.other.node_id, "--reason", "an upgrade", "--wait")
    assert "takes no new work" in said and "It has left" in said
    assert has_left(three.other)
    assert "drained (an upgrade)" in state.get_node(three.other.node_id).state_message
    for number, ref in enumerate(refs):
        value = ray.get(ref, timeout=60)
        assert value.shape == (LARGE,) and value[0] == value[-1] == number


def test_what_runs_may_end_and_nothing_new_begins(three, tmp_path):
    begun = tmp_path / "begun"
    running = slow.options(scheduling_strategy=here(three.other)).remote(str(begun), 3)
    wait_until(begun.exists)
    drain(three, three.other.node_id)
    row = state.get_node(three.other.node_id)
    assert (row.state, row.state_message) == ("DRAINING", "asked to")
    [node] = [node for node in ray.nodes() if node["NodeID"] == three.other.node_id]
    assert node["Alive"] and node["Draining"]
    said = subprocess.run([PROGRAM, "status"], capture_output=True, text=True, timeout=60)
    assert "DRAINING" in said.stdout
    soft = where.options(scheduling_strategy=here(three.other))
    places = ray.get([soft.remote() for _ in range(6)], timeout=60)
    assert three.other.node_id not in places
    assert ray.get(running, timeout=60) == "done"
    wait_until(lambda: has_left(three.other), timeout=30)


def test_actors_are_started_again_elsewhere_and_that_is_not_counted(three):
    moves = Counter.options(
        max_restarts=1, max_task_retries=-1, scheduling_strategy=here(three.other)
    ).remote()
    assert ray.get(moves.add.remote(), timeout=60) == (1, three.other.node_id)
    drain(three, three.other.node_id, "--wait")
    count, place = ray.get(moves.add.remote(), timeout=60)
    assert count == 1 and place != three.other.node_id
    # The one restart that it may have is still to be had.
    with pytest.raises(ray.exceptions.ActorUnavailableError):
        ray.get(moves.end.options(max_task_retries=0).remote(), timeout=60)
    assert ray.get(moves.add.remote(), timeout=60)[0] == 1
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(moves.end.options(max_task_retries=0).remote(), timeout=60)


def test_an_actor_that_may_not_be_started_again_is_waited_for_until_the_deadline(three):
    stays = Counter.options(scheduling_strategy=here(three.other)).remote()
    ray.get(stays.add.remote(), timeout=60)
    begun = time.monotonic()
    drain(three, three.other.node_id, "--deadline", "2", "--reason", "spot", "--wait")
    assert time.monotonic() - begun > 1.5
    with pytest.raises(ray.exceptions.ActorDiedError, match="its time was over"):
        ray.get(stays.add.remote(), timeout=60)


def test_what_cannot_be_drained_is_said(three):
    assert "no node's id begins with beef" in drain(three, "beef", code=1)
    assert "must be a number of seconds" in drain(three, "beef", "--deadline=-1", code=2)
    drain(three, three.other.node_id, "--wait")
    drain(three, three.third.node_id, "--wait")
    [head] = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    assert "it is the last node that takes work" in drain(three, head, code=1)
    assert ray.get(where.remote(), timeout=60) == head
