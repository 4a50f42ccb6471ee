"""What a `StateApiClient` is asked about, and how: the names are Ray's."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

from ._list import DEFAULT_LIMIT
from ._rows import ActorState, JobState, NodeState, ObjectState, TaskState, WorkerState

__all__ = [
    "DEFAULT_LIMIT",
    "DEFAULT_RPC_TIMEOUT",
    "ActorState",
    "GetApiOptions",
    "JobState",
    "ListApiOptions",
    "NodeState",
    "ObjectState",
    "StateResource",
    "SummaryApiOptions",
    "SummaryResource",
    "TaskState",
    "WorkerState",
]

DEFAULT_RPC_TIMEOUT = 30


class StateResource(enum.Enum):
    """What can be listed."""

    ACTORS = "actors"
    JOBS = "jobs"
    PLACEMENT_GROUPS = "placement_groups"
    NODES = "nodes"
    WORKERS = "workers"
    TASKS = "tasks"
    OBJECTS = "objects"
    RUNTIME_ENVS = "runtime_envs"
    CLUSTER_EVENTS = "cluster_events"


class SummaryResource(enum.Enum):
    """What can be counted."""

    ACTORS = "actors"
    TASKS = "tasks"
    OBJECTS = "objects"


@dataclasses.dataclass
class ListApiOptions:
    """Which rows are wanted."""

    limit: int | None = DEFAULT_LIMIT
    timeout: int = DEFAULT_RPC_TIMEOUT
    detail: bool = False
    filters: Sequence[tuple[str, str, Any]] | None = None


@dataclasses.dataclass
class GetApiOptions:
    """How one row is asked for."""

    timeout: int = DEFAULT_RPC_TIMEOUT


@dataclasses.dataclass
class SummaryApiOptions:
    """How a summary is asked for."""

    timeout: int = DEFAULT_RPC_TIMEOUT
