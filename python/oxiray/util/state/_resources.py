"""What can be listed, and what can be counted."""

from __future__ import annotations

import enum


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
