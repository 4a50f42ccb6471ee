"""How instances of a class become bytes, where the class itself does not say it."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any

__all__ = ["deregister_serializer", "register_serializer"]

_registered: set[type] = set()


class _Reduce:
    """Turns an instance into the call that makes it again: `deserializer(serializer(instance))`.

    Both functions travel with the pickle: whoever reads it need not have registered anything.
    """

    def __init__(self, serializer: Callable[[Any], Any], deserializer: Callable[[Any], Any]):
        self.serializer = serializer
        self.deserializer = deserializer

    def __call__(self, instance: Any) -> tuple[Any, tuple[Any]]:
        return self.deserializer, (self.serializer(instance),)


def register_serializer(
    cls: type, *, serializer: Callable[[Any], Any], deserializer: Callable[[Any], Any]
) -> None:
    """In this process, instances of `cls` are pickled by what `serializer` makes of them.

    It holds for `cls` itself, not for its subclasses. Workers do not know of it: what they pickle
    must be registered in them.
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a class, not {type(cls).__name__}")
    for name, function in (("serializer", serializer), ("deserializer", deserializer)):
        if not callable(function):
            raise TypeError(f"{name} must be callable, not {type(function).__name__}")
    copyreg.pickle(cls, _Reduce(serializer, deserializer))  # type: ignore[arg-type]
    _registered.add(cls)


def deregister_serializer(cls: type) -> None:
    """Undoes `register_serializer`; nothing happens if there was none."""
    if cls in _registered:
        _registered.discard(cls)
        copyreg.dispatch_table.pop(cls, None)
