"""`get_runtime_context()`: who and where the caller is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _devices, _native
from ._ids import ActorID, JobID, NodeID, PlacementGroupID, TaskID

if TYPE_CHECKING:
    from ._actor import ActorHandle
    from .runtime_env import RuntimeEnv

# Kinds that Ray names.
_OTHER_ACCELERATORS = ("TPU", "neuron_cores", "HPU", "NPU", "RBLN", "FURIOSA")


class RuntimeContext:
    """Ids, names and resources of what is running; ids come as hexadecimal strings."""

    def __init__(self, worker: Any = None) -> None:
        pass

    def get(self) -> dict[str, Any]:
        context = self._view()
        ids: dict[str, Any] = {
            "job_id": JobID(context["job_id"]),
            "node_id": NodeID(context["node_id"]),
            "namespace": context["namespace"],
        }
        if context["task_id"] and not context["is_driver"]:
            ids["task_id"] = TaskID(context["task_id"])
        if context["actor_id"]:
            ids["actor_id"] = ActorID(context["actor_id"])
        return ids

    def get_job_id(self) -> str:
        return self._hex("job_id") or ""

    def get_node_id(self) -> str:
        return self._hex("node_id") or ""

    def get_worker_id(self) -> str:
        return self._hex("worker_id") or ""

    def get_task_id(self) -> str | None:
        """None in the driver."""
        return None if self._view()["is_driver"] else self._hex("task_id")

    def get_actor_id(self) -> str | None:
        """None outside of actors."""
        return self._hex("actor_id")

    def is_canceled(self) -> bool:
        """Whether the running task or call was cancelled: a long one may look now and then."""
        return _native.is_cancelled()

    def get_task_name(self) -> str | None:
        return self._name("task_name")

    def get_task_function_name(self) -> str | None:
        return self._name("function_name")

    def get_temp_dir(self) -> str:
        return str(os.path.dirname(self._view()["session_dir"]))

    def get_session_name(self) -> str:
        return str(os.path.basename(self._view()["session_dir"]))

    def get_actor_name(self) -> str | None:
        """Of the actor that asks: its name, empty if it has none; None in a task or driver."""
        actor_id = self.get_actor_id()
        if actor_id is None:
            return None
        from .util.state import get_actor

        row = get_actor(actor_id)
        return (row.name if row is not None else None) or ""

    @property
    def current_actor(self) -> ActorHandle[Any]:
        """A handle of the actor that asks."""
        context = self._view()
        if not context["actor_id"]:
            raise RuntimeError("current_actor is for the methods of actors: this is none")
        from . import _worker
        from ._actor import ActorHandle

        ref = _native.rebuild_actor(context["actor_id"], context["creator"])
        return ActorHandle(ref, *_worker.own_about)

    @property
    def gcs_address(self) -> str:
        """The address of the cluster's head; "local" in a session of one's own."""
        return self._view()["control"] or "local"

    def get_assigned_resources(self) -> dict[str, float]:
        """What the running task or actor occupies."""
        context = self._view()
        if context["is_driver"]:
            raise AssertionError("get_assigned_resources() is for tasks and actors")
        return dict(_native.cluster_view()["held"])

    def get_accelerator_ids(self) -> dict[str, list[str]]:
        """By kind of accelerator; of those that are not counted here there are none."""
        own = {"GPU": _devices.names(self._view()["device_ids"])}
        return {**{kind: [] for kind in _OTHER_ACCELERATORS}, **own}

    get_resource_ids = get_accelerator_ids

    def get_placement_group_id(self) -> str | None:
        """The placement group that the running task or actor is in; None: in none."""
        return self._hex("group")

    @property
    def current_placement_group_id(self) -> PlacementGroupID:
        _deprecated("get_placement_group_id()")
        group = self._view()["group"]
        return PlacementGroupID(group) if group else PlacementGroupID.nil()

    @property
    def should_capture_child_tasks_in_placement_group(self) -> bool:
        """Whether what is submitted here goes into the placement group of what runs."""
        return bool(self._view()["captures"])

    def get_node_labels(self) -> dict[str, str]:
        from ._cluster import labels_of_this_node

        return labels_of_this_node()

    @property
    def namespace(self) -> str:
        return self._view()["namespace"]  # type: ignore[no-any-return]

    @property
    def runtime_env(self) -> RuntimeEnv:
        """The environment of this process, which what it submits inherits."""
        from . import _environment

        self._view()
        return _environment.current()

    def get_runtime_env_string(self) -> str:
        self._view()
        return _native.environment() or "{}"

    @property
    def was_current_actor_reconstructed(self) -> bool:
        """Whether the actor that asks was started again after its process died."""
        return bool(self._view()["restarts"])

    # The older names of the ids: objects, not strings.
    @property
    def job_id(self) -> JobID:
        _deprecated("get_job_id()")
        return JobID(self._view()["job_id"])

    @property
    def node_id(self) -> NodeID:
        _deprecated("get_node_id()")
        return NodeID(self._view()["node_id"])

    @property
    def task_id(self) -> TaskID | None:
        _deprecated("get_task_id()")
        task_id = self.get_task_id()
        return TaskID.from_hex(task_id) if task_id else None

    @property
    def actor_id(self) -> ActorID | None:
        _deprecated("get_actor_id()")
        actor_id = self._view()["actor_id"]
        return ActorID(actor_id) if actor_id else None

    def _view(self) -> dict[str, Any]:
        if not _native.is_running():
            from ._session import auto_init

            auto_init()
        return _native.context()

    def _hex(self, key: str) -> str | None:
        value = self._view()[key]
        return value.hex() if value else None

    def _name(self, key: str) -> str | None:
        context = self._view()
        return None if context["is_driver"] else context[key]


def _deprecated(other: str) -> None:
    import warnings

    from .util.annotations import RayDeprecationWarning

    warnings.warn(f"Use {other} instead", RayDeprecationWarning, stacklevel=3)


_context = RuntimeContext()


def get_runtime_context() -> RuntimeContext:
    """The context of the caller: driver, task or actor. Starts a session if there is none."""
    _context._view()
    return _context


def get_gpu_ids() -> list[int] | list[str]:
    """The GPUs assigned to the running task or actor, as CUDA numbers them."""
    names = _devices.names(_context._view()["device_ids"])
    return [int(name) for name in names] if all(n.isdigit() for n in names) else names


def get_tpu_ids() -> list[int]:
    """The TPUs assigned to the running task or actor: none, they are not counted here."""
    return []
