"""`util.collective`: groups, their operations, and what is told when a member dies."""

from __future__ import annotations

import os
import time

import numpy
import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.util import collective
from oxiray.util.collective.types import ReduceOp

# One array goes by way of the hub, the other by the object store; one cannot be cut evenly.
SIZES = [(3,), (5, 20_011)]

# Of a member that died; or of the one that died and had formed the group.
GONE = r"rank \d, process \d+ of node \w+, has died|the process that formed it"


class Member:
    """Calls `collective` as it is told."""

    def join(self, size, rank, name, **options):
        collective.init_collective_group(size, rank, "gloo", name, **options)

    def do(self, operation, *args, **kwargs):
        getattr(collective, operation)(*args, **kwargs)
        return args[0]  # an argument is the caller's own: what is written into it comes back

    def on_copy(self, operation, array, *args, **kwargs):
        mine = array.copy()
        getattr(collective, operation)(mine, *args, **kwargs)
        return mine

    def gather(self, array, size, name):
        outs = [numpy.zeros_like(array) for _ in range(size)]
        collective.allgather(outs, array, name)
        return outs

    def scatter(self, arrays, name):
        out = numpy.zeros_like(arrays[0])
        collective.reducescatter(out, arrays, name)
        return out

    def ask(self, question, *args):
        return getattr(collective, question)(*args)

    def die(self):
        os._exit(3)


@pytest.fixture
def members(cluster, request):
    made = [ray.remote(num_cpus=0)(Member).remote() for _ in range(3)]
    name = f"g-{request.node.name}"
    ray.get([member.join.remote(3, rank, name) for rank, member in enumerate(made)])
    return made, name


def arrays_of(shape, dtype=numpy.float64):
    whole = [numpy.arange(numpy.prod(shape)) * (rank + 1) + rank for rank in range(3)]
    return [array.reshape(shape).astype(dtype) for array in whole]


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("op", list(ReduceOp))
def test_allreduce(members, shape, op):
    actors, name = members
    given = arrays_of(shape)
    calls = zip(actors, given, strict=True)
    results = ray.get([a.on_copy.remote("allreduce", x, name, op) for a, x in calls])
    wanted = {
        ReduceOp.SUM: sum(given),
        ReduceOp.PRODUCT: given[0] * given[1] * given[2],
        ReduceOp.MIN: numpy.minimum.reduce(given),
        ReduceOp.MAX: numpy.maximum.reduce(given),
    }[op]
    for result in results:
        numpy.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("shape", SIZES)
def test_reduce_and_broadcast(members, shape):
    actors, name = members
    given = arrays_of(shape, numpy.int64)
    calls = list(zip(actors, given, strict=True))
    results = ray.get([a.on_copy.remote("reduce", x, 2, name) for a, x in calls])
    numpy.testing.assert_array_equal(results[2], sum(given))
    numpy.testing.assert_array_equal(results[0], given[0])
    results = ray.get([a.on_copy.remote("broadcast", x, 1, name) for a, x in calls])
    for result in results:
        numpy.testing.assert_array_equal(result, given[1])


@pytest.mark.parametrize("shape", SIZES)
def test_allgather_and_reducescatter(members, shape):
    actors, name = members
    given = arrays_of(shape)
    calls = list(zip(actors, given, strict=True))
    for result in ray.get([a.gather.remote(x, 3, name) for a, x in calls]):
        for out, wanted in zip(result, given, strict=True):
            numpy.testing.assert_array_equal(out, wanted)
    lists = [[x + 100 * at for at in range(3)] for x in given]
    results = ray.get([a.scatter.remote(x, name) for a, x in zip(actors, lists, strict=True)])
    for rank, result in enumerate(results):
        numpy.testing.assert_array_equal(result, sum(given) + 300 * rank)


def test_send_and_receive_in_order(members):
    actors, name = members
    first, second = numpy.full(4, 1.0), numpy.full(100_000, 2.0)
    ray.get([actors[0].ask.remote("send", x, 2, name) for x in (first, second)])
    a = actors[2].on_copy.remote("recv", numpy.zeros(4), 0, name)
    b = actors[2].on_copy.remote("recv", numpy.zeros(100_000), 0, name)
    numpy.testing.assert_array_equal(ray.get(a), first)
    numpy.testing.assert_array_equal(ray.get(b), second)


def test_barrier_waits_for_all(members):
    actors, name = members
    waiting = [actor.ask.remote("barrier", name) for actor in actors[:2]]
    assert ray.wait(waiting, timeout=0.3) == ([], waiting)
    ray.get([*waiting, actors[2].ask.remote("barrier", name)], timeout=20)


