"""How objects were made is kept, their values are not: what that holds, and what it brings back."""

from __future__ import annotations

import numpy as np
import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.cluster_utils import Cluster
from oxiray.exceptions import ObjectReconstructionFailedError

SIZE = 4 << 20
STEPS = 100


@ray.remote(resources={"there": 1})
def step(array=None):
    return np.zeros(SIZE, dtype=np.uint8) if array is None else array + 1


@ray.remote(resources={"there": 1})
def look():
    """What is in the store of that node, and what was written to its disk."""
    view = ray._native.cluster_view()
    return view["store_used"], view["spilled"]


@pytest.fixture
def start():
    """Starts a head and a node that has "there" and is to be lost, and connects."""
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})

    def started():
        cluster.there = cluster.add_node(num_cpus=1, resources={"there": 1})
        cluster.connect()
        return cluster

    yield started
    ray.shutdown()
    cluster.shutdown()


def made(ref):
    ready, _ = ray.wait([ref], timeout=120, fetch_local=False)
    assert ready
    return ref


def lose(cluster):
    cluster.remove_node(cluster.there, allow_graceful=False)
    cluster.there = cluster.add_node(num_cpus=1, resources={"there": 1})


def test_a_chain_of_steps_keeps_its_last_value(start):
    cluster = start()
    value = step.remote()
    for _ in range(STEPS - 1):
        value = step.remote(value)
    made(value)

    def is_let_go():
        used, spilled = ray.get(look.remote(), timeout=60)
        assert spilled == 0
        return used <= 3 * SIZE

    wait_until(is_let_go, message="one value is stored, and what a task at work needs")
    lose(cluster)
    array = ray.get(value, timeout=120)
    assert (int(array[0]), int(array[-1])) == (STEPS - 1, STEPS - 1)


def test_what_was_put_and_let_go_is_not_made_again(start):
    cluster = start()
    value = made(step.remote(ray.put(np.ones(SIZE, dtype=np.uint8))))
    lose(cluster)
    with pytest.raises(ObjectReconstructionFailedError, match="it was put"):
        ray.get(value, timeout=60)


def test_what_was_put_and_is_held_is_used_again(start):
    cluster = start()
    held = ray.put(np.ones(SIZE, dtype=np.uint8))
    value = made(step.remote(held))
    lose(cluster)
    assert int(ray.get(value, timeout=60)[0]) == 2


def test_recipes_have_a_limit_in_bytes(start, monkeypatch):
    monkeypatch.setenv("RAY_max_lineage_bytes", "3000")
    cluster = start()
    value = step.remote()
    for _ in range(20):
        value = step.remote(value)
    made(value)
    lose(cluster)
    with pytest.raises(ObjectReconstructionFailedError, match="max_lineage_bytes"):
        ray.get(value, timeout=60)


def test_retries_are_used_up(start):
    cluster = start()
    value = made(step.options(max_retries=1).remote())
    lose(cluster)
    assert int(ray.get(value, timeout=60)[0]) == 0
    lose(cluster)
    with pytest.raises(ObjectReconstructionFailedError, match="max_retries"):
        ray.get(value, timeout=60)
