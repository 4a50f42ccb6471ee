"""`summarize_tasks` and its like: how many there are of each name, by state."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from ._list import rows
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


def summarize_tasks(
    address: str | None = None,
    timeout: int = _TIMEOUT_S,
    raise_on_missing_output: bool = True,
    _explain: bool = False,
) -> dict[str, Any]:
    """Tasks by the name of their function."""
    summary: dict[str, Any] = {}
    kinds: Counter[str] = Counter()
    for group in _groups("tasks", address, timeout, raise_on_missing_output):
        name, kind, states = group["name"], group["type"], group["states"]
        # A function may be called like a method.
        key = name if name not in summary else f"{name} ({kind})"
        summary[key] = {"func_or_class_name": name, "type": kind, "state_counts": states}
        kinds[kind] += sum(states.values())
    whole = {
        "summary": summary,
        "total_tasks": kinds["NORMAL_TASK"],
        "total_actor_tasks": kinds["ACTOR_TASK"],
        "total_actor_scheduled": kinds["ACTOR_CREATION_TASK"],
        "summary_by": "func_name",
    }
    return {_OF_ALL: whole}


def summarize_actors(
    address: str | None = None,
    timeout: int = _TIMEOUT_S,
    raise_on_missing_output: bool = True,
    _explain: bool = False,
) -> dict[str, Any]:
    """Actors by the name of their class."""
    groups = _groups("actors", address, timeout, raise_on_missing_output)
    whole = {
        "summary": {
            group["name"]: {"class_name": group["name"], "state_counts": group["states"]}
            for group in groups
        },
        "total_actors": sum(sum(group["states"].values()) for group in groups),
        "summary_by": "class",
    }
    return {_OF_ALL: whole}


def summarize_objects(
    address: str | None = None,
    timeout: int = _TIMEOUT_S,
    raise_on_missing_output: bool = True,
    _explain: bool = False,
) -> dict[str, Any]:
    """Objects by where they were created, if that is recorded."""
    found = rows("objects", address, None, None, timeout, False, raise_on_missing_output)
    sites: dict[str, list[Any]] = {}
    for row in found:
        sites.setdefault(row["call_site"] or "disabled", []).append(row)
    whole = {
        "summary": {site: _of_site(held) for site, held in sites.items()},
        "total_objects": len(_sizes(found)),
        "total_size_mb": sum(_sizes(found).values()) / 1e6,
        "callsite_enabled": any(row["call_site"] for row in found),
        "summary_by": "callsite",
    }
    return {_OF_ALL: whole}


def _sizes(held: list[Any]) -> dict[str | None, int]:
    """Bytes of each object, however many processes hold it."""
    return {row["object_id"]: row["object_size"] or 0 for row in held}


def _of_site(held: list[Any]) -> dict[str, Any]:
    sizes = _sizes(held)
    return {
        "total_objects": len(sizes),
        "total_size_mb": sum(sizes.values()) / 1e6,
        "total_num_workers": len({(row["node_id"], row["pid"]) for row in held}),
        "total_num_nodes": len({row["node_id"] for row in held}),
        "task_state_counts": dict(Counter(row["task_status"] for row in held)),
        "ref_type_counts": dict(Counter(row["reference_type"] for row in held)),
    }
