"""A node that does not answer: whoever looks is told, soon, what is missing."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager

import oxiray as ray
import pytest
from oxiray.cluster_utils import Cluster
from oxiray.util import state
from oxiray.util.state import RayStateApiException


@pytest.fixture(scope="module")
def two():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.other = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, logging_level="error")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@contextmanager
def silent(node):
    """For less long than it takes to be declared dead."""
    os.kill(node.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(node.pid, signal.SIGCONT)


def test_the_state_says_so_within_the_timeout(two):
    assert len(state.list_nodes()) == 2
    with silent(two.other):
        begin = time.monotonic()
        with pytest.raises(RayStateApiException, match="did not answer in time"):
            state.list_workers(timeout=0.3)
        assert time.monotonic() - begin < 2.5, "three seconds are the most"
        with pytest.warns(UserWarning, match="did not answer in time"):
            rows = state.list_workers(timeout=0.3, raise_on_missing_output=False)
    assert [row.worker_type for row in rows].count("DRIVER") == 1


@pytest.mark.parametrize("timeout", [0, -1, "soon", None, True, float("nan")])
def test_a_timeout_is_a_number_of_seconds(two, timeout):
    with pytest.raises(ValueError, match="timeout must be a number of seconds above 0"):
        state.list_nodes(timeout=timeout)
