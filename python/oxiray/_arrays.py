"""Numpy arrays as buffers, where numpy itself would write them into the pickle.

Numpy's own pickling puts an array out of band if it is contiguous and its dtype can be exported as
a buffer. Here are the others: strided and reversed arrays, times, records, subclasses without data
of their own.

The array that comes back is a view, read-only as its buffer is, with axes in memory in the same
order as before.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


def reducers() -> dict[type, Callable[[Any], Any]]:
    """How each of numpy's types is reduced."""
    # Masked arrays and other subclasses have ways of their own.
    return dict.fromkeys((np.ndarray, np.memmap, np.matrix, np.recarray), _reduce)


def _reduce(array: np.ndarray[Any, Any]) -> Any:
    dtype, kind = array.dtype, type(array)
    plain = dtype.kind in "biufcSU"
    if (
        (plain and array.flags.forc and kind is np.ndarray)
        or not (plain or dtype.kind in "mMV")
        or dtype.hasobject
        or dtype.itemsize == 0
    ):
        return array.__reduce_ex__(5)
    base = array if kind is np.ndarray else array.view(np.ndarray)
    packed, strides = (base, None) if base.flags.c_contiguous else _packed(base)
    data = pickle.PickleBuffer(packed.reshape(-1).view(np.uint8).data)
    # A subclass goes by name: some of their modules cannot be found under the name they claim.
    name = None if kind is np.ndarray else kind.__name__
    return _rebuild, (data, dtype, base.shape, strides, name)


def _packed(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], tuple[int, ...]]:
    """The elements without gaps, and the strides by which they are the array again."""
    # An axis of stride 0 repeats one element: that one is kept, and repeated again by the strides.
    once = array[tuple(slice(1) if step == 0 else slice(None) for step in array.strides)]
    axes = sorted(range(once.ndim), key=lambda axis: -abs(once.strides[axis]))
    # A copy only where there are gaps or negative steps; otherwise this is the array's own memory.
    packed = np.ascontiguousarray(once.transpose(axes))
    strides = [0] * array.ndim
    for axis, step in zip(axes, packed.strides, strict=True):
        strides[axis] = step if array.strides[axis] else 0
    return packed, tuple(strides)


def _rebuild(
    data: Any,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    name: str | None,
) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = np.ndarray(shape, dtype, data, 0, strides)
    return array if name is None else array.view(getattr(np, name))


class Alone:
    """Pickles as the array it holds, for picklers that do not know `reducers`."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __reduce__(self) -> Any:
        return _reduce(self.array)
