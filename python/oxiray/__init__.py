"""Ray Core's Python API on a Rust engine: tasks, actors and objects.

    import oxiray as ray

    @ray.remote
    def square(x):
        return x * x

    print(ray.get([square.remote(i) for i in range(4)]))

What is imported here is what every program needs; the rest comes at its first use.
"""

from __future__ import annotations

from . import actor
from ._actor import kill, method
from ._native import ObjectRef, get, put, wait
from ._remote import remote
from ._session import init, is_initialized, shutdown
from ._version import __version__

# Not `typing`'s, which costs more to import than all of this; type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import (
        cloudpickle,
        exceptions,
        experimental,
        internal,
        profiling,
        remote_function,
        runtime_context,
        types,
        util,
    )
    from ._cancel import cancel
    from ._cluster import available_resources, cluster_resources, nodes
    from ._ids import (
        ActorClassID,
        ActorID,
        ClusterID,
        FunctionID,
        JobID,
        NodeID,
        TaskID,
        UniqueID,
        WorkerID,
    )
    from ._named_actors import get_actor
    from ._timeline import timeline
    from .profiling import profile
    from .runtime_context import get_gpu_ids, get_runtime_context

ObjectID = ObjectRef

SCRIPT_MODE = 0
WORKER_MODE = 1

# Names that come at their first use, and where from. None: the submodule itself.
_LATER = {
    "ActorClassID": "_ids",
    "ActorID": "_ids",
    "ClusterID": "_ids",
    "FunctionID": "_ids",
    "JobID": "_ids",
    "NodeID": "_ids",
    "TaskID": "_ids",
    "UniqueID": "_ids",
    "WorkerID": "_ids",
    "available_resources": "_cluster",
    "cancel": "_cancel",
    "cluster_resources": "_cluster",
    "nodes": "_cluster",
    "timeline": "_timeline",
    "profile": "profiling",
    "get_gpu_ids": "runtime_context",
    "get_actor": "_named_actors",
    "get_runtime_context": "runtime_context",
    "_private": None,
    "cloudpickle": None,
    "exceptions": None,
    "experimental": None,
    "internal": None,
    "profiling": None,
    "ray_constants": None,
    "remote_function": None,
    "runtime_context": None,
    "state": None,
    "types": None,
    "util": None,
    "worker": None,
}

__all__ = [
    "SCRIPT_MODE",
    "WORKER_MODE",
    "ActorClassID",
    "ActorID",
    "ClusterID",
    "FunctionID",
    "JobID",
    "NodeID",
    "ObjectID",
    "ObjectRef",
    "TaskID",
    "UniqueID",
    "WorkerID",
    "__version__",
    "actor",
    "available_resources",
    "cancel",
    "cloudpickle",
    "cluster_resources",
    "exceptions",
    "experimental",
    "get",
    "get_actor",
    "get_gpu_ids",
    "get_runtime_context",
    "init",
    "internal",
    "is_initialized",
    "kill",
    "method",
    "nodes",
    "profile",
    "profiling",
    "put",
    "remote",
    "remote_function",
    "runtime_context",
    "shutdown",
    "timeline",
    "types",
    "util",
    "wait",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    source = _LATER[name]
    module = import_module(f".{source or name}", __name__)
    value = module if source is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
