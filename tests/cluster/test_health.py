"""Silence is not death: a node that stands still is suspected, then given up, and comes back as a
new one. What the thresholds are is said to `oxiray start`, or by the environment."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager

import oxiray as ray
import pytest
from conftest import wait_until
from machines import PROGRAM
from oxiray.cluster_utils import Cluster

# Given up after 1.5 s.
HASTY = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 500,
    "health_check_failure_threshold": 3,
}


@contextmanager
def cluster_of(**system):
    ray.shutdown()
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": system}
    )
    try:
        cluster.other = cluster.add_node(num_cpus=1, resources={"there": 1})
        ray.init(address=cluster.address, logging_level="error")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@ray.remote(resources={"there": 0.01}, num_cpus=0)
class Counter:
    def __init__(self):
        self.count = 0

    def add(self):
        self.count += 1
        return self.count


@ray.remote
def where():
    return ray.get_runtime_context().get_node_id()


def alive():
    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


def test_a_node_that_stands_still_for_four_seconds_goes_on():
    with cluster_of() as cluster:
        counter = Counter.remote()
        assert ray.get(counter.add.remote(), timeout=30) == 1
        before = alive()
        os.kill(cluster.other.pid, signal.SIGSTOP)
        began = time.monotonic()
        try:
            later = counter.add.remote()
            # It is suspect after 3 s: nothing new goes there.
            wait_until(lambda: time.monotonic() - began > 4, 10)
            tasks = [where.options(scheduling_strategy="SPREAD").remote() for _ in range(6)]
            assert len(set(ray.get(tasks, timeout=30))) == 1
        finally:
            os.kill(cluster.other.pid, signal.SIGCONT)
        assert ray.get(later, timeout=30) == 2, "the same actor, which is asked once"
        assert alive() == before


def test_a_node_that_was_given_up_comes_back_as_a_new_one():
    with cluster_of(**HASTY) as cluster:
        counter = Counter.options(max_restarts=1, max_task_retries=1).remote()
        assert ray.get(counter.add.remote(), timeout=30) == 1
        before = alive()
        os.kill(cluster.other.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: len(alive()) == 1, 20, "it is given up")
        finally:
            os.kill(cluster.other.pid, signal.SIGCONT)
        wait_until(lambda: len(alive()) == 2, 30, "it is back")
        assert len(alive() & before) == 1, "as another"
        # What can be only there is started again there.
        assert ray.get(counter.add.remote(), timeout=30) == 1
        # It is the node of its files, which `oxiray stop` ends.
        assert os.path.exists(f"/proc/{cluster.other.pid}")


def test_a_program_of_a_node_that_was_given_up_is_told_so():
    with cluster_of(**HASTY) as cluster:
        here = cluster.head_node
        os.kill(here.pid, signal.SIGSTOP)
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 3, 10)
        os.kill(here.pid, signal.SIGCONT)

        def is_told():
            try:
                ray.get(where.remote(), timeout=10)
            except ray.exceptions.RayError as error:
                return str(error)

        assert "joins the cluster again as a new node" in wait_until(is_told, 30)
        ray.shutdown()
        # As it was told: init() waits until the node is there again, in the same process.
        ray.init(address=cluster.address, logging_level="error")
        assert ray.get(where.remote(), timeout=30)


@pytest.mark.parametrize(
    ("system", "why"),
    [
        (
            '{"health_check_period_ms": 0}',
            "health_check_period_ms must be from 1 to 86400000, not 0",
        ),
        ('{"health_check_timeout_ms": "soon"}', "health_check_timeout_ms must be a whole number"),
        (
            '{"health_check_timeout_ms": 5, "health_check_failure_threshold": 1}',
            "health_check_timeout_ms=5 and health_check_failure_threshold=1 contradict "
            "health_check_period_ms=3000",
        ),
        ("[1]", "--system-config must be JSON"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(system, why):
    done = subprocess.run(
        [PROGRAM, "start", "--head", "--port=0", "--system-config", system],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert why in done.stderr


def test_the_environment_says_it_too():
    done = subprocess.run(
        [PROGRAM, "start", "--head", "--port=0"],
        env={**os.environ, "RAY_health_check_failure_threshold": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert "health_check_failure_threshold must be from 1 to 1000, not 0" in done.stderr
