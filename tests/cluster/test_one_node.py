"""One machine is a cluster of one: every test here runs after plain `init()` and on a cluster of
one node, and sees the same."""

from __future__ import annotations

import os
import signal

import oxiray as ray
import pytest
from conftest import is_alive, wait_until
from oxiray.cluster_utils import Cluster
from oxiray.exceptions import (
    ActorDiedError,
    ActorUnschedulableError,
    GetTimeoutError,
    TaskUnschedulableError,
)
from oxiray.experimental import internal_kv
from oxiray.util import state
from oxiray.util.scheduling_strategies import (
    DoesNotExist,
    Exists,
    In,
    NodeAffinitySchedulingStrategy,
    NodeLabelSchedulingStrategy,
)

NOBODY = 28 * "ab"


@pytest.fixture(scope="module", params=["alone", "of a cluster"], autouse=True)
def node(request):
    """This program's node: its id."""
    ray.shutdown()
    options = {"num_cpus": 4, "resources": {"tool": 1}}
    if request.param == "alone":
        ray.init(**options, namespace="tests", logging_level="error")
        yield ray.get_runtime_context().get_node_id()
        ray.shutdown()
        return
    cluster = Cluster(initialize_head=True, head_node_args=options)
    cluster.connect(namespace="tests")
    yield cluster.head_node.node_id
    ray.shutdown()
    cluster.shutdown()


@ray.remote
def where():
    return ray.get_runtime_context().get_node_id()


@ray.remote
class Counter:
    def __init__(self):
        self.count = 0

    def add(self):
        self.count += 1
        return self.count

    def pid(self):
        return os.getpid()


def at(node_id, **more):
    return NodeAffinitySchedulingStrategy(node_id, soft=False, **more)


def rows(kind, **more):
    return getattr(state, f"list_{kind}")(limit=10_000, **more)


NOWHERE = [
    ({"label_selector": {"zone": "moon"}}, "no node has the label zone=moon"),
    (
        {"scheduling_strategy": NodeLabelSchedulingStrategy({"zone": In("moon")})},
        "no node has the label zone=moon",
    ),
    (
        {"scheduling_strategy": NodeLabelSchedulingStrategy({"zone": Exists()})},
        "no node has the label zone",
    ),
    ({"resources": {"nowhere": 1}}, "no node has any nowhere"),
    ({"num_cpus": 5}, "no node is large enough"),
]


class TestStrategies:
    def test_hard_affinity_to_a_node_that_is_not_there_fails(self):
        with pytest.raises(TaskUnschedulableError, match="was never in it"):
            ray.get(where.options(scheduling_strategy=at(NOBODY)).remote())
        counter = Counter.options(scheduling_strategy=at(NOBODY)).remote()
        with pytest.raises(ActorUnschedulableError, match="was never in it"):
            ray.get(counter.add.remote())

    def test_soft_affinity_runs_elsewhere(self, node):
        soft = NodeAffinitySchedulingStrategy(NOBODY, soft=True)
        assert ray.get(where.options(scheduling_strategy=soft).remote()) == node

    @pytest.mark.parametrize(
        "options",
        [
            {"scheduling_strategy": "SPREAD"},
            {"label_selector": {"zone": "!moon"}},
            {"scheduling_strategy": NodeLabelSchedulingStrategy({"zone": DoesNotExist()})},
            {"scheduling_strategy": NodeLabelSchedulingStrategy(None, soft={"a": In("b")})},
        ],
        ids=str,
    )
    def test_what_this_node_matches_runs(self, node, options):
        assert ray.get(where.options(**options).remote()) == node
        assert ray.get(Counter.options(**options).remote().add.remote()) == 1

    def test_affinity_and_labels_that_name_this_node(self, node):
        for options in (
            {"scheduling_strategy": at(node)},
            {"label_selector": {"ray.io/node-id": node}},
        ):
            assert ray.get(where.options(**options).remote()) == node
            assert ray.get(Counter.options(**options).remote().add.remote()) == 1

    @pytest.mark.parametrize(("options", "why"), NOWHERE, ids=str)
    def test_what_no_node_will_do_for_waits_and_says_so(self, options, why):
        ref = where.options(**options).remote()
        with pytest.raises(GetTimeoutError):
            ray.get(ref, timeout=0.3)
        waiting = lambda: rows("nodes", detail=True)[0].waiting  # noqa: E731
        wait_until(lambda: any(why in sentence for sentence in waiting()))

    @pytest.mark.parametrize(("options", "why"), NOWHERE, ids=str)
    def test_an_actor_that_no_node_can_take_is_listed_with_why(self, options, why):
        counter = Counter.options(**options).remote()
        with pytest.raises(GetTimeoutError):
            ray.get(counter.add.remote(), timeout=0.3)
        [row] = [
            row
            for row in rows("actors", detail=True, filters=[("state", "=", "PENDING_CREATION")])
            if row.actor_id == counter._actor_id.hex()
        ]
        assert why in row.why
        ray.kill(counter)
        wait_until(lambda: state.get_actor(row.actor_id).state == "DEAD")

    def test_an_actor_that_waits_at_its_node_says_for_what(self):
        first = Counter.options(resources={"tool": 1}).remote()
        assert ray.get(first.add.remote()) == 1
        second = Counter.options(resources={"tool": 1}).remote()
        why = wait_until(lambda: state.get_actor(second._actor_id.hex()).why)
        assert "needs tool: 1" in why and "0 of 1 free" in why
        ray.kill(first)
        assert ray.get(second.add.remote()) == 1


