"""A large argument that is passed by value again and again: said once, for `put` stores it once.

Each call copies such a value into the store anew. Only the last one is remembered, and not kept
alive by that.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

_is_said = False
_is_last: Callable[[Any], bool] = lambda _: False  # noqa: E731


def passed(value: Any, what: str, size: int) -> None:
    """A call of `what` has just stored this argument."""
    global _is_said, _is_last
    if _is_said:
        return
    if not _is_last(value):
        _is_last = _recogniser(value)
        return
    _is_said = True
    import warnings

    warnings.warn(
        f"The same {type(value).__name__} of {size >> 20} MiB is passed to calls of {what} again "
        "and again, and each of them stores a copy of it. Store it once with put(), and pass the "
        "reference.",
        stacklevel=2,
    )


def _recogniser(value: Any) -> Callable[[Any], bool]:
    try:
        reference = weakref.ref(value)
    except TypeError:
        traits = _traits(value)
        return lambda other: traits is not None and _traits(other) == traits
    return lambda other: reference() is other


def _traits(value: Any) -> tuple[Any, ...] | None:
    """What tells builtin values apart, which cannot be referred to weakly: another one may have the
    address of one that is gone, but hardly its contents too."""
    if isinstance(value, (bytes, str)):
        return id(value), len(value), hash(value)
    if isinstance(value, (list, tuple)) and value:
        return id(value), len(value), id(value[0]), id(value[-1])
    if isinstance(value, dict) and value:
        return id(value), len(value), *map(id, next(iter(value.items())))
    return None
