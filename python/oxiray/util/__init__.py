"""Helpers beside the core. What is heavier than its name comes at its first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._named_actors import list_named_actors
from .._node_address import get_node_ip_address

# The function has its module's name, and must be set after that is.
from .placement_group import (
    PlacementGroup,
    get_current_placement_group,
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)

if TYPE_CHECKING:
    from . import accelerators, collective, iter
    from . import rpdb as pdb
    from .actor_pool import ActorPool
    from .annotations import PublicAPI
    from .check_serialize import inspect_serializability
    from .client_connect import connect, disconnect
    from .debug import disable_log_once_globally, enable_periodic_logging, log_once
    from .helpers import as_completed, map_unordered
    from .serialization import deregister_serializer, register_serializer

__all__ = [
    "ActorPool",
    "PlacementGroup",
    "PublicAPI",
    "accelerators",
    "as_completed",
    "collective",
    "connect",
    "deregister_serializer",
    "disable_log_once_globally",
    "disconnect",
    "enable_periodic_logging",
    "get_current_placement_group",
    "get_node_ip_address",
    "get_placement_group",
    "inspect_serializability",
    "iter",
    "list_named_actors",
    "log_once",
    "map_unordered",
    "pdb",
    "placement_group",
    "placement_group_table",
    "register_serializer",
    "remove_placement_group",
]

# Names that come at their first use, and where from. None: the submodule itself.
_LATER = {
    "ActorPool": "actor_pool",
    "PublicAPI": "annotations",
    "accelerators": None,
    "actor_group": None,
    "as_completed": "helpers",
    "client": None,
    "collective": None,
    "connect": "client_connect",
    "dask": None,
    "deregister_serializer": "serialization",
    "disable_log_once_globally": "debug",
    "disconnect": "client_connect",
    "enable_periodic_logging": "debug",
    "inspect_serializability": "check_serialize",
    "iter": None,
    "log_once": "debug",
    "map_unordered": "helpers",
    "metrics": None,
    "pdb": "rpdb",
    "register_serializer": "serialization",
    "rpdb": None,
    "state": None,
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        from .._absent import no_such_name

        raise no_such_name(__name__, name)
    source = _LATER[name]
    module = import_module(f".{source or name}", __name__)
    value = module if source is None or name == "pdb" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
