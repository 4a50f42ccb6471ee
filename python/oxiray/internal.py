"""What Ray calls internal, and programs use all the same."""

from __future__ import annotations

from typing import Any

from . import _native


def free(
    object_refs: _native.ObjectRef | list[_native.ObjectRef], local_only: bool = False
) -> None:
    """Frees values at once, whoever holds references: `get` of them raises ObjectFreedError.

    Values that `get` returned before stay what they are. What a task has yet to return is not
    freed. `local_only` frees the same here: an object has one place on one machine.
    """
    refs: Any = object_refs
    if isinstance(refs, _native.ObjectRef):
        refs = [refs]
    if not isinstance(refs, (list, tuple)):
        raise TypeError(f"free() takes an ObjectRef or a list of them, not {object_refs!r}")
    if not isinstance(local_only, bool):
        raise TypeError(f"free(local_only=) must be a bool, not {local_only!r}")
    _native.free(list(refs))
