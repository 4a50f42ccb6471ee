"""How many calls of an actor run at once, in which lanes, and in which order they are begun.

The lanes of an actor are its concurrency groups; the first, without a name, is for calls that name
none.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_COROUTINE, _ASYNC_GENERATOR = 0x80, 0x200  # inspect.CO_*
_ASYNC_CALLS = 1000  # at once, unless the user says how many


class Calling:
    """What a handle has to know to call an actor."""

    __slots__ = ("groups", "max_pending", "order")

    def __init__(self, groups: list[str], order: str, max_pending: int | None) -> None:
        self.groups = groups  # in the order of their lanes, from 1
        self.order = order  # which calls wait behind one without arguments: "all", "lane", "free"
        self.max_pending = max_pending

    def parts(self) -> tuple[list[str], str, int | None]:
        """What it is made of."""
        return self.groups, self.order, self.max_pending

    def __reduce__(self) -> tuple[Any, ...]:
        return Calling, self.parts()

    def lane(self, group: str | None, function: str) -> int:
        if group is None:
            return 0
        if group not in self.groups:
            raise ValueError(no_such_group(group, function, self.groups))
        return self.groups.index(group) + 1


def no_such_group(group: str, function: str, groups: Iterable[str]) -> str:
    known = ", ".join(map(repr, groups)) or "none"
    return (
        f"{function} is to be executed in the concurrency group {group!r}, but there is no such "
        f"group: the actor's class has {known}. Name it in @remote(concurrency_groups={{...}})."
    )


def is_async(cls: type) -> bool:
    """Whether the actors of a class run on event loops: it has an `async def` method."""
    for base in cls.__mro__:
        for member in vars(base).values():
            function = getattr(member, "__func__", member)
            flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
            if flags & (_COROUTINE | _ASYNC_GENERATOR):
                return True
    return False


def limits(cls: type, options: dict[str, Any]) -> list[int]:
    """How many calls may run at once in each lane."""
    given = options.get("max_concurrency")
    default = _ASYNC_CALLS if is_async(cls) else 1
    return [given or default, *(options.get("concurrency_groups") or {}).values()]


def calling(cls: type, options: dict[str, Any]) -> Calling:
    """Raises if the options cannot be had together."""
    runs_several = is_async(cls) or limits(cls, options)[0] > 1
    unordered = options.get("allow_out_of_order_execution")
    if unordered is None:
        unordered = runs_several
    if runs_several and not unordered:
        kind = "async" if is_async(cls) else "multi-threaded"
        raise ValueError(
            f"The calls of {kind} actors cannot be executed in order: leave out "
            "allow_out_of_order_execution, or set it to True."
        )
    groups = list(options.get("concurrency_groups") or {})
    order = "free" if unordered else "lane" if groups else "all"
    return Calling(groups, order, options.get("max_pending_calls"))
