"""Rows: dictionaries whose keys are attributes, too."""

from __future__ import annotations

from typing import Any


class Row(dict[str, Any]):
    """`row.state` and `row["state"]` are the same."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"{type(self).__name__} has no column {name!r}; it has {', '.join(self)}. "
                "Some come with detail=True only."
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is what was seen; it cannot be changed")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.items())})"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def asdict(self) -> dict[str, Any]:
        """A plain dictionary."""
        return dict(self)


class TaskState(Row):
    """A task, as far as it is."""

    __slots__ = ()


class ActorState(Row):
    """An actor, alive or dead."""

    __slots__ = ()


class ObjectState(Row):
    """An object, as one process holds it."""

    __slots__ = ()


class NodeState(Row):
    """A node, alive or gone."""

    __slots__ = ()


class WorkerState(Row):
    """A driver or worker, alive or gone."""

    __slots__ = ()


class JobState(Row):
    """A program."""

    __slots__ = ()


class PlacementGroupState(Row):
    """A placement group, removed or not."""

    __slots__ = ()


KINDS: dict[str, type[Row]] = {
    "tasks": TaskState,
    "actors": ActorState,
    "objects": ObjectState,
    "nodes": NodeState,
    "workers": WorkerState,
    "jobs": JobState,
    "placement-groups": PlacementGroupState,
}
