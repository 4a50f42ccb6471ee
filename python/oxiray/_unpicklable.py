"""Finds what inside a value cannot be pickled, to say it by name.

Runs only after pickling has failed, so it may take its time: it pickles parts of the value until it
stands before the innermost part that fails.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import NamedTuple

_MAX_DEPTH = 12
_MAX_PARTS = 10_000


class Culprit(NamedTuple):
    path: str
    value: object
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {_short(self.value)} ({self.reason})"


def find(value: object, name: str = "value") -> Culprit:
    """The innermost part of `value` that cannot be pickled; `name` starts its path."""
    culprit = Culprit(name, value, failure(value) or "it cannot be pickled")
    seen = {id(value)}
    for _ in range(_MAX_DEPTH):
        inner = _failing_part(culprit, seen)
        if inner is None:
            break
        culprit = inner
    return culprit


def explain(what: str, value: object, error: BaseException, name: str = "value") -> TypeError:
    """The error to raise (`from error`) when `what` could not be pickled."""
    try:
        detail = str(find(value, name))
    except Exception:
        detail = str(error)
    return TypeError(
        f"Could not serialize {what}: {detail}. Create it inside the task or actor, or pass what "
        "it can be made from."
    )


def _failing_part(outer: Culprit, seen: set[int]) -> Culprit | None:
    return next(failing_parts(outer, seen), None)


def failing_parts(outer: Culprit, seen: set[int]) -> Iterator[Culprit]:
    """The parts of a value, but for those seen before, that cannot be pickled."""
    for count, (path, part) in enumerate(_parts(outer.value, outer.path)):
        if count >= _MAX_PARTS:
            break
        if id(part) in seen:
            continue
        seen.add(id(part))
        reason = failure(part)
        if reason is not None:
            yield Culprit(path, part, reason)


def failure(value: object) -> str | None:
    import cloudpickle

    try:
        cloudpickle.dumps(value, protocol=5)
    except Exception as error:
        return str(error) or type(error).__name__
    return None


def _parts(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"key {_short(key)} of {path}", key
            yield f"{path}[{_short(key)}]", item
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield f"{path}[{index}]", item
    elif isinstance(value, (set, frozenset)):
        for item in value:
            yield f"an element of {path}", item
    elif isinstance(value, types.MethodType):
        yield f"{path}.__self__", value.__self__
        yield f"{path}.__func__", value.__func__
    elif isinstance(value, types.FunctionType):
        yield from _parts_of_function(value, path)
    elif isinstance(value, type):
        for name, item in vars(value).items():
            if isinstance(item, (staticmethod, classmethod)):
                item = item.__func__
            if name not in ("__dict__", "__weakref__"):
                yield f"{path}.{name}", item
    else:
        for name, item in list(getattr(value, "__dict__", {}).items()):
            yield f"{path}.{name}", item
        for kind in type(value).__mro__:
            slots = vars(kind).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name):
                    yield f"{path}.{name}", getattr(value, name)


def _parts_of_function(function: types.FunctionType, path: str) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield f"captured variable {name!r} of {path}", cell.cell_contents
        except ValueError:  # an empty cell
            continue
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield f"global variable {name!r} used by {path}", function.__globals__[name]
    for index, item in enumerate(function.__defaults__ or ()):
        yield f"default argument {index} of {path}", item
    for name, item in (function.__kwdefaults__ or {}).items():
        yield f"default argument {name!r} of {path}", item


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"{type(value).__name__} object"
    return text if len(text) <= 80 else text[:77] + "..."
