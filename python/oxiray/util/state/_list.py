"""`list_tasks` and its like."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, cast

from ._observer import ask, miss
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

Filters = Sequence[tuple[str, str, Any]]
R = TypeVar("R", bound=Row)

DEFAULT_LIMIT = 100
_TIMEOUT_S = 30


def rows(
    resource: str,
    address: str | None,
    filters: Filters | None,
    limit: int | None,
    timeout: float,
    detail: bool,
    raise_on_missing_output: bool,
    explain: bool = False,
) -> list[Row]:
    """Rows that meet the conditions; says when there are more than `limit`."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ValueError(f"limit must be a whole number, 0 or more, not {limit!r}")
    conditions = [_condition(each) for each in filters or ()]
    (_, filtered, text, notes), gaps = ask(
        address,
        lambda observer: (
            observer.rows(resource, filters=conditions, limit=limit, detail=detail),
            observer.gaps(),
        ),
        timeout,
    )
    miss(notes, raise_on_missing_output, gaps)
    kind = KINDS[resource]
    found: list[Any] = json.loads(text)
    del text
    # In place: there may be a million, and two lists of them would be twice the memory.
    for at, row in enumerate(found):
        found[at] = kind(row)
    if explain and len(found) < filtered:
        warnings.warn(
            f"These are {len(found)} of {filtered} {resource}; limit= gives more.", stacklevel=3
        )
    return found


def _condition(each: Any) -> tuple[str, str, str]:
    if not isinstance(each, (tuple, list)) or len(each) != 3:
        raise ValueError(f'a filter is a triple such as ("state", "=", "ALIVE"), not {each!r}')
    key, operator, value = each
    return str(key), str(operator), "" if value is None else str(value)


class _Lists(Protocol[R]):
    """What `list_tasks` and its like are."""

    def __call__(
        self,
        address: str | None = None,
        filters: Filters | None = None,
        limit: int | None = DEFAULT_LIMIT,
        timeout: int = _TIMEOUT_S,
        detail: bool = False,
        raise_on_missing_output: bool = True,
        _explain: bool = False,
    ) -> list[R]: ...


def _lists(kind: type[R], about: str) -> _Lists[R]:
    (resource,) = (name for name, each in KINDS.items() if each is kind)

    def list_(
        address: str | None = None,
        filters: Filters | None = None,
        limit: int | None = DEFAULT_LIMIT,
        timeout: int = _TIMEOUT_S,
        detail: bool = False,
        raise_on_missing_output: bool = True,
        _explain: bool = False,
    ) -> list[R]:
        missing = raise_on_missing_output
        found = rows(resource, address, filters, limit, timeout, detail, missing, _explain)
        return cast("list[R]", found)

    list_.__name__ = list_.__qualname__ = f"list_{resource.replace('-', '_')}"
    list_.__doc__ = about
    return list_


list_tasks = _lists(TaskState, "Tasks, the newest first.")
list_actors = _lists(ActorState, "Actors; those that died lately come last.")
list_objects = _lists(ObjectState, "Objects, a row for each process that holds one.")
list_nodes = _lists(NodeState, "Nodes; those that left lately come last.")
list_workers = _lists(WorkerState, "Drivers and workers; those that ended lately come last.")
list_jobs = _lists(JobState, "Programs, those that ended lately included.")
list_placement_groups = _lists(
    PlacementGroupState, "Placement groups, those removed lately included."
)

# What Ray has and Oxiray has not: programs that look for it find none.


def list_runtime_envs(
    address: str | None = None,
    filters: Filters | None = None,
    limit: int | None = DEFAULT_LIMIT,
    timeout: int = _TIMEOUT_S,
    detail: bool = False,
    raise_on_missing_output: bool = True,
    _explain: bool = False,
) -> list[Row]:
    """Nothing: there are no runtime environments here."""
    return []


def list_cluster_events(
    address: str | None = None,
    filters: Filters | None = None,
    limit: int | None = DEFAULT_LIMIT,
    timeout: int = _TIMEOUT_S,
    detail: bool = False,
    raise_on_missing_output: bool = True,
    _explain: bool = False,
) -> list[dict[str, Any]]:
    """Nothing: what happens to nodes and jobs is in their rows, and in the logs."""
    return []
