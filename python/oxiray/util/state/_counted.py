"""How many rows there are of each name, by state: summaries, made of rows."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Any

Rows = Iterable[Any]


@dataclasses.dataclass
class TaskSummaryPerFuncOrClassName:
    """Of the tasks of one function."""

    func_or_class_name: str
    type: str
    state_counts: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class TaskSummaries:
    """Of tasks, by the name of their function."""

    summary: dict[str, TaskSummaryPerFuncOrClassName]
    total_tasks: int
    total_actor_tasks: int
    total_actor_scheduled: int
    summary_by: str = "func_name"

    @classmethod
    def to_summary_by_func_name(cls, *, tasks: Rows) -> TaskSummaries:
        counted = Counter((row["func_or_class_name"], row["type"], row["state"]) for row in tasks)
        return cls.of_counts(counted)

    @classmethod
    def of_counts(cls, counted: dict[tuple[str, str, str], int]) -> TaskSummaries:
        """By name, type and state."""
        summary: dict[str, TaskSummaryPerFuncOrClassName] = {}
        kinds: Counter[str] = Counter()
        for (name, kind, state), count in counted.items():
            # A function may be called like a method.
            of_other = name in summary and summary[name].type != kind
            key = f"{name} ({kind})" if of_other else name
            one = summary.setdefault(key, TaskSummaryPerFuncOrClassName(name, kind))
            one.state_counts[state] = count
            kinds[kind] += count
        return cls(summary, kinds["NORMAL_TASK"], kinds["ACTOR_TASK"], kinds["ACTOR_CREATION_TASK"])


@dataclasses.dataclass
class ActorSummaryPerClass:
    """Of the actors of one class."""

    class_name: str
    state_counts: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class ActorSummaries:
    """Of actors, by the name of their class."""

    summary: dict[str, ActorSummaryPerClass]
    total_actors: int
    summary_by: str = "class"

    @classmethod
    def to_summary(cls, *, actors: Rows) -> ActorSummaries:
        return cls.of_counts(Counter((row["class_name"], row["state"]) for row in actors))

    @classmethod
    def of_counts(cls, counted: dict[tuple[str, str], int]) -> ActorSummaries:
        """By class and state."""
        summary: dict[str, ActorSummaryPerClass] = {}
        for (name, state), count in counted.items():
            summary.setdefault(name, ActorSummaryPerClass(name)).state_counts[state] = count
        return cls(summary, sum(counted.values()))


@dataclasses.dataclass
class ObjectSummaryPerKey:
    """Of the objects that were made at one place. Which attempt made one is not known."""

    total_objects: int
    total_size_mb: float
    total_num_workers: int
    total_num_nodes: int
    task_state_counts: dict[str, int] = dataclasses.field(default_factory=dict)
    task_attempt_number_counts: dict[str, int] = dataclasses.field(default_factory=dict)
    ref_type_counts: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class ObjectSummaries:
    """Of objects, by where they were made, if that is recorded."""

    summary: dict[str, ObjectSummaryPerKey]
    total_objects: int
    total_size_mb: float
    callsite_enabled: bool
    summary_by: str = "callsite"

    @classmethod
    def to_summary(cls, *, objects: Rows) -> ObjectSummaries:
        rows = list(objects)
        sites: dict[str, list[Any]] = {}
        for row in rows:
            sites.setdefault(row["call_site"] or "disabled", []).append(row)
        sizes = _sizes(rows)
        return cls(
            {site: _of_site(held) for site, held in sites.items()},
            len(sizes),
            sum(sizes.values()) / 1e6,
            any(row["call_site"] for row in rows),
        )


def _sizes(held: list[Any]) -> dict[str | None, int]:
    """Bytes of each object, however many processes hold it."""
    return {row["object_id"]: row["object_size"] or 0 for row in held}


def _of_site(held: list[Any]) -> ObjectSummaryPerKey:
    sizes = _sizes(held)
    return ObjectSummaryPerKey(
        len(sizes),
        sum(sizes.values()) / 1e6,
        len({(row["node_id"], row["pid"]) for row in held}),
        len({row["node_id"] for row in held}),
        dict(Counter(row["task_status"] for row in held)),
        {},
        dict(Counter(row["reference_type"] for row in held)),
    )
