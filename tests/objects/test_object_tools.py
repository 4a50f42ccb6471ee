"""`internal.free`, `put(_owner=)`, `get_object_locations`, and `oxiray memory`."""

import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import oxiray as ray
import pytest
from oxiray import _native
from oxiray.exceptions import ObjectFreedError, ObjectLostError, OwnerDiedError

LARGE = 200_000  # eight-byte integers: in the store


def until(condition, what, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.01)


def raises(error, ref):
    try:
        ray.get(ref)
    except error:
        return True
    return False


def store_is_empty():
    view = _native.cluster_view()
    return view["store_used"] == 0 and view["store_objects"] == 0


@ray.remote
class Keeper:
    def __init__(self):
        self.kept = None

    def keep(self, value):
        self.kept = value
        return os.getpid()

    def get_kept(self):
        return ray.get(self.kept[0])

    def put(self, size):
        return [ray.put(np.arange(size))]

    def counts(self):
        return _native.counts()

    def free(self, refs):
        ray.internal.free(refs)


@pytest.fixture
def cluster():
    ray.shutdown()
    ray.init(num_cpus=2, object_store_memory=100 * 1024 * 1024, logging_level="error")
    yield
    ray.shutdown()


class TestFree:
    def test_frees_now_and_get_says_so(self, cluster):
        small, large = ray.put(1), ray.put(np.arange(LARGE))
        ray.internal.free([small, large])
        for ref in (small, large):
            with pytest.raises(ObjectFreedError):
                ray.get(ref)
        until(store_is_empty, "the freed object left the store")

    def test_one_ref_without_a_list(self, cluster):
        ref = ray.put(np.arange(LARGE))
        ray.internal.free(ref)
        with pytest.raises(ObjectLostError):
            ray.get(ref)

    def test_values_that_get_returned_stay(self, cluster):
        ref = ray.put(np.arange(LARGE))
        value = ray.get(ref)
        ray.internal.free([ref])
        filler = [ray.put(np.zeros(LARGE)) for _ in range(5)]
        assert (value == np.arange(LARGE)).all()
        del filler

    def test_a_borrower_can_free(self, cluster):
        ref, keeper = ray.put(np.arange(LARGE)), Keeper.remote()
        ray.get(keeper.free.remote([ref]))
        until(lambda: raises(ObjectFreedError, ref), "the owner heard of it")

    def test_what_a_freed_object_contains_goes_with_it(self, cluster):
        outer = ray.put([ray.put(np.arange(LARGE))])
        ray.internal.free([outer])
        until(store_is_empty, "the inner object went")

    def test_a_queued_task_hears_of_it(self, cluster):
        @ray.remote(num_cpus=2)
        def first(total):
            time.sleep(0.5)

        @ray.remote(num_cpus=2)
        def second(value):
            return len(value)

        ref = ray.put(np.arange(LARGE))
        busy = first.remote(1)
        queued = [second.remote(ref) for _ in range(3)]
        ray.internal.free([ref])
        for result in queued:
            # Freed, or lost if its worker had it in its queue already.
            with pytest.raises(ObjectLostError):
                ray.get(result)
        ray.get(busy)

    @pytest.mark.parametrize("wrong", [1, "x", None, [1]])
    def test_wrong_arguments(self, cluster, wrong):
        with pytest.raises((TypeError, ValueError), match="free"):
            ray.internal.free(wrong)


class TestPutForAnOwner:
    def test_outlives_the_process_that_put_it(self, cluster):
        owner = Keeper.remote()

        @ray.remote(max_calls=1)
        def make(owner):
            # For the actor to own: this process ends with the call.
            return [ray.put(np.arange(LARGE), _owner=owner), ray.put(7, _owner=owner)], os.getpid()

        (large, small), pid = ray.get(make.remote(owner))
        until(lambda: not os.path.exists(f"/proc/{pid}"), "the maker ended")
        assert ray.get(small) == 7
        assert (ray.get(large) == np.arange(LARGE)).all()

    def test_dies_with_its_owner(self, cluster):
        owner = Keeper.remote()
        large, small = ray.put(np.arange(LARGE), _owner=owner), ray.put([1], _owner=owner)
        view = ray.get(large)
        ray.kill(owner)

        until(lambda ref=large: raises(OwnerDiedError, ref), "the owner's death was heard of")
        assert (view == np.arange(LARGE)).all()
        del view, large, small
        until(store_is_empty, "what the dead owned is gone")

    def test_references_inside_are_held_by_the_new_owner(self, cluster):
        owner = Keeper.remote()
        outer = ray.put({"inner": ray.put(np.arange(LARGE))}, _owner=owner)
        inner = ray.get(outer)["inner"]
        assert ray.get(inner)[-1] == LARGE - 1
        del inner, outer
        until(store_is_empty, "both went")
        until(lambda: ray.get(owner.counts.remote())[0] <= 1, "the owner forgot them")

    def test_the_calling_actor_itself(self, cluster):
        @ray.remote
        class Own:
            def put(self, me):
                return [ray.put(np.arange(LARGE), _owner=me)]

        actor = Own.remote()
        [ref] = ray.get(actor.put.remote(actor))
        assert ray.get(ref)[5] == 5

    def test_a_dead_owner(self, cluster):
        owner = Keeper.remote()
        ray.get(owner.keep.remote(1))
        ray.kill(owner)

        def refuses():
            try:
                ray.put(np.arange(LARGE), _owner=owner)
            except ray.exceptions.ActorDiedError:
                return True
            return False

        until(refuses, "put for a dead actor is refused")
        until(store_is_empty, "and leaves nothing")

    def test_not_an_actor(self, cluster):
        with pytest.raises(TypeError, match="_owner"):
            ray.put(1, _owner="actor")


