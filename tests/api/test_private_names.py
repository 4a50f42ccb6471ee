"""Names that Ray keeps private, or had once, and programs reach for."""

from __future__ import annotations

import oxiray as ray
import pytest
from oxiray._private import state as private_state
from oxiray._private.services import get_node_ip_address
from oxiray._private.worker import global_worker


@ray.remote
def seen_from_a_task():
    core = global_worker.core_worker
    return (
        global_worker.mode,
        core.get_current_task_id().hex() == ray.get_runtime_context().get_task_id(),
        core.get_actor_id().is_nil(),
    )


@ray.remote
class Named:
    def seen(self):
        return global_worker.actor_id.hex(), ray.get_runtime_context().get_actor_id()


def test_the_global_worker(cluster):
    assert ray.worker.global_worker is global_worker
    assert (global_worker.connected, global_worker.mode) == (True, ray.SCRIPT_MODE)
    context = ray.get_runtime_context()
    core = global_worker.core_worker
    assert core.get_worker_id().hex() == context.get_worker_id()
    assert core.get_current_job_id().hex() == context.get_job_id()
    assert core.get_current_node_id().hex() == context.get_node_id()
    node = global_worker.node
    assert node.unique_id == context.get_node_id() and node.is_head()
    assert node.node_ip_address == get_node_ip_address() == global_worker.node_ip_address
    assert node.get_session_dir_path().endswith(context.get_session_name())
    assert node.address_info["node_id"] == node.node_id
    assert ray.get(seen_from_a_task.remote()) == (ray.WORKER_MODE, True, True)
    own, known = ray.get(Named.remote().seen.remote())
    assert own == known
    with pytest.raises(AttributeError, match=r"ray\.util\.state"):
        global_worker.gcs_client  # noqa: B018


def test_without_a_session(driver):
    done = driver(
        """
        from oxiray._private.worker import global_worker

        print(global_worker.connected, global_worker.mode, global_worker.node)
        try:
            global_worker.core_worker
        except Exception as error:
            print(type(error).__name__, error)
        """
    )
    assert done.stdout.splitlines()[0] == "False None None"
    assert "There is no session" in done.stdout.splitlines()[1]


def test_the_state(cluster):
    assert ray.state.state is private_state.state
    assert ray.state.nodes() == ray.nodes()
    assert ray.state.cluster_resources() == ray.cluster_resources()
    node = ray.get_runtime_context().get_node_id()
    assert ray.state.total_resources_per_node()[node]["CPU"] == 4
    assert private_state.available_resources_per_node()[node]["CPU"] <= 4
    assert private_state.state._available_resources_per_node().keys() == {node}
    named = Named.options(name="known").remote()
    ray.get(named.seen.remote())
    row = ray.state.actors()[named._actor_id.hex()]
    assert (row["Name"], row["ActorClassName"], row["State"]) == ("known", "Named", "ALIVE")
    assert ray.state.actors(named._actor_id.hex()) == row
    key, job = named._actor_id.hex(), ray.get_runtime_context().get_job_id()
    assert ray.state.actors(None, job, "ALIVE")[key] == row
    assert key not in ray._private.state.state.actor_table(None, actor_state_name="DEAD")
    assert ray.get_runtime_context().get_job_id() in [job["JobID"] for job in ray.state.jobs()]


def test_older_places():
    from oxiray.experimental.state.api import list_actors
    from oxiray.util.state import list_actors as newer

    assert list_actors is newer
    assert ray.ray_constants.RAY_ADDRESS_ENVIRONMENT_VARIABLE == "RAY_ADDRESS"


def test_the_older_way_to_call_with_options(cluster):
    @ray.remote
    def add(a, b=0):
        return a + b

    @ray.remote
    class Counter:
        def __init__(self, n):
            self.n = n

        def add(self, k):
            return self.n + k

    assert ray.get(add._remote([1], {"b": 2}, num_cpus=1)) == 3
    counter = Counter._remote(args=(5,), num_cpus=0)
    assert ray.get(counter.add._remote((2,))) == 7
    assert ray._private.worker.global_worker.connected
