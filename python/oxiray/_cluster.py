"""What the cluster has and how much of it is free."""

from __future__ import annotations

from typing import Any

from . import _native
from ._init_arguments import LOCAL_IP

_NODE_ID_LABEL = "ray.io/node-id"


def cluster_resources() -> dict[str, float]:
    """All resources, by name."""
    return _sum("total")


def available_resources() -> dict[str, float]:
    """The resources nobody occupies at the moment; names of which nothing is left are absent."""
    return {name: amount for name, amount in _sum("available").items() if amount}


def total_resources_per_node() -> dict[str, dict[str, float]]:
    """All resources of each node that lives, by its id in hexadecimal."""
    return _by_node("total")


def available_resources_per_node() -> dict[str, dict[str, float]]:
    """What nobody occupies at the moment of each node that lives, by its id in hexadecimal."""
    return _by_node("available")


def nodes() -> list[dict[str, Any]]:
    """The machines of the cluster, those included that left lately."""
    return [_in_words_of_ray(node) for node in view_now()["nodes"]]


def labels_of_this_node() -> dict[str, str]:
    view = view_now()
    node = next(node for node in view["nodes"] if node["id"] == view["node_id"])
    return _labels(node)


def view_now() -> dict[str, Any]:
    if not _native.is_running():
        from ._session import auto_init

        auto_init()
    return _native.cluster_view()


def _by_node(what: str) -> dict[str, dict[str, float]]:
    living = (node for node in view_now()["nodes"] if not node["left"])
    return {node["id"].hex(): dict(node[what]) for node in living}


def _sum(what: str) -> dict[str, float]:
    total: dict[str, float] = {}
    for resources in _by_node(what).values():
        for name, amount in resources.items():
            total[name] = total.get(name, 0.0) + amount
    return total


def _labels(node: dict[str, Any]) -> dict[str, str]:
    return {**node["labels"], _NODE_ID_LABEL: node["id"].hex()}


def _in_words_of_ray(node: dict[str, Any]) -> dict[str, Any]:
    # Nobody connects to a node that is alone.
    ip, _, port = (node["address"] or f"{LOCAL_IP}:0").rpartition(":")
    alive = not node["left"]
    session_dir = _native.context()["session_dir"]
    return {
        "NodeID": node["id"].hex(),
        "Alive": alive,
        "alive": alive,
        "NodeManagerAddress": ip.strip("[]"),
        "NodeManagerHostname": node["host"],
        "NodeManagerPort": int(port),
        "ObjectManagerPort": int(port),
        "ObjectStoreSocketName": session_dir,
        "RayletSocketName": session_dir,
        "NodeName": ip.strip("[]"),
        "Draining": alive and bool(node["draining"]),
        "DeathReason": 0 if alive else 1,
        "DeathReasonMessage": node["left"],
        "Resources": dict(node["total"]) if alive else {},
        "Labels": _labels(node),
    }
