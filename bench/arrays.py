"""The large arrays that rows put, made in one place so that every side copies the same memory."""

from typing import Any

from registry import Skip

LARGE_LENGTH = 100 * 1024 * 1024
# Ray counts an array of 100 Mi eight-byte integers as 0.8 gigabytes; so do we.
LARGE_GIGABYTES = 0.8


def numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise Skip("numpy is not installed") from None
    return numpy


def untouched(length: int) -> Any:
    """Zeros as Ray's rows have them: all of it is the kernel's one zero page, cheap to read."""
    return numpy().zeros(length, dtype="int64")


def touched(length: int) -> Any:
    """An array with memory of its own behind it, as real data has."""
    return numpy().ones(length, dtype="int64")
