"""Values to bytes and back: pickle protocol 5, large buffers out of band.

The native module calls these two for what it does not encode itself. Classes and functions of
`__main__` and closures go by value (cloudpickle). Numpy arrays, the common large value, skip
cloudpickle's Python-level hooks.
"""

from __future__ import annotations

import io
import pickle
import sys

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from typing import Any


def loads(data: Any, buffers: Any) -> Any:
    """The value of `data`; what was out of band comes from `buffers`."""
    return pickle.loads(data, buffers=buffers)


def dumps(value: Any, buffers: list[pickle.PickleBuffer], what: str = "the value") -> bytes:
    """`value` pickled; its large contiguous parts are appended to `buffers`, not copied."""
    numpy = sys.modules.get("numpy")
    # An interrupted import leaves a module without its names: ask, do not assume.
    array = getattr(numpy, "ndarray", None)
    if array is not None and type(value) is array and not value.dtype.hasobject:
        return pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    import cloudpickle

    out = io.BytesIO()
    try:
        cloudpickle.CloudPickler(out, protocol=5, buffer_callback=buffers.append).dump(value)
    except Exception as error:
        buffers.clear()
        from ._unpicklable import explain

        raise explain(what, value, error) from error
    return out.getvalue()
