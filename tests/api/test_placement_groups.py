"""Placement groups on one node: reserving, being in one, children, removal, bad input."""

from __future__ import annotations

import pickle
import time

import oxiray as ray
import pytest
from oxiray.exceptions import (
    ActorPlacementGroupRemoved,
    GetTimeoutError,
    TaskPlacementGroupRemoved,
    WorkerCrashedError,
)
from oxiray.util import (
    get_current_placement_group,
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from oxiray.util.placement_group import PlacementGroup
from oxiray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as InGroup


@pytest.fixture
def session():
    ray.init(num_cpus=4, num_gpus=2, resources={"mine": 3})
    yield
    ray.shutdown()


@ray.remote
def where():
    group = get_current_placement_group()
    return group.id.hex() if group else None


def until(condition, timeout=10):
    """Waits for a condition; what it was at last."""
    end = time.monotonic() + timeout
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_room_is_reserved_used_and_given_back(session):
    group = placement_group([{"CPU": 2}, {"CPU": 1, "mine": 2}])
    assert ray.get(group.ready()) == group
    assert group.wait(1) and group.bundle_count == 2
    assert group.bundle_specs == [{"CPU": 2.0}, {"CPU": 1.0, "mine": 2.0}]
    assert ray.available_resources()["CPU"] == 1
    inside = where.options(scheduling_strategy=InGroup(group))
    assert ray.get([inside.remote() for _ in range(20)]) == [group.id.hex()] * 20
    assert ray.get(where.remote()) is None
    second = where.options(
        scheduling_strategy=InGroup(group, placement_group_bundle_index=1), resources={"mine": 2}
    )
    assert ray.get(second.remote()) == group.id.hex()
    table = placement_group_table(group)
    assert (table["state"], table["strategy"], table["name"]) == ("CREATED", "PACK", "")
    assert table["bundles"] == {0: {"CPU": 2.0}, 1: {"CPU": 1.0, "mine": 2.0}}
    remove_placement_group(group)
    assert until(lambda: ray.available_resources()["CPU"] == 4)
    assert placement_group_table(group)["state"] == "REMOVED"
    assert group.id.hex() in placement_group_table()
    remove_placement_group(group)  # twice is once


def test_what_is_in_a_group_takes_of_its_bundles_alone(session):
    group = placement_group([{"CPU": 1}])

    @ray.remote(scheduling_strategy=InGroup(group))
    def inside():
        time.sleep(0.2)
        return ray.get_runtime_context().get_assigned_resources()

    @ray.remote
    def outside():
        return 1

    began = time.monotonic()
    two = [inside.remote(), inside.remote()]
    assert ray.get([outside.remote() for _ in range(10)], timeout=10) == [1] * 10
    assert ray.get(two) == [{"CPU": 1.0}] * 2
    assert time.monotonic() - began >= 0.4, "one after the other"


def test_gpus_of_a_bundle_are_its_own(session):
    group = placement_group([{"CPU": 1, "GPU": 1}, {"CPU": 1, "GPU": 1}])

    @ray.remote(num_gpus=1)
    class Holder:
        def ids(self):
            return ray.get_gpu_ids()

    at = [Holder.options(scheduling_strategy=InGroup(group, index)).remote() for index in (0, 1)]
    assert sorted(ray.get([holder.ids.remote() for holder in at])) == [[0], [1]]
    assert ray.available_resources().get("GPU", 0) == 0


def test_an_actor_waits_for_its_group_and_lives_in_it(session):
    filler = placement_group([{"CPU": 4}])
    assert filler.wait(5)
    group = placement_group([{"CPU": 1}])
    assert not group.wait(0.2)

    @ray.remote(num_cpus=1)
    class Here:
        def where(self):
            return get_current_placement_group() == group

    actor = Here.options(placement_group=group, placement_group_bundle_index=0).remote()
    with pytest.raises(GetTimeoutError):
        ray.get(actor.where.remote(), timeout=0.3)
    remove_placement_group(filler)
    assert ray.get(actor.where.remote(), timeout=10)


def test_children_are_captured_if_that_is_wanted(session):
    group = placement_group([{"CPU": 2}])

    @ray.remote
    def parent():
        context = ray.get_runtime_context()
        captures = context.should_capture_child_tasks_in_placement_group
        free = where.options(scheduling_strategy=InGroup(None))
        default = where.options(scheduling_strategy="DEFAULT")
        children = [where.remote(), free.remote(), default.remote()]
        return captures, context.get_placement_group_id(), ray.get(children)

    inside = parent.options(
        scheduling_strategy=InGroup(group, placement_group_capture_child_tasks=True)
    )
    own = group.id.hex()
    assert ray.get(inside.remote(), timeout=10) == (True, own, [own, None, None])
    apart = parent.options(scheduling_strategy=InGroup(group))
    assert ray.get(apart.remote(), timeout=10) == (False, own, [None] * 3)
    # The same workers serve others, too.
    assert ray.get([where.remote() for _ in range(8)]) == [None] * 8
    assert ray.get(parent.remote(), timeout=10) == (False, None, [None] * 3)

    @ray.remote(num_cpus=1)
    class Parent:
        def __init__(self):
            self.child = Child.remote()

        def wheres(self):
            return ray.get([self.child.where.remote(), where.remote()])

    @ray.remote(num_cpus=0)
    class Child:
        def where(self):
            return ray.get_runtime_context().get_placement_group_id()

    actor = Parent.options(
        scheduling_strategy=InGroup(group, placement_group_capture_child_tasks=True)
    ).remote()
    assert ray.get(actor.wheres.remote(), timeout=10) == [own, own]


def test_a_captured_child_that_cannot_fit_is_refused(session):
    group = placement_group([{"CPU": 1}])

    @ray.remote
    def parent():
        with pytest.raises(ValueError, match="cannot fit into any bundles"):
            where.options(num_cpus=2).remote()
        return True

    inside = parent.options(
        scheduling_strategy=InGroup(group, placement_group_capture_child_tasks=True)
    )
    assert ray.get(inside.remote(), timeout=10)


def test_removal_ends_what_is_inside(session, tmp_path):
    group = placement_group([{"CPU": 2}])
    begun = tmp_path / "begun"

    @ray.remote(max_retries=0)
    def sleep():
        begun.touch()
        time.sleep(60)

    @ray.remote
    def pending():
        return 1

    @ray.remote(num_cpus=1)
    class Here:
        def ping(self):
            return 1

    inside = InGroup(group)
    actor = Here.options(scheduling_strategy=inside).remote()
    assert ray.get(actor.ping.remote(), timeout=10) == 1
    running = sleep.options(scheduling_strategy=inside).remote()
    while not begun.exists():
        assert not ray.wait([running], timeout=0.01)[0]
    waiting = pending.options(scheduling_strategy=inside).remote()
    never = Here.options(scheduling_strategy=inside).remote()
    assert not ray.wait([running, waiting], timeout=0.3)[0]
    remove_placement_group(group)
    with pytest.raises((WorkerCrashedError, TaskPlacementGroupRemoved)):
        ray.get(running, timeout=10)
    with pytest.raises(TaskPlacementGroupRemoved, match="removed"):
        ray.get(waiting, timeout=10)
    with pytest.raises(ray.exceptions.RayActorError, match="placement group was removed"):
        ray.get(actor.ping.remote(), timeout=10)
    with pytest.raises(TaskPlacementGroupRemoved):
        ray.get(pending.options(scheduling_strategy=inside).remote(), timeout=10)
    late = Here.options(scheduling_strategy=inside).remote()
    with pytest.raises(ActorPlacementGroupRemoved):
        ray.get(late.ping.remote(), timeout=10)
    with pytest.raises(ActorPlacementGroupRemoved):
        ray.get(never.ping.remote(), timeout=10)
    with pytest.raises(TaskPlacementGroupRemoved):
        ray.get(group.ready(), timeout=10)
    with pytest.raises(ValueError, match=r"does not exist: it was removed by remove_placement"):
        group.wait(10)
    assert until(lambda: ray.available_resources()["CPU"] == 4)


def test_who_needs_little_leaves_a_bundle_that_has_more_to_others(session):
    group = placement_group([{"CPU": 1, "GPU": 1}] + [{"CPU": 1}] * 2)
    inside = InGroup(group)

    @ray.remote
    class Here:
        def ping(self):
            return 1

    few = [Here.options(num_cpus=1, scheduling_strategy=inside).remote() for _ in range(2)]
    ray.get([actor.ping.remote() for actor in few], timeout=10)
    rare = Here.options(num_cpus=1, num_gpus=1, scheduling_strategy=inside).remote()
    ray.get(rare.ping.remote(), timeout=10)
    remove_placement_group(group)


def test_names(session):
    group = placement_group([{"CPU": 1}], name="mine")
    found = get_placement_group("mine")
    assert found == group and found.bundle_specs == [{"CPU": 1.0}]
    for kind in (ValueError, ray.exceptions.RaySystemError):
        with pytest.raises(kind, match=r"^Failed to create placement group 'mine'.*taken"):
            placement_group([{"CPU": 1}], name="mine")
    remove_placement_group(group)
    with pytest.raises(ValueError, match="Failed to look up placement group with name: mine"):
        get_placement_group("mine")
    again = placement_group([{"CPU": 1}], name="mine")
    assert again.wait(5) and get_placement_group("mine") == again != group


def test_a_handle_can_be_passed_on(session):
    group = placement_group([{"CPU": 2}])
    copy = pickle.loads(pickle.dumps(group))
    assert copy == group and hash(copy) == hash(group) and copy.bundle_specs == group.bundle_specs

    @ray.remote
    def use(group):
        assert group.wait(5) and ray.get(group.ready()) == group
        return ray.get(where.options(scheduling_strategy=InGroup(group)).remote())

    assert ray.get(use.remote(group), timeout=10) == group.id.hex()

    @ray.remote
    def make():
        made = placement_group([{"CPU": 1}])
        assert made.wait(5)
        return made

    made = ray.get(make.remote())
    assert ray.get(where.options(scheduling_strategy=InGroup(made)).remote()) == made.id.hex()


def test_the_empty_group_is_none(session):
    none = PlacementGroup.empty()
    assert none.is_empty and none.wait(0) and ray.get(none.ready()) == none
    assert ray.get(where.options(scheduling_strategy=InGroup(none)).remote()) is None
    assert ray.get(where.options(placement_group=None).remote()) is None


def test_what_no_cluster_can_hold_waits_and_says_why(session, capfd):
    group = placement_group([{"CPU": 1}, {"CPU": 400}], strategy="SPREAD", name="huge")
    assert not group.wait(0.1)
    with pytest.raises(GetTimeoutError):
        ray.get(group.ready(), timeout=0.1)
    reason = placement_group_table(group)["reason"]
    assert "bundle 1" in reason and "CPU: 400" in reason
    said = ""

    def warned():
        nonlocal said
        said += "".join(capfd.readouterr())
        return "cannot be created" in said

    assert until(warned), said
    assert '"huge"' in said and "CPU: 400" in said
    assert ray.available_resources()["CPU"] == 4, "nothing is held meanwhile"
    other = placement_group([{"CPU": 4}])
    assert other.wait(5), "who waits does not keep others from being created"


def test_a_group_is_created_while_tasks_keep_coming(session):
    @ray.remote
    def short():
        time.sleep(0.005)

    running = [short.remote() for _ in range(50)]
    group = placement_group([{"CPU": 2}, {"CPU": 2}])
    end = time.monotonic() + 20
    while not group.wait(0) and time.monotonic() < end:
        done, running = ray.wait(running, num_returns=10, timeout=1)
        running += [short.remote() for _ in done]
    assert group.wait(0), placement_group_table(group)["reason"]
    remove_placement_group(group)
    ray.get(running, timeout=30)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"bundles": "CPU"}, "must be a list"),
        ({"bundles": []}, "non-empty list"),
        ({"bundles": [1]}, "resource dictionaries"),
        ({"bundles": [{"CPU": "1"}]}, "resource dictionaries"),
        ({"bundles": [{}]}, "only 0 values"),
        ({"bundles": [{"CPU": 0}]}, "only 0 values"),
        ({"bundles": [{"CPU": -1}]}, "cannot be negative"),
        ({"bundles": [{"CPU": float("nan")}]}, "cannot be negative"),
        ({"bundles": [{"CPU": 1}], "strategy": "TIGHT"}, "Invalid placement group strategy"),
        ({"bundles": [{"CPU": 1}], "strategy": "strictpack"}, "Did you mean 'STRICT_PACK'"),
        ({"bundles": [{"CPU": 1}], "lifetime": "long"}, "lifetime"),
        ({"bundles": [{"CPU": 1}], "bundle_label_selector": [{}, {}]}, "length"),
        ({"bundles": [{"CPU": 1}], "bundle_label_selector": [{"a": 1}]}, "string dictionary"),
        ({"bundles": [{"CPU": 1}], "name": 5}, "must be a string"),
        ({"bundles": [{"x" * 300: 1}] * 1000}, "name of a resource"),
        ({"bundles": [{"y" * 200: 1}] * 1000}, "bytes together"),
    ],
)
def test_bad_groups(session, arguments, match):
    with pytest.raises(ValueError, match=match):
        placement_group(**arguments)


def test_bad_places(session):
    group = placement_group([{"CPU": 1}, {"CPU": 2}])
    for index in (2, -2):
        with pytest.raises(ValueError, match=f"bundle index {index} is invalid"):
            where.options(scheduling_strategy=InGroup(group, index)).remote()
    with pytest.raises(ValueError, match="bundle index must be -1"):
        where.options(placement_group_bundle_index=0).remote()
    with pytest.raises(ValueError, match="cannot fit into any bundles"):
        where.options(scheduling_strategy=InGroup(group), num_cpus=3).remote()
    with pytest.raises(TypeError, match="placement_group"):
        where.options(placement_group="mine")
    with pytest.raises(TypeError, match="placement group"):
        remove_placement_group("mine")
    with pytest.raises(ValueError, match="non-empty"):
        get_placement_group("")


def test_groups_come_and_go_in_numbers(session):
    for _ in range(5):
        groups = [placement_group([{"mine": 0.001}] * 3) for _ in range(200)]
        assert all(group.wait(10) for group in groups)
        for group in groups:
            remove_placement_group(group)
    assert until(lambda: ray.available_resources()["mine"] == 3)