class TestLocations:
    def test_size_node_and_disk(self, cluster):
        small, large = ray.put(b"x" * 100), ray.put(np.arange(LARGE))
        found = ray.experimental.get_object_locations([small, large])
        node = ray.nodes()[0]["NodeID"]
        assert found[small]["node_ids"] == [node]
        assert found[large]["object_size"] >= 8 * LARGE
        assert not found[large]["did_spill"]

    def test_spilled(self, cluster):
        refs = [ray.put(np.zeros(2_000_000)) for _ in range(12)]
        found = ray.experimental.get_object_locations(refs)
        assert any(place["did_spill"] for place in found.values())
        assert all(place["object_size"] >= 16_000_000 for place in found.values())

    def test_what_is_not_there_yet(self, cluster, tmp_path):
        gate = tmp_path / "gate"

        @ray.remote
        def wait_for_gate():
            while not gate.exists():
                time.sleep(0.01)

        ref = wait_for_gate.remote()
        found = ray.experimental.get_object_locations([ref], timeout_ms=10)
        assert found[ref] == {"node_ids": [], "object_size": None, "did_spill": False}
        gate.touch()
        assert ray.experimental.get_object_locations([ref])[ref]["object_size"] is not None

    @pytest.mark.parametrize("timeout", [-2, float("nan"), "1"])
    def test_wrong_timeout(self, cluster, timeout):
        with pytest.raises((TypeError, ValueError), match="timeout_ms"):
            ray.experimental.get_object_locations([ray.put(1)], timeout_ms=timeout)


PROGRAM = """
import subprocess, sys, time
import numpy as np
import oxiray as ray
ray.init(num_cpus=1, object_store_memory=100 * 1024 * 1024, logging_level="error")

@ray.remote
class Holder:
    def hold(self, refs, value):
        self.refs, self.value = refs, value

holder = Holder.remote()
ref = ray.put(np.arange(300_000))
ray.get(holder.hold.remote([ref], ref))
outer = ray.put([ref])
view = ray.get(ref)
print(subprocess.run([sys.argv[1], "memory", *sys.argv[2:]], text=True, capture_output=True).stdout)
"""


@pytest.fixture
def place():
    # Not tmp_path: a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="oxm") as path:
        yield path


def memory(place, *arguments, **environment):
    """What `oxiray memory` says while PROGRAM runs, in a world of its own."""
    environment = {**os.environ, "OXIRAY_TMPDIR": str(place), **environment}
    program = os.path.join(os.path.dirname(sys.executable), "oxiray")
    command = [sys.executable, "-c", PROGRAM, program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestMemory:
    def test_shows_what_holds_an_object(self, place):
        lines = memory(place).splitlines()
        assert any("object store" in line and "2.3 MiB of 100.0 MiB" in line for line in lines)
        [largest] = [line for line in lines if "driver" in line and "2.3 MiB" in line]
        for held_by in ("LOCAL_REFERENCE", "CAPTURED_IN_OBJECT", "PINNED_IN_MEMORY", "BORROWED"):
            assert held_by in largest, lines
        assert any("worker" in line and "PINNED_IN_MEMORY" in line for line in lines)
        assert any("ACTOR_HANDLE" in line for line in lines)
        assert any("RAY_record_ref_creation_sites" in line for line in lines)

    def test_call_sites_when_asked_for(self, place):
        text = memory(place, RAY_record_ref_creation_sites="1")
        assert "(put) <string>:" in text and "in <module>" in text

    def test_totals_alone(self, place):
        text = memory(place, "--stats-only")
        assert "memory" in text and "LOCAL_REFERENCE" not in text

    def test_nothing_runs(self, place):
        program = os.path.join(os.path.dirname(sys.executable), "oxiray")
        environment = {**os.environ, "OXIRAY_TMPDIR": str(place)}
        done = subprocess.run([program, "memory"], capture_output=True, text=True, env=environment)
        assert done.returncode == 3 and "no Oxiray session" in done.stderr
