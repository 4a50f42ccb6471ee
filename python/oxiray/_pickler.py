"""The pickler for values: cloudpickle's, and for some types a way that keeps their data apart.

Which types these are is known only once their libraries are imported, and those are never imported
from here: a value of theirs cannot exist before.
"""

from __future__ import annotations

import copyreg
import importlib
import pickle
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle

Reducer = Callable[[Any], Any]

# Libraries that were not there when we last looked, and which module of ours has `reducers()` for
# their types.
_waiting = {"numpy": "._arrays", "pyarrow": "._arrow", "torch": "._torch"}
modules_seen = 0  # how many modules there were when we last looked
_ours: dict[type, Reducer] = {}
_registered = copyreg.dispatch_table
# Cloudpickle chains its own table and copyreg's, which costs more than the rest of a small value.
_chained = cloudpickle.CloudPickler.dispatch_table
_cloudpickle = getattr(_chained, "maps", [_chained])[0]


class _Table:
    """How a type is reduced: as its user registered, else as we do, else as cloudpickle does."""

    def __getitem__(self, kind: type) -> Reducer:
        reduce: Reducer = _registered.get(kind) or _ours.get(kind) or _cloudpickle[kind]
        return reduce


class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Knows the libraries that `look_for_libraries` found."""

    dispatch_table = _Table()


def look_for_libraries() -> None:
    """Learns of the types of libraries that were imported since."""
    global modules_seen
    seen = len(sys.modules)
    for library in [name for name in _waiting if name in sys.modules]:
        try:
            # Another thread may be importing it, or its import was interrupted: do not wait.
            if sys.modules[library].__spec__._initializing:  # type: ignore[union-attr]
                raise ImportError(library)
            module = importlib.import_module(_waiting[library], __package__)
            _ours.update(module.reducers())
        except (ImportError, AttributeError, KeyError):
            seen = 0
        else:
            _waiting.pop(library, None)
    modules_seen = seen


def _reduce_memoryview(view: memoryview) -> tuple[Any, ...]:
    """Comes back as a read-only memoryview: the same if `cast` can make it, else of plain bytes."""
    if not view.c_contiguous:
        return _view, (pickle.PickleBuffer(view.tobytes()), view.format, view.shape)
    return _view, (pickle.PickleBuffer(view), view.format, view.shape)


def _view(buffer: Any, form: str, shape: tuple[int, ...]) -> memoryview:
    view = memoryview(buffer)
    try:
        return view.cast(form, shape)  # type: ignore[call-overload, no-any-return]
    except (ValueError, TypeError):  # a format of numpy's, or nothing in it
        return view


_ours[memoryview] = _reduce_memoryview
