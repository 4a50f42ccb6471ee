"""Caffe's way to describe nets: `layers`, `params`, `to_proto`, `NetSpec`, and their messages.

Nets are described here, not run: what would run one raises an error that says so.
"""

from __future__ import annotations

from typing import Any, NoReturn

from . import proto
from .net_spec import Function, NetSpec, Top, layers, params, to_proto

__all__ = ["Function", "NetSpec", "Top", "layers", "params", "proto", "to_proto"]

TRAIN = 0
TEST = 1

_OF_A_REAL_ONE = (
    "Net SGDSolver AdamSolver NesterovSolver AdaGradSolver RMSPropSolver AdaDeltaSolver Classifier "
    "Detector get_solver set_mode_cpu set_mode_gpu set_device set_random_seed io"
).split()


def __getattr__(name: str) -> Any:
    if name not in _OF_A_REAL_ONE:
        raise AttributeError(f"module 'caffe' has no attribute {name!r}")

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(
            f"caffe.{name}: this caffe describes nets and does not run them. Write the net to a "
            "file for a program that reads Caffe's, such as OpenCV's cv2.dnn.readNetFromCaffe."
        )

    return refuse
