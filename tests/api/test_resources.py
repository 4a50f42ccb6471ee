"""Resources: what there is, who holds it, GPUs, and what never fits."""

from __future__ import annotations

import ctypes
import os

import oxiray as ray
import pytest
from conftest import wait_until

pytestmark = pytest.mark.usefixtures("cluster")


def free(name):
    return ray.available_resources().get(name, 0.0)


def test_the_cluster_has_what_init_was_told():
    total = ray.cluster_resources()
    assert total["CPU"] == 4 and total["GPU"] == 2 and total["tool"] == 2
    assert total["memory"] > 0 and total["object_store_memory"] > 0
    assert total["node:__internal_head__"] == 1.0


def test_nodes():
    (node,) = ray.nodes()
    assert node["Alive"] and node["alive"]
    assert node["Resources"] == ray.cluster_resources()
    assert node["NodeID"] == ray.get_runtime_context().get_node_id()
    assert node["NodeManagerHostname"]


def test_what_runs_is_not_available_and_comes_back(gate):
    @ray.remote(num_cpus=2, resources={"tool": 0.5})
    def hold():
        gate.wait()

    wait_until(lambda: free("CPU") == 4 and free("tool") == 2)
    ref = hold.remote()
    wait_until(lambda: free("CPU") == 2 and free("tool") == 1.5)
    gate.open()
    ray.get(ref)
    wait_until(lambda: free("CPU") == 4 and free("tool") == 2)


def test_custom_resources_limit_how_many_run(tmp_path, gate):
    @ray.remote(num_cpus=0, resources={"tool": 1})
    def use(i):
        (tmp_path / f"running-{i}").touch()
        gate.wait()

    running = lambda: len(list(tmp_path.glob("running-*")))  # noqa: E731
    refs = [use.remote(i) for i in range(3)]
    wait_until(lambda: running() == 2)
    # The third waits: tasks that need no tool run meanwhile, it does not.
    ray.get([ray.remote(lambda: None).remote() for _ in range(50)])
    assert running() == 2
    gate.open()
    ray.get(refs)
    assert running() == 3


def test_fractions(meeting):
    together = meeting(4)

    @ray.remote(num_cpus=0.25, resources={"tool": 0.5})
    def attend(i):
        return together.attend(i)

    assert all(ray.get([attend.remote(i) for i in range(4)]))
    wait_until(lambda: free("CPU") == 4 and free("tool") == 2)


def test_an_actor_holds_what_it_asked_for():
    @ray.remote(num_cpus=2, resources={"tool": 1})
    class Holder:
        def ping(self):
            return ray.get_runtime_context().get_assigned_resources()

    holder = Holder.remote()
    assert ray.get(holder.ping.remote()) == {"CPU": 2.0, "tool": 1.0}
    wait_until(lambda: free("CPU") == 2 and free("tool") == 1)
    del holder
    wait_until(lambda: free("CPU") == 4 and free("tool") == 2)


def test_an_actor_that_asked_for_nothing_holds_nothing():
    @ray.remote
    class Light:
        def ping(self):
            return 1

    light = Light.remote()
    assert ray.get(light.ping.remote()) == 1
    wait_until(lambda: free("CPU") == 4)


def test_gpus_are_assigned_and_visible(meeting):
    together = meeting(2)

    @ray.remote(num_gpus=1)
    def gpu(i):
        together.attend(i)
        return ray.get_gpu_ids(), os.environ.get("CUDA_VISIBLE_DEVICES")

    results = ray.get([gpu.remote(i) for i in range(2)])
    assert sorted(ids[0] for ids, _ in results) == [0, 1]
    for ids, visible in results:
        assert visible == str(ids[0])


def test_two_gpus_for_one_task():
    @ray.remote(num_gpus=2)
    def both():
        return ray.get_gpu_ids(), os.environ["CUDA_VISIBLE_DEVICES"]

    ids, visible = ray.get(both.remote())
    assert sorted(ids) == [0, 1] and sorted(visible.split(",")) == ["0", "1"]


