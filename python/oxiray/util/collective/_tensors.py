"""Arrays of NumPy and of PyTorch, as the collective operations see them: NumPy's, in place."""

from __future__ import annotations

import functools
import sys
from typing import Any

from .types import ReduceOp


def as_array(tensor: Any, argument: str, *, is_written: bool) -> Any:
    """A NumPy array that shares the tensor's memory."""
    import numpy

    if isinstance(tensor, numpy.ndarray):
        if is_written and not tensor.flags.writeable:
            raise ValueError(
                f"{argument} is read-only, as arrays from get() are, and the result is to be "
                "written into it: pass a copy(), and use that afterwards"
            )
        return tensor
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        if tensor.device.type != "cpu":
            raise ValueError(
                f"{argument} is on the device {tensor.device}: collective operations are on arrays "
                "in the machine's memory. Pass tensor.cpu(), and copy the result back"
            )
        try:
            return tensor.detach().numpy()
        except TypeError:
            raise TypeError(
                f"{argument} has the type {tensor.dtype}, which NumPy does not have: pass "
                "tensor.float()"
            ) from None
    raise ValueError(
        f"{argument} must be an array of NumPy or a tensor of PyTorch, not {type(tensor).__name__}"
    )


def reduced(parts: list[Any], op: ReduceOp) -> Any:
    """One array of several, the same whoever does it: in the order of ranks."""
    import numpy

    ufunc = {
        ReduceOp.SUM: numpy.add,
        ReduceOp.PRODUCT: numpy.multiply,
        ReduceOp.MIN: numpy.minimum,
        ReduceOp.MAX: numpy.maximum,
    }.get(op)
    if ufunc is None:
        raise ValueError(f"op must be a ReduceOp, not {op!r}")
    if len(parts) == 1:
        return parts[0].copy()
    result = ufunc(parts[0], parts[1])
    return functools.reduce(lambda so_far, part: ufunc(so_far, part, out=so_far), parts[2:], result)


def described(array: Any) -> str:
    """What members must agree on."""
    return f"{array.dtype}{list(array.shape)}"
