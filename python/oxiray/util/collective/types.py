"""Backends, reductions and options of collective operations, by Ray's names."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import ClassVar


def cupy_available() -> bool:
    """Never: operations are on arrays in the machine's memory."""
    return False


def torch_available() -> bool:
    return importlib.util.find_spec("torch") is not None


class Backend:
    """Names of backends. All of them mean the same here: shared memory, and transfers of objects
    between nodes."""

    NCCL: ClassVar[str] = "NCCL"
    GLOO: ClassVar[str] = "GLOO"
    UNRECOGNIZED: ClassVar[str] = "unrecognized"

    def __new__(cls, name: str) -> str:  # type: ignore[misc]
        known = {"NCCL": cls.NCCL, "GLOO": cls.GLOO, "TORCH_GLOO": cls.GLOO}
        found = known.get(name.upper()) if isinstance(name, str) else None
        if found is None:
            raise ValueError(f"Unrecognized backend: {name!r}. Only NCCL and GLOO are supported")
        return found


class ReduceOp(Enum):
    """How values of several members become one."""

    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3


unset_timeout_ms = timedelta(milliseconds=-1)


@dataclass
class AllReduceOptions:
    reduceOp = ReduceOp.SUM
    timeout_ms = unset_timeout_ms


@dataclass
class BarrierOptions:
    timeout_ms = unset_timeout_ms


@dataclass
class ReduceOptions:
    reduceOp = ReduceOp.SUM
    root_rank = 0
    root_tensor = 0
    timeout_ms = unset_timeout_ms


@dataclass
class AllGatherOptions:
    timeout_ms = unset_timeout_ms


@dataclass
class BroadcastOptions:
    root_rank = 0
    root_tensor = 0
    timeout_ms = unset_timeout_ms


@dataclass
class ReduceScatterOptions:
    reduceOp = ReduceOp.SUM
    timeout_ms = unset_timeout_ms


@dataclass
class SendOptions:
    dst_rank = 0
    dst_gpu_index = 0
    n_elements = 0
    timeout_ms = unset_timeout_ms


@dataclass
class RecvOptions:
    src_rank = 0
    src_gpu_index = 0
    n_elements = 0
    unset_timeout_ms = unset_timeout_ms
