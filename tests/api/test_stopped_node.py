"""A node service that is stopped, and reads nothing: nobody waits for it without a way out, and
what was said to it meanwhile is done once it goes on."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager

import oxiray as ray
import pytest
from conftest import processes_under, wait_until
from oxiray.cluster_utils import Cluster

# Of each at least this much is said: several times what its socket holds.
ACTORS = 1_500


def service():
    """The node service that this process has started."""
    with open(f"/proc/self/task/{threading.main_thread().native_id}/children") as file:
        children = [int(pid) for pid in file.read().split()]
    (found,) = (pid for pid in children if "oxirayd" in open(f"/proc/{pid}/comm").read())
    return found


@contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def interrupted_soon():
    """SIGINT comes in a moment, as Ctrl-C does, also where the run as a whole does not hear it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@ray.remote(num_cpus=0)
class Actor:
    def call(self):
        return 1


@ray.remote
def double(value):
    return 2 * value


def test_what_is_said_to_it_is_not_waited_for_and_done_later(fresh):
    fresh()
    assert ray.get(double.remote(1)) == 2
    with stopped(service()):
        # Each says where it is to be made, and, as nobody holds it, that it is to go.
        for _ in range(ACTORS):
            Actor.remote()
        ref, kept = double.options(num_cpus=2).remote(2), Actor.remote()
        with pytest.raises(ray.exceptions.GetTimeoutError):
            ray.get(ref, timeout=0.2)
        with interrupted_soon(), pytest.raises(KeyboardInterrupt):
            ray.get(ref)
    assert ray.get([ref, kept.call.remote()], timeout=120) == [4, 1]


def test_questions_to_it_can_be_interrupted(fresh):
    fresh()
    with stopped(service()):
        for ask in (ray.available_resources, lambda: ray.get_actor("nobody"), ray.nodes):
            with interrupted_soon(), pytest.raises(KeyboardInterrupt):
                ask()
    with pytest.raises(ValueError, match="nobody"):
        ray.get_actor("nobody")


def test_the_session_ends_all_the_same(fresh):
    fresh()
    node = service()
    os.kill(node, signal.SIGSTOP)
    begin = time.monotonic()
    ray.shutdown()
    assert time.monotonic() - begin < 20, "it is given a few seconds"
    wait_until(lambda: node not in processes_under(os.environ["OXIRAY_TMPDIR"]))


def test_a_driver_that_connects_to_it_can_be_interrupted_and_leave():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        node = cluster.head_node.pid
        with stopped(node), interrupted_soon(), pytest.raises(KeyboardInterrupt):
            ray.init(address=cluster.address, logging_level="error")
        assert not ray.is_initialized()
        ray.init(address=cluster.address, logging_level="error")
        assert ray.get(double.remote(3), timeout=60) == 6
        with stopped(node):
            begin = time.monotonic()
            ray.shutdown()
            assert time.monotonic() - begin < 20, "it is given a few seconds"
    finally:
        ray.shutdown()
        cluster.shutdown()
