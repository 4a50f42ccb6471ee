"""The list of rows: each a named piece of work that a side of the comparison can be asked for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Call = Callable[[], object]
Prepare = Callable[[int], Call]


class Skip(Exception):
    """Raised by a row that cannot run here for a reason that is not the side's fault."""


@dataclass(frozen=True)
class Row:
    """What a row is called, what it counts, and how to make the call that is timed."""

    name: str
    unit: str
    prepare: Prepare
    # One timed call does this many items; `prepare` is told, so count and work cannot disagree.
    items: int
    quick_items: int
    # How much of the unit one item is worth.
    weight: float
    # Calls that must have been made before any counts.
    warm_up_calls: int
    # Whether the call returns how many of its seconds count.
    own_clock: bool
    # Arguments for `start` beyond the usual ones.
    init: dict[str, Any] = field(default_factory=dict)

    @property
    def lower_is_better(self) -> bool:
        """Whether it is said how long a call takes, rather than how many there are in a second."""
        return self.unit == "ms"


ROWS: dict[str, Row] = {}


def row(
    name: str,
    unit: str,
    *,
    items: int = 1,
    quick_items: int | None = None,
    weight: float = 1,
    warm_up_calls: int = 1,
    own_clock: bool = False,
    init: dict[str, Any] | None = None,
) -> Callable[[Prepare], Prepare]:
    """Registers a function that sets a row up and returns the call to time."""

    def register(prepare: Prepare) -> Prepare:
        quick = items if quick_items is None else quick_items
        ROWS[name] = Row(
            name, unit, prepare, items, quick, weight, warm_up_calls, own_clock, init or {}
        )
        return prepare

    return register
