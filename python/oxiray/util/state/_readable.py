"""Times, sizes and durations of rows as people read them."""

from __future__ import annotations

import datetime
from typing import Any

_SIZES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))


class Humanify:
    """What a column's value is as text; by these names Ray's programs call them."""

    @staticmethod
    def timestamp(x: float) -> str:
        """Milliseconds since 1970, in the time zone of this machine."""
        return str(datetime.datetime.fromtimestamp(x / 1000))

    @staticmethod
    def memory(x: int) -> str:
        """Bytes."""
        unit, size = next((one for one in _SIZES if x >= one[1]), _SIZES[-1])
        return f"{x / size:.3f} {unit}"

    @staticmethod
    def duration(x: float) -> str:
        """Milliseconds."""
        return str(datetime.timedelta(milliseconds=x))

    @staticmethod
    def events(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What happened to a task, with the times as text."""
        return [
            {
                name: Humanify.timestamp(value) if name == "created_ms" else value
                for name, value in event.items()
            }
            for event in events
        ]

    @staticmethod
    def node_resources(resources: dict[str, Any]) -> dict[str, Any]:
        """Amounts, with those of memory as text."""
        return {
            name: Humanify.memory(amount) if "memory" in name else amount
            for name, amount in resources.items()
        }


def readable(column: str, value: Any) -> Any:
    """A column's value as people read it, by what the column is called."""
    if value is None:
        return None
    if column == "events":
        return Humanify.events(value)
    if column in ("resources_total", "resources_available", "required_resources"):
        return Humanify.node_resources(value)
    if column.endswith("_time_ms"):
        return Humanify.timestamp(value)
    if column.endswith("_ms"):
        return Humanify.duration(value)
    if column in _BYTES:
        return Humanify.memory(value)
    return value


_BYTES = frozenset(
    "object_size memory_total memory_used disk_bytes restored_bytes spilled_bytes rss store_size "
    "store_used".split()
)
