"""Placement groups over several nodes: strategies, nodes that die and come, a control service that
goes away, and groups that outlive their program."""

from __future__ import annotations

import subprocess
import sys
import time

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.cluster_utils import Cluster
from oxiray.util import (
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from oxiray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as InGroup
from oxiray.util.state import list_placement_groups


@pytest.fixture
def three():
    """Three nodes of two CPUs each; the driver's is the head."""
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.others = [cluster.add_node(num_cpus=2, resources={"there": 1}) for _ in range(2)]
    cluster.connect(namespace="mine")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@ray.remote
def node_id():
    return ray.get_runtime_context().get_node_id()


@ray.remote(num_cpus=1)
class Member:
    def node_id(self):
        return ray.get_runtime_context().get_node_id()

    def group_id(self):
        return ray.get_runtime_context().get_placement_group_id()


def places(group):
    return list(placement_group_table(group)["bundles_to_node_id"].values())


def state(group):
    return placement_group_table(group)["state"]


def free():
    return ray.available_resources().get("CPU", 0)


@pytest.mark.parametrize(
    ("strategy", "count", "nodes"),
    [("PACK", 2, 1), ("STRICT_PACK", 2, 1), ("SPREAD", 3, 3), ("STRICT_SPREAD", 3, 3)],
)
def test_bundles_are_where_the_strategy_says(three, strategy, count, nodes):
    group = placement_group([{"CPU": 1}] * count, strategy=strategy)
    assert group.wait(10)
    where = places(group)
    assert len(set(where)) == nodes
    got = [
        node_id.options(scheduling_strategy=InGroup(group, index)).remote()
        for index in range(count)
    ]
    assert ray.get(got, timeout=30) == where
    # Any bundle will do: all of them are used, and nothing else.
    actors = [Member.options(scheduling_strategy=InGroup(group)).remote() for _ in range(count)]
    ids = ray.get([actor.node_id.remote() for actor in actors], timeout=30)
    assert sorted(ids) == sorted(where)
    remove_placement_group(group)
    wait_until(lambda: free() == 6, message="all of it is free again")


def test_what_cannot_be_placed_strictly_waits_for_a_node(three):
    spread = placement_group([{"CPU": 1}] * 4, strategy="STRICT_SPREAD")
    packed = placement_group([{"CPU": 3}, {"CPU": 1}], strategy="STRICT_PACK")
    assert not spread.wait(0.5) and not packed.wait(0)
    assert "need a node each" in placement_group_table(spread)["reason"]
    assert free() == 6, "nothing is held meanwhile"
    three.add_node(num_cpus=4)
    assert spread.wait(20), "the first that waits is the first to be served"
    assert len(set(places(spread))) == 4 and not packed.wait(0.2)
    remove_placement_group(spread)
    assert packed.wait(20)


def test_no_two_groups_hold_half_each(three):
    for _ in range(5):
        groups = [placement_group([{"CPU": 2}] * 2) for _ in range(6)]
        ready = [group.ready() for group in groups]
        for _ in groups:
            (done,), ready = ray.wait(ready, timeout=30)
            remove_placement_group(ray.get(done))
    wait_until(lambda: free() == 6, message="all of it is free again")


def test_tasks_of_any_bundle_use_all_of_them(three):
    group = placement_group([{"CPU": 1}] * 3, strategy="STRICT_SPREAD")

    @ray.remote(num_cpus=1)
    def meet(number):
        time.sleep(0.05)
        return ray.get_runtime_context().get_node_id()

    # One is held for long: whoever could be anywhere is not to wait for it.
    keeper = Member.options(scheduling_strategy=InGroup(group, 0)).remote()
    ray.get(keeper.node_id.remote(), timeout=30)
    tasks = [meet.options(scheduling_strategy=InGroup(group)).remote(n) for n in range(40)]
    used = set(ray.get(tasks, timeout=60))
    assert used == set(places(group)[1:])


def test_lost_bundles_are_placed_again_and_their_actors_with_them(three):
    group = placement_group([{"CPU": 1}] * 3, strategy="STRICT_SPREAD")
    assert group.wait(10)
    lives = Member.options(max_restarts=-1, max_task_retries=-1)
    actors = [
        lives.options(scheduling_strategy=InGroup(group, index)).remote() for index in range(3)
    ]
    before = ray.get([actor.node_id.remote() for actor in actors], timeout=30)
    assert before == places(group)
    lost = three.others[0]
    at = before.index(lost.node_id)
    three.remove_node(lost, allow_graceful=False)
    wait_until(lambda: state(group) == "RESCHEDULING", message="the bundle is lost")
    kept = before[:at] + before[at + 1 :]
    inside = [node for node in places(group) if node]
    assert inside == kept, "the others stay where they are"
    still = node_id.options(scheduling_strategy=InGroup(group, (at + 1) % 3), num_cpus=0)
    assert ray.get(still.remote(), timeout=30) == before[(at + 1) % 3]
    new = three.add_node(num_cpus=1)
    wait_until(lambda: state(group) == "CREATED", message="it is placed again")
    assert places(group)[at] == new.node_id
    assert ray.get(actors[at].node_id.remote(), timeout=30) == new.node_id
    remove_placement_group(group)
    wait_until(lambda: free() == 5, message="all of it is free again")


PROGRAM = """
import sys
import oxiray as ray
from oxiray.util import placement_group
ray.init(address=sys.argv[1], namespace="mine")
detached = placement_group([{"CPU": 1}], name="stays", lifetime="detached")
group = placement_group([{"CPU": 1}], name="goes")
assert detached.wait(20) and group.wait(20)

@ray.remote(num_cpus=0)
class Maker:
    def make(self):
        self.group = placement_group([{"CPU": 1}], name="of an actor")
        return self.group.wait(20)

maker = Maker.options(name="maker", lifetime="detached").remote()
assert ray.get(maker.make.remote())
print("made")
"""


def test_groups_end_with_their_program_unless_detached(three):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, three.address], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip().endswith("made"), done.stderr
    wait_until(lambda: free() == 4, message="what was not detached has ended")
    found = get_placement_group("stays")
    where = Member.options(scheduling_strategy=InGroup(found)).remote()
    assert ray.get(where.group_id.remote(), timeout=30) == found.id.hex()
    assert get_placement_group("of an actor").wait(5)
    with pytest.raises(ValueError, match="goes"):
        get_placement_group("goes")
    ray.kill(ray.get_actor("maker"))
    wait_until(lambda: free() == 5, message="what a detached actor made ends with it")
    remove_placement_group(found)
    wait_until(lambda: free() == 6, message="all of it is free again")


