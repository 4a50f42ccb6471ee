"""What a `StateApiClient` is asked about and how, and what rows and summaries are: Ray's names."""

from __future__ import annotations

from typing import Any

from ._asked import DEFAULT_RPC_TIMEOUT, GetApiOptions, ListApiOptions, SummaryApiOptions
from ._counted import (
    ActorSummaries,
    ActorSummaryPerClass,
    ObjectSummaries,
    ObjectSummaryPerKey,
    TaskSummaries,
    TaskSummaryPerFuncOrClassName,
)
from ._list import DEFAULT_LIMIT
from ._plain import remove_ansi_escape_codes
from ._readable import Humanify
from ._resources import StateResource, SummaryResource
from ._rows import (
    KINDS,
    ActorState,
    JobState,
    NodeState,
    ObjectState,
    PlacementGroupState,
    Row,
    TaskState,
    WorkerState,
)

__all__ = [
    "DEFAULT_LIMIT",
    "DEFAULT_RPC_TIMEOUT",
    "ActorState",
    "ActorSummaries",
    "ActorSummaryPerClass",
    "GetApiOptions",
    "Humanify",
    "JobState",
    "ListApiOptions",
    "NodeState",
    "ObjectState",
    "ObjectSummaries",
    "ObjectSummaryPerKey",
    "PlacementGroupState",
    "StateResource",
    "StateSchema",
    "SummaryApiOptions",
    "SummaryResource",
    "TaskState",
    "TaskSummaries",
    "TaskSummaryPerFuncOrClassName",
    "WorkerState",
    "dict_to_state",
    "filter_fields",
    "remove_ansi_escape_codes",
    "resource_to_schema",
]

StateSchema = Row


def resource_to_schema(resource: StateResource) -> type[Row]:
    """The class of a resource's rows."""
    name = resource.value.replace("_", "-")
    if name not in KINDS:
        raise ValueError(f"of {resource.value} there are no rows here, but of {', '.join(KINDS)}")
    return KINDS[name]


def dict_to_state(d: dict[str, Any], state_resource: StateResource) -> Row:
    """A dictionary as a row."""
    return resource_to_schema(state_resource)(d)


def filter_fields(data: dict[str, Any], state_dataclass: type[Row], detail: bool) -> dict[str, Any]:
    """What of a dictionary are columns of a row."""
    return {name: data.get(name) for name in state_dataclass.list_columns(detail)}
