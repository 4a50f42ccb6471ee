"""`global_worker`: this process in its session, as programs know it from Ray's privates."""

from __future__ import annotations

from typing import Any

from .. import _native
from .._ids import ActorID, JobID, NodeID, TaskID, WorkerID
from .._native import get, put, wait
from .._node_address import get_node_ip_address
from .._remote import remote
from .._session import init, is_initialized, shutdown
from ..runtime_context import get_gpu_ids, get_runtime_context

__all__ = [
    "LOCAL_MODE",
    "SCRIPT_MODE",
    "WORKER_MODE",
    "Worker",
    "get",
    "get_gpu_ids",
    "global_worker",
    "init",
    "is_initialized",
    "put",
    "remote",
    "shutdown",
    "wait",
]

SCRIPT_MODE = 0
WORKER_MODE = 1
LOCAL_MODE = 2


class _Node:
    """The node that this process is on."""

    @property
    def node_ip_address(self) -> str:
        return get_node_ip_address()

    @property
    def unique_id(self) -> str:
        return get_runtime_context().get_node_id()

    node_id = unique_id

    @property
    def address(self) -> str:
        return str(_native.context()["control"] or "")

    gcs_address = address

    @property
    def address_info(self) -> dict[str, Any]:
        return {
            "node_ip_address": self.node_ip_address,
            "gcs_address": self.address,
            "address": self.address,
            "session_dir": self.get_session_dir_path(),
            "node_id": self.unique_id,
        }

    def get_session_dir_path(self) -> str:
        return str(_native.context()["session_dir"])

    def get_logs_dir_path(self) -> str:
        return f"{self.get_session_dir_path()}/logs"

    def is_head(self) -> bool:
        from .._cluster import nodes

        return self.unique_id == next((row["NodeID"] for row in nodes()), None)


class _CoreWorker:
    """Ids of what runs here."""

    def get_current_task_id(self) -> TaskID:
        return TaskID(_native.context()["task_id"])

    def get_current_job_id(self) -> JobID:
        return JobID(_native.context()["job_id"])

    def get_current_node_id(self) -> NodeID:
        return NodeID(_native.context()["node_id"])

    def get_worker_id(self) -> WorkerID:
        return WorkerID(_native.context()["worker_id"])

    def get_actor_id(self) -> ActorID:
        actor = _native.context()["actor_id"]
        return ActorID(actor) if actor else ActorID.nil()


class Worker:
    """What `global_worker` is."""

    def __init__(self) -> None:
        self._node = _Node()
        self._core = _CoreWorker()

    @property
    def connected(self) -> bool:
        return is_initialized()

    @property
    def mode(self) -> int | None:
        """None while there is no session."""
        if not is_initialized():
            return None
        return SCRIPT_MODE if _native.context()["is_driver"] else WORKER_MODE

    def check_connected(self) -> None:
        if not is_initialized():
            from ..exceptions import RaySystemError

            raise RaySystemError("There is no session: call ray.init() first")

    @property
    def node(self) -> _Node | None:
        return self._node if is_initialized() else None

    @property
    def core_worker(self) -> _CoreWorker:
        self.check_connected()
        return self._core

    @property
    def node_ip_address(self) -> str:
        return get_node_ip_address()

    @property
    def worker_id(self) -> bytes:
        return self.core_worker.get_worker_id().binary()

    @property
    def current_job_id(self) -> JobID:
        """Nil while there is no session."""
        if not is_initialized():
            return JobID.nil()
        return self.core_worker.get_current_job_id()

    @property
    def current_task_id(self) -> TaskID:
        return self.core_worker.get_current_task_id()

    @property
    def actor_id(self) -> ActorID:
        return self.core_worker.get_actor_id()

    @property
    def namespace(self) -> str:
        return get_runtime_context().namespace

    @property
    def gcs_client(self) -> Any:
        raise AttributeError(
            "There is no client of a global control store here: use ray.util.state, ray.nodes() or "
            "ray.experimental.internal_kv"
        )


global_worker = Worker()
