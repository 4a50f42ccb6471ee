"""What runs and what ran: tasks, actors, objects, nodes, workers, jobs, and their logs.

The functions are Ray's. Unlike Ray's they are not limited to 10,000 rows, and need no dashboard.
"""

from __future__ import annotations

from ._client import StateApiClient
from ._get import (
    get_actor,
    get_job,
    get_node,
    get_object,
    get_objects,
    get_placement_group,
    get_task,
    get_worker,
)
from ._list import (
    list_actors,
    list_cluster_events,
    list_jobs,
    list_nodes,
    list_objects,
    list_placement_groups,
    list_runtime_envs,
    list_tasks,
    list_workers,
)
from ._logs import get_log, list_logs
from ._rows import ActorState, JobState, NodeState, ObjectState, TaskState, WorkerState
from ._summary import summarize_actors, summarize_objects, summarize_tasks
from .exception import RayStateApiException

__all__ = [
    "ActorState",
    "JobState",
    "NodeState",
    "ObjectState",
    "RayStateApiException",
    "StateApiClient",
    "TaskState",
    "WorkerState",
    "get_actor",
    "get_job",
    "get_log",
    "get_node",
    "get_object",
    "get_objects",
    "get_placement_group",
    "get_task",
    "get_worker",
    "list_actors",
    "list_cluster_events",
    "list_jobs",
    "list_logs",
    "list_nodes",
    "list_objects",
    "list_placement_groups",
    "list_runtime_envs",
    "list_tasks",
    "list_workers",
    "summarize_actors",
    "summarize_objects",
    "summarize_tasks",
]
