"""`summarize_tasks` and its like: how many there are of each name, by state."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from ._counted import ActorSummaries, ObjectSummaries, TaskSummaries
from ._list import Filters, rows
from ._observer import ask, miss

_TIMEOUT_S = 30


# Ray keeps room for a summary of each node, and gives one of all.
_OF_ALL = "cluster"


def _groups(
    resource: str, address: str | None, timeout: float, raise_on_missing_output: bool
) -> list[dict[str, Any]]:
    (text, missing), gaps = ask(
        address, lambda observer: (observer.summary(resource), observer.gaps()), timeout
    )
    miss(missing, raise_on_missing_output, gaps)
    groups: list[dict[str, Any]] = json.loads(text)["rows"]
    return groups


def _of_all(summaries: Any) -> dict[str, Any]:
    return {_OF_ALL: dataclasses.asdict(summaries)}


def summarize_tasks(
    address: str | None = None,
    timeout: int = _TIMEOUT_S,
    raise_on_missing_output: bool = True,
    _explain: bool = False,
) -> dict[str, Any]:
    """Tasks by the name of their function."""
    groups = _groups("tasks", address, timeout, raise_on_missing_output)
    counted = {
        (group["name"], group["type"], state): count
        for group in groups
        for state, count in group["states"].items()
    }
    return _of_all(TaskSummaries.of_counts(counted))


def summarize_actors(
    address: str | None = None,
    timeout: int = _TIMEOUT_S,
    raise_on_missing_output: bool = True,
    _explain: bool = False,
) -> dict[str, Any]:
    """Actors by the name of their class."""
    groups = _groups("actors", address, timeout, raise_on_missing_output)
    counted = {
        (group["name"], state): count
        for group in groups
        for state, count in group["states"].items()
    }
    return _of_all(ActorSummaries.of_counts(counted))


def summarize_objects(
    address: str | None = None,
    timeout: int = _TIMEOUT_S,
    raise_on_missing_output: bool = True,
    _explain: bool = False,
) -> dict[str, Any]:
    """Objects by where they were created, if that is recorded."""
    found = rows("objects", address, None, None, timeout, False, raise_on_missing_output)
    return _of_all(ObjectSummaries.to_summary(objects=found))


def summarize_some(
    resource: str,
    address: str | None,
    filters: Filters,
    timeout: int,
    raise_on_missing_output: bool,
) -> dict[str, Any]:
    """The same of the rows that meet the conditions."""
    found = rows(resource, address, filters, None, timeout, False, raise_on_missing_output)
    if resource == "tasks":
        return _of_all(TaskSummaries.to_summary_by_func_name(tasks=found))
    if resource == "actors":
        return _of_all(ActorSummaries.to_summary(actors=found))
    return _of_all(ObjectSummaries.to_summary(objects=found))