class TestActors:
    def test_a_name_is_found_and_free_again_after_its_end(self):
        first = Counter.options(name="one").remote()
        assert ray.get(ray.get_actor("one").add.remote()) == 1
        with pytest.raises(ValueError, match="one"):
            Counter.options(name="one").remote()
        assert "one" in ray.util.list_named_actors()
        ray.kill(first)
        again = Counter.options(name="one").remote()
        assert ray.get(again.add.remote()) == 1
        ray.kill(again)

    def test_the_dead_are_remembered_with_their_reason(self):
        counter = Counter.remote()
        pid = ray.get(counter.pid.remote())
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ActorDiedError, match="SIGKILL"):
            ray.get(counter.add.remote())
        row = wait_until(
            lambda: (row := state.get_actor(counter._actor_id.hex())).state == "DEAD" and row
        )
        assert "SIGKILL" in row.death_cause and row.pid == pid

    def test_a_handle_from_before_the_actor_is_made_works(self, gate):
        @ray.remote
        def late(gate):
            gate.wait()
            return 5

        @ray.remote
        class Holds:
            def __init__(self, value):
                self.value = value

            def get(self):
                return self.value

        @ray.remote
        def use(holder):
            return ray.get(holder.get.remote())

        holder = Holds.remote(late.remote(gate))
        used = use.remote(holder)
        listed = lambda: state.get_actor(holder._actor_id.hex())  # noqa: E731
        row = wait_until(listed)
        assert row.state == "DEPENDENCIES_UNREADY"
        gate.open()
        assert ray.get(used) == 5

    def test_it_is_started_again_as_often_as_it_may_be(self):
        counter = Counter.options(max_restarts=1, max_task_retries=1).remote()
        for _ in range(2):
            pid = ray.get(counter.pid.remote())
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: not is_alive(pid))
        with pytest.raises(ActorDiedError):
            ray.get(counter.add.remote())
        assert state.get_actor(counter._actor_id.hex()).num_restarts == 1


class TestTables:
    def test_keys_and_values(self):
        put, get = internal_kv._internal_kv_put, internal_kv._internal_kv_get
        assert put(b"k1", b"a") is False and put(b"k2", b"b") is False
        assert put(b"k1", b"c", overwrite=False) is True and get(b"k1") == b"a"
        assert sorted(internal_kv._internal_kv_list(b"k")) == [b"k1", b"k2"]
        internal_kv._internal_kv_del(b"k1")
        assert get(b"k1") is None

    def test_the_node_and_the_program_are_listed(self, node):
        [row] = rows("nodes")
        assert (row.node_id, row.state, row.is_head_node) == (node, "ALIVE", True)
        assert row.resources_total["CPU"] == 4 and row.resources_total["tool"] == 1
        [job] = rows("jobs")
        assert job.status == "RUNNING" and job.driver_pid == os.getpid()
        [known] = ray.nodes()
        assert known["NodeID"] == node and known["Resources"]["CPU"] == 4
        assert known["Labels"] == {"ray.io/node-id": node}

    def test_what_is_in_use_is_seen_at_once(self):
        # What the tests before this one used may still be on its way back.
        wait_until(lambda: ray.available_resources().get("CPU") == 4)
        counter = Counter.options(num_cpus=3).remote()
        assert ray.get(counter.add.remote()) == 1
        assert rows("nodes")[0].resources_available["CPU"] == 1
        assert ray.available_resources()["CPU"] == 1
        ray.kill(counter)
        wait_until(lambda: ray.available_resources()["CPU"] == 4)