def test_a_declared_group_is_joined_by_its_first_operation(cluster):
    actors = [ray.remote(num_cpus=0)(Member).remote() for _ in range(2)]
    collective.create_collective_group(actors, 2, [1, 0], "gloo", "declared")
    try:
        given = [numpy.full(5, 1.0), numpy.full(5, 5.0)]
        calls = zip(actors, given, strict=True)
        for result in ray.get([a.on_copy.remote("allreduce", x, "declared") for a, x in calls]):
            numpy.testing.assert_array_equal(result, numpy.full(5, 6.0))
        assert ray.get([a.ask.remote("get_rank", "declared") for a in actors]) == [1, 0]
        sizes = [a.ask.remote("get_collective_group_size", "declared") for a in actors]
        assert ray.get(sizes) == [2, 2]
    finally:
        collective.destroy_collective_group("declared")


def test_tasks_can_be_members(cluster):
    @ray.remote(num_cpus=0)
    def total(rank):
        collective.init_collective_group(2, rank, group_name="tasks")
        array = numpy.full(3, float(rank))
        collective.allreduce(array, "tasks")
        collective.destroy_collective_group("tasks")
        return array.tolist()

    assert ray.get([total.remote(0), total.remote(1)]) == [[1.0] * 3] * 2


@pytest.mark.parametrize("size", [3, 100_000])
def test_a_member_that_dies_fails_all_in_seconds(members, size):
    actors, name = members
    calls = [a.on_copy.remote("allreduce", numpy.ones(size), name) for a in actors[:2]]
    begun = time.monotonic()
    actors[2].die.remote()
    for call in calls:
        with pytest.raises(collective.CollectiveError, match=GONE):
            ray.get(call, timeout=30)
    assert time.monotonic() - begun < 10
    with pytest.raises(collective.CollectiveError, match=GONE):
        ray.get(actors[0].ask.remote("barrier", name), timeout=30)
    # Formed anew, with another in place of the dead one, it works.
    actors[2] = ray.remote(num_cpus=0)(Member).remote()
    ray.get([a.ask.remote("destroy_collective_group", name) for a in actors])
    ray.get([a.join.remote(3, rank, name) for rank, a in enumerate(actors)])
    ray.get([a.ask.remote("barrier", name) for a in actors], timeout=30)


def test_a_receiver_hears_of_its_senders_death(members):
    actors, name = members
    call = actors[0].on_copy.remote("recv", numpy.zeros(2), 1, name)
    actors[1].die.remote()
    with pytest.raises(collective.CollectiveError, match=GONE):
        ray.get(call, timeout=30)


def test_members_that_do_different_things_are_told(members):
    actors, name = members
    calls = [
        actors[0].on_copy.remote("allreduce", numpy.ones(3), name),
        actors[1].on_copy.remote("allreduce", numpy.ones(4), name),
        actors[2].ask.remote("barrier", name),
    ]
    for call in calls:
        with pytest.raises(collective.CollectiveError, match="do not do the same"):
            ray.get(call, timeout=30)


def test_a_group_of_the_wrong_size(cluster):
    a, b = (ray.remote(num_cpus=0)(Member).remote() for _ in range(2))
    ray.get(a.join.remote(2, 0, "wrong", gloo_timeout=500))
    with pytest.raises(ValueError, match="disagree on its size: 2 and 3"):
        ray.get(b.join.remote(3, 1, "wrong"))
    with pytest.raises(ValueError, match="rank 0 is taken"):
        ray.get(b.join.remote(2, 0, "wrong"))
    with pytest.raises(collective.CollectiveError, match=r"has not joined within 0\.5 s"):
        ray.get(a.ask.remote("barrier", "wrong"), timeout=30)


def test_what_is_wrong_is_said(members):
    actors, name = members
    ask = actors[0].ask

    def fails(error, says, call):
        with pytest.raises(error, match=says):
            ray.get(call, timeout=30)

    fails(ValueError, "read-only", actors[0].do.remote("allreduce", numpy.ones(10**5), name))
    fails(ValueError, "array of NumPy", ask.remote("allreduce", [1, 2], name))
    fails(
        ValueError, "src_rank must be from 0 to 2", ask.remote("broadcast", numpy.ones(1), 3, name)
    )
    fails(RuntimeError, "is self", ask.remote("send", numpy.ones(1), 0, name))
    fails(RuntimeError, "not initialized", ask.remote("barrier", "no such group"))
    fails(ValueError, "Unrecognized backend", ask.remote("init_collective_group", 1, 0, "mpi", "x"))
    fails(ValueError, "rank must be", ask.remote("init_collective_group", 1, 1, "gloo", "x"))
    fails(RuntimeError, "already", ask.remote("init_collective_group", 3, 0, "gloo", name))
    fails(NotImplementedError, "graphics", ask.remote("allreduce_multigpu", [], name))
    assert ray.get(ask.remote("get_rank", "no such group")) == -1


def test_the_meeting_place_ends_with_the_group(members):
    actors, name = members
    assert f"_collective:{name}" in ray.util.list_named_actors()
    ray.get([a.ask.remote("destroy_collective_group", name) for a in actors])
    wait_until(lambda: f"_collective:{name}" not in ray.util.list_named_actors())
