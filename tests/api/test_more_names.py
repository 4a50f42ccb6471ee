"""Names beside the core that programs use: iterators, groups of actors, what cannot be pickled."""

from __future__ import annotations

import io
import threading
import warnings

import oxiray as ray
import pytest
from oxiray.util import accelerators, inspect_serializability
from oxiray.util import iter as parallel


def test_parallel_iterators(cluster):
    numbers = parallel.from_range(10, num_shards=3)
    assert numbers.num_shards() == 3
    assert numbers.take(4) == [0, 3, 6, 1]
    assert sorted(numbers.for_each(lambda x: x * 2).gather_async()) == list(range(0, 20, 2))
    assert numbers.filter(lambda x: x % 2).batch(2).take(9) == [[1], [3, 5], [7, 9]]
    assert sorted(numbers.repartition(2).gather_sync()) == list(range(10))
    assert [list(shard) for shard in numbers.shards()] == [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]
    assert sorted(numbers.local_shuffle(4, seed=1).gather_sync()) == list(range(10))
    assert sorted(parallel.from_items([20, 21]).union(numbers).gather_sync())[-2:] == [20, 21]
    assert list(numbers.select_shards([1]).combine(lambda x: [x, x]).gather_sync()) == [
        3,
        3,
        4,
        4,
        5,
        5,
    ]
    first, second = numbers.gather_sync().duplicate(2)
    assert first.take(2) == [0, 3] and len(list(second)) == 10 and len(list(first)) == 8
    assert parallel.from_items([1, 2], repeat=True).take(5) == [1, 2, 1, 2, 1]
    with pytest.raises(TypeError, match="gather_sync"):
        iter(numbers)


def test_a_group_of_actors(cluster):
    from oxiray.util.actor_group import ActorGroup

    class Adder:
        def __init__(self, base):
            self.base = base

        def add(self, k):
            return self.base + k

        def get_actor_metadata(self):
            return self.base

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        group = ActorGroup(Adder, 2, num_cpus_per_actor=0, init_args=(40,))
    assert ray.get(group.add.remote(2)) == [42, 42] and group.actor_metadata == [40, 40]
    group.add_actors(1)
    group.remove_actors([0])
    assert len(group) == 2
    group.shutdown()
    with pytest.raises(RuntimeError, match="shut down"):
        _ = group.add


def test_what_cannot_be_pickled_is_shown_as_a_tree():
    lock = threading.Lock()

    def outer():
        return inner()

    def inner():
        return lock

    out = io.StringIO()
    fine, failures = inspect_serializability(outer, name="mine", print_file=out)
    assert not fine and [one.obj for one in failures] == [lock]
    assert "!!! mine" in out.getvalue() and "'lock'" in out.getvalue()
    _, shallow = inspect_serializability(outer, depth=1, print_file=io.StringIO())
    assert [one.obj for one in shallow] == [inner]
    assert inspect_serializability(3, print_file=io.StringIO()) == (True, set())


def test_options_that_name_accelerators(fresh):
    fresh(resources={f"accelerator_type:{accelerators.NVIDIA_A100}": 1})

    @ray.remote(accelerator_type=accelerators.NVIDIA_A100)
    def where():
        return ray.get_runtime_context().get_assigned_resources()

    assert ray.get(where.remote())["accelerator_type:A100"] == 0.001
    with pytest.raises(TypeError, match="accelerator_type"):
        where.options(accelerator_type=100)


def test_memory_of_the_object_store_is_an_actors(fresh):
    fresh(object_store_memory=100 * 1024 * 1024)

    @ray.remote(object_store_memory=60 * 1024 * 1024)
    class Holder:
        def ready(self):
            return True

    first = Holder.remote()
    assert ray.get(first.ready.remote())
    second = Holder.remote()
    assert ray.wait([second.ready.remote()], timeout=0.5)[0] == [], "there is not so much left"
    ray.kill(first)
    assert ray.get(second.ready.remote(), timeout=30)
    with pytest.raises(ValueError, match="not implemented for tasks"):
        ray.remote(object_store_memory=1)(lambda: None)


@pytest.mark.parametrize(
    ("slip", "error", "meant"),
    [
        (lambda: ray.remote(num_cpu=1)(len), ValueError, "num_cpus"),
        (lambda: ray.remote(lambda: 1).options(max_retry=1), ValueError, "max_retries"),
        (lambda: ray.method(num_return=1), ValueError, "num_returns"),
        (lambda: ray.init(num_cpu=1), RuntimeError, "num_cpus"),
    ],
)
def test_a_slip_of_the_pen(slip, error, meant):
    with pytest.raises(error, match=f"Did you mean '{meant}'"):
        slip()


def test_a_mistyped_method(cluster):
    @ray.remote
    class Worker:
        def compute(self):
            return 1

    with pytest.raises(AttributeError, match="Did you mean 'compute'"):
        _ = Worker.remote().comptue


def test_a_request_for_nodes_is_kept_and_said(cluster):
    from oxiray.autoscaler import sdk
    from oxiray.experimental.internal_kv import _internal_kv_get

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sdk.request_resources(num_cpus=1)
    with pytest.warns(UserWarning, match="no autoscaler"):
        sdk.request_resources(bundles=[{"CPU": 1000}])
    assert b"1000" in _internal_kv_get("resource_request", namespace="autoscaler")
    with pytest.raises(NotImplementedError, match="oxiray start"):
        sdk.teardown_cluster({})


@pytest.mark.parametrize(
    "refused",
    [
        lambda: ray.java_function("a", "b"),
        lambda: ray.cpp_function("a"),
        lambda: ray.client("ray://x").connect(),
        lambda: ray.util.connect("ray://x"),
    ],
)
def test_what_cannot_be_had_says_so(refused):
    with pytest.raises(NotImplementedError, match=r"docs/compatibility\.md"):
        refused()


def test_there_is_no_client():
    from oxiray.util.client import ray as client

    assert not client.is_connected()
    ray.util.disconnect()


def test_generic_names():
    assert ray.actor.ActorHandle[int] and ray.actor.ActorClass[int] and ray.ObjectRef[int]
    assert ray.actor.ActorProxy[int]


def test_pickling_that_says_what_is_wrong():
    from oxiray import cloudpickle

    assert cloudpickle.loads(cloudpickle.dumps_debug([1])) == [1]
    file = io.BytesIO()
    cloudpickle.dump_debug({"a": 1}, file)
    assert cloudpickle.loads(file.getvalue()) == {"a": 1}
    lock = threading.Lock()
    with pytest.raises(TypeError, match="lock") as told:
        cloudpickle.dumps_debug(lambda: lock)
    assert len(str(told.value).splitlines()) > 1
