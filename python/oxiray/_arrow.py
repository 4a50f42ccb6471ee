"""Arrow arrays without the rest of what they are slices of.

Pyarrow pickles its buffers out of band, and whole: ten rows of a large table would carry the table.
Tables, batches, chunked arrays and pandas columns consist of arrays, so these are all it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

# Below this, copying out what is needed costs more than carrying what is not.
_BAGGAGE = 4096


def reducers() -> dict[type, Callable[[Any], Any]]:
    """How each of pyarrow's types is reduced."""
    # Extension arrays of users' classes go pyarrow's way.
    kinds: list[type] = [pa.Array]
    for kind in kinds:  # it grows
        kinds += kind.__subclasses__()
    return {kind: _reduce for kind in kinds if kind.__module__.startswith("pyarrow.")}


def _reduce(array: Any) -> Any:
    try:
        used, whole = array.nbytes, array.get_total_buffer_size()
        if whole - used > max(_BAGGAGE, used // 8):
            array = pa.concat_arrays([array])
    except (pa.ArrowException, NotImplementedError):  # a type that cannot be measured or copied
        pass
    return array.__reduce_ex__(5)