MAKER = """
import os, sys
import oxiray as ray
from oxiray.util import placement_group
ray.init(address=sys.argv[1], namespace="mine")

@ray.remote(num_cpus=0, max_restarts=-1)
class Maker:
    def make(self):
        assert placement_group([{"CPU": 1}], name="made").wait(20)

    def pid(self):
        return os.getpid()

maker = Maker.options(name="maker", lifetime="detached").remote()
ray.get(maker.make.remote())
"""


def test_a_group_lives_as_long_as_the_detached_actor_that_made_it(three):
    subprocess.run([sys.executable, "-c", MAKER, three.address], check=True, timeout=60)
    maker = ray.get_actor("maker")
    before = ray.get(maker.pid.remote(), timeout=30)
    ray.kill(maker, no_restart=False)

    def is_back():
        try:
            return ray.get(maker.pid.remote(), timeout=30) != before
        except ray.exceptions.ActorUnavailableError:
            return False

    wait_until(is_back, message="the actor is started again")
    group = get_placement_group("made")
    inside = Member.options(scheduling_strategy=InGroup(group)).remote()
    assert ray.get(inside.group_id.remote(), timeout=30) == group.id.hex()
    ray.kill(maker)
    wait_until(lambda: state(group) == "REMOVED", message="it ends with its maker")


def test_what_no_node_could_hold_is_infeasible(three):
    def scheduling(group):
        return placement_group_table(group)["stats"]["scheduling_state"]

    here = placement_group([{"CPU": 2}] * 3, strategy="STRICT_SPREAD")
    assert here.wait(10) and scheduling(here) == "FINISHED"
    never = placement_group([{"CPU": 4, "GPU": 1}], strategy="STRICT_PACK")
    later = placement_group([{"CPU": 2}])
    assert not never.wait(0.2) and not later.wait(0)
    assert (scheduling(never), scheduling(later)) == ("INFEASIBLE", "NO_RESOURCES")
    (row,) = [
        row
        for row in list_placement_groups(detail=True)
        if row.placement_group_id == never.id.hex()
    ]
    assert row.state == "PENDING" and row.stats["scheduling_state"] == "INFEASIBLE"
    three.add_node(num_cpus=4, num_gpus=1)
    assert never.wait(20) and scheduling(never) == "FINISHED"
    assert placement_group_table(never)["stats"]["end_to_end_creation_latency_ms"] > 0
    remove_placement_group(never)
    wait_until(lambda: scheduling(never) == "REMOVED", message="it is removed")


def test_groups_outlive_the_control_service(three):
    group = placement_group([{"CPU": 1}] * 3, strategy="STRICT_SPREAD", name="kept")
    gone = placement_group([{"CPU": 1}])
    assert group.wait(10) and gone.wait(10)
    before = places(group)
    remove_placement_group(gone)
    waits = placement_group([{"CPU": 5}])
    three.head_node.kill_gcs_server()
    while_away = placement_group([{"CPU": 1}])
    three.head_node.start_gcs_server()
    assert while_away.wait(30)
    assert get_placement_group("kept") == group and places(group) == before
    assert state(waits) == "PENDING" and state(gone) == "REMOVED"
    actors = [Member.options(scheduling_strategy=InGroup(group, n)).remote() for n in range(3)]
    assert ray.get([actor.node_id.remote() for actor in actors], timeout=30) == before
    for one in (group, while_away):
        remove_placement_group(one)
    wait_until(lambda: free() == 6, message="all of it is free again")


def test_bundles_go_to_nodes_with_their_labels():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    red = cluster.add_node(num_cpus=2, labels={"colour": "red"})
    blue = cluster.add_node(num_cpus=2, labels={"colour": "blue"})
    cluster.connect()
    try:
        wanted = [{"colour": "blue"}, {"colour": "in(red,green)"}, {"colour": "!blue"}]
        group = placement_group([{"CPU": 1}] * 3, bundle_label_selector=wanted)
        assert group.wait(10)
        first, second, third = places(group)
        assert (first, second) == (blue.node_id, red.node_id) and third != blue.node_id
        nowhere = placement_group([{"CPU": 1}], bundle_label_selector=[{"colour": "green"}])
        assert not nowhere.wait(0.2)
        assert "colour" in placement_group_table(nowhere)["reason"]
    finally:
        ray.shutdown()
        cluster.shutdown()
