"""Values to bytes and back: pickle protocol 5, large buffers out of band.

The native module calls these two for what it does not encode itself. Classes and functions of
`__main__` and closures go by value (cloudpickle). A plain numpy array, the common large value,
skips all Python-level hooks; `_pickler` has the hooks for everything else.
"""

from __future__ import annotations

import io
import pickle
import sys

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from typing import Any

# Numpy's own pickling puts an array out of band by exporting it as a buffer, which it does for
# these kinds of dtypes; `_arrays` has the others.
_BUFFER_KINDS = frozenset("biufcSU")

_array: Any = None  # numpy's type, once numpy is there
_pickler: Any = None  # the module, once something needs it: it imports cloudpickle


def loads(data: Any, buffers: Any) -> Any:
    """The value of `data`; what was out of band comes from `buffers`."""
    return pickle.loads(data, buffers=buffers)


def dumps(value: Any, buffers: list[pickle.PickleBuffer], what: str = "the value") -> bytes:
    """`value` pickled; its large contiguous parts are appended to `buffers`, not copied."""
    global _array, _pickler
    if _array is None:
        # An interrupted import leaves a module without its names: ask, do not assume.
        _array = getattr(sys.modules.get("numpy"), "ndarray", None)
    if type(value) is _array and not value.dtype.hasobject:
        if value.dtype.kind not in _BUFFER_KINDS or not value.flags.forc:
            from ._arrays import Alone

            value = Alone(value)
        return pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    if _pickler is None:
        from . import _pickler
    if len(sys.modules) != _pickler.modules_seen:
        _pickler.look_for_libraries()
    out = io.BytesIO()
    try:
        _pickler.Pickler(out, protocol=5, buffer_callback=buffers.append).dump(value)
    except Exception as error:
        buffers.clear()
        # The message of a plain TypeError is the pickler's, and ours says more. Anything else is
        # what the value's own code raised: a caller may expect it, so it stays what it is.
        if type(error) is TypeError:
            from ._unpicklable import explain

            raise explain(what, value, error) from error
        _note_culprit(what, value, error)
        raise
    return out.getvalue()


def _note_culprit(what: str, value: Any, error: Exception) -> None:
    from ._notes import add_note
    from ._unpicklable import find

    try:
        path, part, _ = find(value)
        kind = f"{type(part).__module__}.{type(part).__qualname__}"
        add_note(
            error, f"Could not serialize {what}: pickling {path}, of type {kind}, raised this."
        )
    except Exception:  # whatever the value's own code does now, the first error is the one to see
        return
