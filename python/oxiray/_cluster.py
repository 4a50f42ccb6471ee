"""What the cluster has and how much of it is free."""

from __future__ import annotations

from typing import Any

from . import _native
from ._init_arguments import LOCAL_IP


def cluster_resources() -> dict[str, float]:
    """All resources, by name."""
    return dict(_view()["total"])


def available_resources() -> dict[str, float]:
    """The resources nobody occupies at the moment; names of which nothing is left are absent."""
    return {name: amount for name, amount in _view()["available"].items() if amount}


def nodes() -> list[dict[str, Any]]:
    """The machines of the cluster."""
    view = _view()
    node_id = view["node_id"].hex()
    session_dir = _native.context()["session_dir"]
    return [
        {
            "NodeID": node_id,
            "Alive": True,
            "alive": True,
            "NodeManagerAddress": LOCAL_IP,
            "NodeManagerHostname": view["host"],
            "NodeManagerPort": 0,
            "ObjectManagerPort": 0,
            "ObjectStoreSocketName": session_dir,
            "RayletSocketName": session_dir,
            "NodeName": LOCAL_IP,
            "DeathReason": 0,
            "DeathReasonMessage": "",
            "Resources": dict(view["total"]),
            "Labels": {"ray.io/node-id": node_id},
        }
    ]


def _view() -> dict[str, Any]:
    if not _native.is_running():
        from ._session import auto_init

        auto_init()
    return _native.cluster_view()
