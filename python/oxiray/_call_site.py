"""Names the user's line that creates a reference, for `oxiray memory`."""

from __future__ import annotations

import os
import sys
from types import FrameType

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def frames_inside() -> int:
    """How many frames of this package are between its caller, included, and the user's line."""
    frame: FrameType | None = sys._getframe(1)
    count = 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, count = frame.f_back, count + 1
    return count


def describe(what: str) -> str:
    """`(put) train.py:12 in step`: the innermost frame that is not of this package."""
    frame = sys._getframe(1) if hasattr(sys, "_getframe") else None
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return f"({what})"
    code = frame.f_code
    return f"({what}) {code.co_filename}:{frame.f_lineno} in {code.co_name}"
