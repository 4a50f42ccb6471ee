"""Ray Core's Python API on a Rust engine: tasks, actors and objects.

    import oxiray as ray

    @ray.remote
    def square(x):
        return x * x

    print(ray.get([square.remote(i) for i in range(4)]))

What is imported here is what every program needs; the rest comes at its first use.
"""

from __future__ import annotations

try:
    from . import _native  # noqa: F401
except ImportError as error:
    from ._no_module import explain

    raise explain(error) from error

from . import actor
from ._actor import kill, method
from ._native import ObjectRef, ObjectRefGenerator, get, put, wait
from ._remote import remote
from ._session import init, is_initialized, shutdown
from ._version import __version__

# Not `typing`'s, which costs more to import than all of this; type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import (
        autoscaler,
        client_builder,
        cloudpickle,
        cross_language,
        dag,
        exceptions,
        experimental,
        internal,
        job_config,
        profiling,
        remote_function,
        runtime_context,
        runtime_env,
        types,
        util,
        widgets,
    )
    from ._cancel import cancel
    from ._cluster import available_resources, cluster_resources, nodes
    from ._generators import DynamicObjectRefGenerator
    from ._ids import (
        ActorClassID,
        ActorID,
        ClusterID,
        FunctionID,
        JobID,
        NodeID,
        PlacementGroupID,
        TaskID,
        UniqueID,
        WorkerID,
    )
    from ._logging_config import LoggingConfig
    from ._named_actors import get_actor
    from ._timeline import timeline
    from .client_builder import ClientBuilder, client
    from .cross_language import Language, cpp_function, java_actor_class, java_function
    from .profiling import profile
    from .runtime_context import get_gpu_ids, get_runtime_context, get_tpu_ids

ObjectID = ObjectRef

SCRIPT_MODE = 0
WORKER_MODE = 1
LOCAL_MODE = 2
SPILL_WORKER_MODE = 3
RESTORE_WORKER_MODE = 4

# Names that come at their first use, and where from. None: the submodule itself.
_LATER = {
    "ActorClassID": "_ids",
    "ActorID": "_ids",
    "ClientBuilder": "client_builder",
    "ClusterID": "_ids",
    "DynamicObjectRefGenerator": "_generators",
    "FunctionID": "_ids",
    "JobID": "_ids",
    "Language": "cross_language",
    "LoggingConfig": "_logging_config",
    "NodeID": "_ids",
    "PlacementGroupID": "_ids",
    "TaskID": "_ids",
    "UniqueID": "_ids",
    "WorkerID": "_ids",
    "available_resources": "_cluster",
    "cancel": "_cancel",
    "client": "client_builder",
    "cpp_function": "cross_language",
    "java_actor_class": "cross_language",
    "java_function": "cross_language",
    "cluster_resources": "_cluster",
    "nodes": "_cluster",
    "timeline": "_timeline",
    "profile": "profiling",
    "get_gpu_ids": "runtime_context",
    "get_actor": "_named_actors",
    "get_runtime_context": "runtime_context",
    "get_tpu_ids": "runtime_context",
    "_private": None,
    "autoscaler": None,
    "client_builder": None,
    "cloudpickle": None,
    "cross_language": None,
    "dag": None,
    "exceptions": None,
    "experimental": None,
    "internal": None,
    "job_submission": None,
    "job_config": None,
    "profiling": None,
    "ray_constants": None,
    "remote_function": None,
    "runtime_context": None,
    "runtime_env": None,
    "state": None,
    "types": None,
    "util": None,
    "widgets": None,
    "worker": None,
}

__all__ = [
    "LOCAL_MODE",
    "RESTORE_WORKER_MODE",
    "SCRIPT_MODE",
    "SPILL_WORKER_MODE",
    "WORKER_MODE",
    "ActorClassID",
    "ActorID",
    "ClientBuilder",
    "ClusterID",
    "DynamicObjectRefGenerator",
    "FunctionID",
    "JobID",
    "Language",
    "LoggingConfig",
    "NodeID",
    "ObjectID",
    "ObjectRef",
    "ObjectRefGenerator",
    "PlacementGroupID",
    "TaskID",
    "UniqueID",
    "WorkerID",
    "__version__",
    "actor",
    "autoscaler",
    "available_resources",
    "cancel",
    "client",
    "client_builder",
    "cloudpickle",
    "cluster_resources",
    "cpp_function",
    "cross_language",
    "dag",
    "exceptions",
    "experimental",
    "get",
    "get_actor",
    "get_gpu_ids",
    "get_runtime_context",
    "get_tpu_ids",
    "init",
    "internal",
    "is_initialized",
    "java_actor_class",
    "java_function",
    "job_config",
    "kill",
    "method",
    "nodes",
    "profile",
    "profiling",
    "put",
    "remote",
    "remote_function",
    "runtime_context",
    "runtime_env",
    "shutdown",
    "timeline",
    "types",
    "util",
    "wait",
    "widgets",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        from ._absent import no_such_name

        raise no_such_name(__name__, name)
    from importlib import import_module

    source = _LATER[name]
    module = import_module(f".{source or name}", __name__)
    value = module if source is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
