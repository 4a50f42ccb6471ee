"""Helpers beside the core. What is heavier than its name comes at its first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._named_actors import list_named_actors
from .._node_address import get_node_ip_address

if TYPE_CHECKING:
    from .actor_pool import ActorPool
    from .annotations import PublicAPI
    from .debug import disable_log_once_globally, enable_periodic_logging, log_once
    from .helpers import as_completed, map_unordered
    from .serialization import deregister_serializer, register_serializer

__all__ = [
    "ActorPool",
    "PublicAPI",
    "as_completed",
    "deregister_serializer",
    "disable_log_once_globally",
    "enable_periodic_logging",
    "get_node_ip_address",
    "inspect_serializability",
    "list_named_actors",
    "log_once",
    "map_unordered",
    "register_serializer",
]

_LATER = {
    "ActorPool": "actor_pool",
    "PublicAPI": "annotations",
    "as_completed": "helpers",
    "deregister_serializer": "serialization",
    "disable_log_once_globally": "debug",
    "enable_periodic_logging": "debug",
    "log_once": "debug",
    "map_unordered": "helpers",
    "register_serializer": "serialization",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def inspect_serializability(base_obj: object, name: str | None = None) -> tuple[bool, set[object]]:
    """Whether the object can be pickled; if not, prints and returns what inside it cannot."""
    import cloudpickle

    try:
        cloudpickle.dumps(base_obj, protocol=5)
        return True, set()
    except Exception:
        from .._unpicklable import find

        culprit = find(base_obj, name or "value")
        print(f"Cannot be pickled: {culprit}")
        return False, {culprit}
