"""Torch tensors on the CPU: their storages as buffers, once for all tensors that share one.

Torch has no read-only tensors, and a write must not reach the object that others read. So a large
tensor that is got looks at the object through pages of its own: what is not written to is not
copied, and what is written stays in this process. A small one is copied: pages would cost more.
With RAY_ENABLE_ZERO_COPY_TORCH_TENSORS=1 tensors are views on the object itself, and whoever sets
it promises not to write to them; what optimizers write to are copies even then.
"""

from __future__ import annotations

import ctypes
import pickle
from typing import TYPE_CHECKING, Any

import torch

from . import _settings

if TYPE_CHECKING:
    from collections.abc import Callable

# From here on a mapping costs less than a copy, and there are not too many of them.
_PRIVATE_FROM = 256 << 10


def reducers() -> dict[type, Callable[[Any], Any]]:
    """How each of torch's types is reduced."""
    # Before 2.0 a storage has no identity by which tensors could share it: torch does it its way.
    if not hasattr(torch.Tensor, "untyped_storage"):
        return {}
    return {
        torch.Tensor: _reduce_tensor,
        torch.nn.Parameter: _reduce_parameter,
        torch.UntypedStorage: _reduce_storage,
    }


def _reduce_tensor(tensor: Any) -> Any:
    if not _is_plain(tensor):
        return tensor.__reduce_ex__(5)
    # A small part of a large storage goes alone; larger parts share what they shared.
    if tensor.untyped_storage().nbytes() > 2 * tensor.numel() * tensor.element_size():
        tensor = (
            tensor.detach()
            .clone(memory_format=torch.contiguous_format)
            .requires_grad_(tensor.requires_grad)
        )
    return _tensor, (
        tensor.untyped_storage(),
        tensor.dtype,
        tensor.storage_offset(),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.requires_grad,
    )


def _reduce_parameter(parameter: Any) -> Any:
    if not _is_plain(parameter):
        return parameter.__reduce_ex__(5)
    return _parameter, (parameter.data, parameter.requires_grad)


def _reduce_storage(storage: Any) -> Any:
    if storage.device.type != "cpu":
        return storage.__reduce_ex__(5)
    size = storage.nbytes()
    if not size:
        return torch.UntypedStorage, ()
    memory = (ctypes.c_ubyte * size).from_address(storage.data_ptr())
    memory.storage = storage  # which is to live as long as the buffer
    return _storage, (pickle.PickleBuffer(memory),)


def _is_plain(tensor: Any) -> bool:
    """Whether a tensor is its storage's bytes and nothing more."""
    return (
        tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
        and not (tensor._backward_hooks or tensor.__dict__)
    )


def _wants_views() -> bool:
    return _settings.is_on("RAY_ENABLE_ZERO_COPY_TORCH_TENSORS")


def _storage(data: Any) -> Any:
    # What travelled inside a message is small, and this process's own.
    if _wants_views() and not isinstance(data, bytes):
        return torch.frombuffer(data, dtype=torch.uint8).untyped_storage()
    if len(data) >= _PRIVATE_FROM and not isinstance(data, bytes):
        return torch.frombuffer(data.private(), dtype=torch.uint8).untyped_storage()
    storage = torch.UntypedStorage(len(data))  # type: ignore[no-untyped-call]
    memory = (ctypes.c_ubyte * len(data)).from_address(storage.data_ptr())
    memoryview(memory).cast("B")[:] = data
    return storage


def _tensor(
    storage: Any,
    dtype: Any,
    offset: int,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
) -> Any:
    tensor = torch.empty(0, dtype=dtype).set_(storage, offset, shape, stride)  # type: ignore[call-overload]
    return _own(tensor).requires_grad_() if requires_grad else tensor


def _parameter(data: Any, requires_grad: bool) -> Any:
    return torch.nn.Parameter(_own(data), requires_grad)


def _own(tensor: Any) -> Any:
    """The tensor, in any case with memory of its own: optimizers write to it."""
    return tensor.clone() if _wants_views() else tensor