def test_a_gpu_can_be_shared(meeting):
    together = meeting(4)

    @ray.remote(num_gpus=0.5)
    def share(i):
        together.attend(i)
        return ray.get_gpu_ids()

    ids = ray.get([share.remote(i) for i in range(4)])
    assert sorted(one for (one,) in ids) == [0, 0, 1, 1]


def test_an_actor_keeps_its_gpu():
    @ray.remote(num_gpus=1)
    class Owner:
        def ids(self):
            return ray.get_gpu_ids()

    owner = Owner.remote()
    first = ray.get(owner.ids.remote())
    assert len(first) == 1
    assert ray.get(owner.ids.remote()) == first


def test_without_gpus_none_are_assigned():
    @ray.remote
    def none():
        return ray.get_gpu_ids(), os.environ.get("CUDA_VISIBLE_DEVICES")

    # Also in a worker that ran a task with a GPU before.
    assert (
        ray.get([none.remote() for _ in range(20)])
        == [([], os.environ.get("CUDA_VISIBLE_DEVICES"))] * 20
    )
    assert ray.get_gpu_ids() == []


def threads():
    return os.environ.get("OMP_NUM_THREADS")


@pytest.mark.skipif("OMP_NUM_THREADS" in os.environ, reason="who sets it keeps it")
def test_libraries_are_told_to_use_as_many_threads_as_there_are_cpus():
    task = ray.remote(threads)
    for cpus, told in [(2, "2"), (1, "1"), (0.5, "1"), (0, "1"), (3.5, "3"), (1, "1")]:
        assert ray.get(task.options(num_cpus=cpus).remote()) == told
    assert ray.get(task.remote()) == "1"

    @ray.remote
    class Actor:
        def threads(self):
            return threads()

    for options, told in [({}, "1"), ({"num_cpus": 2}, "2")]:
        actor = Actor.options(**options).remote()
        assert ray.get([actor.threads.remote() for _ in range(3)]) == 3 * [told]
    environment = {"env_vars": {"OMP_NUM_THREADS": "7"}}
    own = task.options(num_cpus=2, runtime_env=environment)
    assert ray.get(own.remote()) == "7"


@pytest.mark.skipif("OMP_NUM_THREADS" in os.environ, reason="who sets it keeps it")
def test_libraries_that_are_loaded_already_are_told_too():
    pytest.importorskip("numpy")

    @ray.remote
    def used():
        __import__("numpy")
        names = ["scipy_openblas_get_num_threads64_", "openblas_get_num_threads"]
        with open("/proc/self/maps") as maps:
            paths = {line.split()[-1] for line in maps if "openblas" in line}
        libraries = [ctypes.CDLL(path) for path in paths]
        found = [(one, name) for one in libraries for name in names if hasattr(one, name)]
        return getattr(*found[0])() if found else None

    if ray.get(used.remote()) is None:
        pytest.skip("this NumPy brings no OpenBLAS")
    assert ray.get([used.options(num_cpus=cpus).remote() for cpus in (2, 1, 2)]) == [2, 1, 2]


def test_memory_is_a_resource():
    total = ray.cluster_resources()["memory"]

    @ray.remote(memory=total / 2)
    def half():
        return ray.get_runtime_context().get_assigned_resources()["memory"]

    assert ray.get(half.remote()) == pytest.approx(total / 2, rel=1e-6)


def test_the_drivers_view_of_itself():
    context = ray.get_runtime_context()
    assert context.get_task_id() is None and context.get_actor_id() is None
    assert len(context.get_job_id()) == 8 and len(context.get_worker_id()) == 56
    assert context.get()["job_id"] == context.job_id


def test_what_never_fits_warns_once_and_waits(driver):
    result = driver(
        """
        import oxiray as ray
        ray.init(num_cpus=1)

        @ray.remote(resources={"unicorn": 1})
        def never():
            pass

        refs = [never.remote() for _ in range(3)]
        try:
            ray.get(refs, timeout=2)
        except ray.exceptions.GetTimeoutError:
            print("waited")
        assert ray.get(ray.remote(lambda: 5).remote()) == 5
        """
    )
    assert "waited" in result.stdout
    assert sum("unicorn" in line for line in result.stderr.splitlines()) == 1
