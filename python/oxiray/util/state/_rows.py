"""Rows: dictionaries whose keys are attributes, too, and the columns that they have.

The columns are the engine's (`crates/observe/src/rows`); a test compares.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ._readable import readable


class Row(dict[str, Any]):
    """`row.state` and `row["state"]` are the same."""

    __slots__ = ()

    # Those of every row, and those that come with `detail=True` only.
    _always: ClassVar[str] = ""
    _detailed: ClassVar[str] = ""

    @classmethod
    def base_columns(cls) -> set[str]:
        """The columns of every row."""
        return set(cls._always.split())

    @classmethod
    def columns(cls) -> set[str]:
        """All columns, those of `detail=True` included."""
        return {*cls._always.split(), *cls._detailed.split()}

    @classmethod
    def detail_columns(cls) -> set[str]:
        """The columns of a row that was asked for with `detail=True`, which are all."""
        return cls.columns()

    @classmethod
    def filterable_columns(cls) -> set[str]:
        """The columns that filters may name: those of every row."""
        return cls.base_columns()

    @classmethod
    def list_columns(cls, detail: bool = True) -> list[str]:
        """The columns, in their order."""
        return sorted(cls.columns() if detail else cls.base_columns())

    @classmethod
    def humanify(cls, state: dict[str, Any]) -> dict[str, Any]:
        """The row with times and sizes as people read them."""
        return {column: readable(column, value) for column, value in state.items()}

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

    def get(self, key: str, default: Any = None) -> Any:
        """As that of any dictionary; Ray's takes the key by its name, too."""
        return super().get(key, default)

    def asdict(self) -> dict[str, Any]:
        """A plain dictionary."""
        return dict(self)


class TaskState(Row):
    """A task, as far as it is."""

    __slots__ = ()
    _always = (
        "actor_id attempt_number creation_time_ms duration_ms end_time_ms error_type "
        "func_or_class_name job_id name node_id parent_task_id start_time_ms state task_id type "
        "worker_id worker_pid"
    )
    _detailed = (
        "attempts error_message events execute_ms feeds fetch_ms needs store_ms task_log_info why"
    )


class ActorState(Row):
    """An actor, alive or dead."""

    __slots__ = ()
    _always = (
        "actor_id class_name death_cause is_detached job_id name node_id num_restarts pid "
        "ray_namespace required_resources state worker_id"
    )
    _detailed = "why"


class ObjectState(Row):
    """An object, as one process holds it."""

    __slots__ = ()
    _always = (
        "borrowers call_site ip node_id object_id object_size pid pinned place reference_type "
        "references task_status type"
    )


class NodeState(Row):
    """A node, alive or gone."""

    __slots__ = ()
    _always = (
        "cpu_percent disk_bytes end_time_ms is_head_node labels memory_total memory_used "
        "node_id node_ip node_name node_number pid resources_available resources_total "
        "restored_bytes spilled_bytes start_time_ms state state_message store_objects "
        "store_size store_used waiting workers"
    )


class WorkerState(Row):
    """A driver or worker, alive or gone."""

    __slots__ = ()
    _always = (
        "activity actor_id cpu_ms end_time_ms exit_detail ip is_alive job_id node_id pid rss "
        "start_time_ms worker_id worker_type"
    )


class JobState(Row):
    """A program."""

    __slots__ = ()
    _always = (
        "driver_node_id driver_pid end_time_ms entrypoint job_id log_file message namespace "
        "start_time_ms status submission_id type"
    )


class PlacementGroupState(Row):
    """A placement group, removed or not."""

    __slots__ = ()
    _always = (
        "bundle_count creator_job_id end_time_ms is_detached name node_ids placement_group_id "
        "ray_namespace start_time_ms state strategy why"
    )
    _detailed = "bundles stats"


KINDS: dict[str, type[Row]] = {
    "tasks": TaskState,
    "actors": ActorState,
    "objects": ObjectState,
    "nodes": NodeState,
    "workers": WorkerState,
    "jobs": JobState,
    "placement-groups": PlacementGroupState,
}
