"""What the cluster has, by Ray's older names: `ray.state`, `ray._private.state`."""

from __future__ import annotations

from typing import Any

from .._cluster import (
    available_resources,
    available_resources_per_node,
    cluster_resources,
    nodes,
    total_resources_per_node,
)
from .._timeline import timeline

__all__ = [
    "GlobalState",
    "actors",
    "available_resources",
    "available_resources_per_node",
    "cluster_resources",
    "jobs",
    "nodes",
    "state",
    "timeline",
    "total_resources_per_node",
]


def actors(
    actor_id: str | None = None, job_id: Any = None, actor_state_name: str | None = None
) -> dict[str, Any]:
    """The actors by id, each a dictionary with Ray's names; those of a job, or in a state; with
    `actor_id` that one alone, whatever else is asked."""
    from ..util.state import list_actors

    filters = []
    if actor_id is None and job_id is not None:
        filters.append(("job_id", "=", job_id if isinstance(job_id, str) else job_id.hex()))
    if actor_id is None and actor_state_name is not None:
        filters.append(("state", "=", actor_state_name))
    table = {
        row.actor_id: {
            "ActorID": row.actor_id,
            "ActorClassName": row.class_name,
            "IsDetached": bool(row.is_detached),
            "Name": row.name or "",
            "JobID": row.job_id,
            "Address": {"NodeID": row.node_id},
            "State": row.state,
            "Pid": row.pid,
        }
        for row in list_actors(filters=filters, detail=True, limit=1_000_000)
    }
    return table.get(actor_id, {}) if actor_id is not None else table


def jobs() -> list[dict[str, Any]]:
    """The programs that use or used the cluster."""
    from ..util.state import list_jobs

    return [
        {
            "JobID": row.job_id,
            "IsDead": row.status != "RUNNING",
            "Entrypoint": row.entrypoint,
            "DriverPid": row.driver_pid,
        }
        for row in list_jobs(detail=True)
    ]


class GlobalState:
    """The same as methods; `state` is the one there is."""

    def node_table(self) -> list[dict[str, Any]]:
        return nodes()

    def actor_table(
        self,
        actor_id: str | None = None,
        job_id: Any = None,
        actor_state_name: str | None = None,
    ) -> dict[str, Any]:
        return actors(actor_id, job_id, actor_state_name)

    def job_table(self) -> list[dict[str, Any]]:
        return jobs()

    def cluster_resources(self) -> dict[str, float]:
        return cluster_resources()

    def available_resources(self) -> dict[str, float]:
        return available_resources()

    def available_resources_per_node(self) -> dict[str, dict[str, float]]:
        return available_resources_per_node()

    def total_resources_per_node(self) -> dict[str, dict[str, float]]:
        return total_resources_per_node()

    # As programs written for older versions call it.
    _available_resources_per_node = available_resources_per_node


state = GlobalState()
