"""`get_runtime_context()`: who and where the caller is."""

from __future__ import annotations

import os
from typing import Any

from . import _devices, _native
from ._ids import ActorID, JobID, NodeID, TaskID


class RuntimeContext:
    """Ids, names and resources of what is running; ids come as hexadecimal strings."""

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

    def get_assigned_resources(self) -> dict[str, float]:
        """What the running task or actor occupies."""
        context = self._view()
        if context["is_driver"]:
            raise AssertionError("get_assigned_resources() is for tasks and actors")
        return dict(_native.cluster_view()["held"])

    def get_accelerator_ids(self) -> dict[str, list[str]]:
        return {"GPU": _devices.names(self._view()["device_ids"])}

    get_resource_ids = get_accelerator_ids

    def get_node_labels(self) -> dict[str, str]:
        from ._cluster import labels_of_this_node

        return labels_of_this_node()

    @property
    def namespace(self) -> str:
        return self._view()["namespace"]  # type: ignore[no-any-return]

    @property
    def was_current_actor_reconstructed(self) -> bool:
        """Whether the actor that asks was started again after its process died."""
        return bool(self._view()["restarts"])

    # The older names of the ids: objects, not strings.
    @property
    def job_id(self) -> JobID:
        return JobID(self._view()["job_id"])

    @property
    def node_id(self) -> NodeID:
        return NodeID(self._view()["node_id"])

    @property
    def task_id(self) -> TaskID | None:
        task_id = self.get_task_id()
        return TaskID.from_hex(task_id) if task_id else None

    @property
    def actor_id(self) -> ActorID | None:
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


_context = RuntimeContext()


def get_runtime_context() -> RuntimeContext:
    """The context of the caller: driver, task or actor."""
    return _context


def get_gpu_ids() -> list[int] | list[str]:
    """The GPUs assigned to the running task or actor, as CUDA numbers them."""
    names = _devices.names(_context._view()["device_ids"])
    return [int(name) for name in names] if all(n.isdigit() for n in names) else names
