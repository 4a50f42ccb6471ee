"""`inspect_serializability`: what inside a value cannot be pickled, as a tree."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, TextIO

from .._unpicklable import Culprit, failing_parts, failure


class FailureTuple(NamedTuple):
    """A part that cannot be pickled, though all its own parts can."""

    obj: Any
    path: str
    parent: Any

    def __hash__(self) -> int:  # what cannot be pickled can seldom be hashed
        return id(self.obj)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FailureTuple) and self.obj is other.obj


def inspect_serializability(
    base_obj: Any, name: str | None = None, depth: int = 3, print_file: TextIO | None = None
) -> tuple[bool, set[FailureTuple]]:
    """Whether an object can be pickled; if not, prints which parts of it cannot, as deep as
    `depth`, and returns the innermost of those."""
    out = sys.stdout if print_file is None else print_file
    reason = failure(base_obj)
    called = name or getattr(base_obj, "__qualname__", None) or "value"
    print(f"{called}: {_shown(base_obj)}", file=out)
    if reason is None:
        print("  can be pickled", file=out)
        return True, set()
    found: set[FailureTuple] = set()
    _walk(Culprit(called, base_obj, reason), None, depth, 1, out, {id(base_obj)}, found)
    print("Not to be pickled:", file=out)
    for one in found:
        print(f"  {one.path}: {_shown(one.obj)}", file=out)
    print(
        "Make these inside the task or actor, or pass what they can be made from; or tell how they "
        "are pickled, with ray.util.register_serializer().",
        file=out,
    )
    return False, found


def _walk(
    culprit: Culprit,
    parent: Any,
    depth: int,
    indent: int,
    out: TextIO,
    seen: set[int],
    found: set[FailureTuple],
) -> None:
    print(f"{'  ' * indent}!!! {culprit.path}: {culprit.reason}", file=out)
    inner = list(failing_parts(culprit, seen)) if depth > 0 else []
    if not inner:
        found.add(FailureTuple(culprit.value, culprit.path, parent))
    for part in inner:
        _walk(part, culprit.value, depth - 1, indent + 1, out, seen, found)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"{type(value).__name__} object"
    return text if len(text) <= 80 else text[:77] + "..."
