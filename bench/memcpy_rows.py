"""The limit for putting a large array: a plain copy of it into warm shared memory."""

import mmap
from typing import Any

import arrays
from registry import Call, row


def start() -> None:
    pass


def stop() -> None:
    pass


def copy_of(array: Any) -> Call:
    source = memoryview(array).cast("B")
    target = memoryview(mmap.mmap(-1, len(source)))
    # Cold pages cost a fault each; the limit is what warm ones allow.
    target[:] = source

    def call() -> None:
        target[:] = source

    return call


@row("single client put gigabytes", "GB/s", weight=arrays.LARGE_GIGABYTES)
def copy_untouched(_: int) -> Call:
    return copy_of(arrays.untouched(arrays.LARGE_LENGTH))


@row("single client put 1 MB *", "calls/s")
def copy_megabyte(_: int) -> Call:
    return copy_of(arrays.touched(125_000))


@row("single client put gigabytes, touched array *", "GB/s", weight=arrays.LARGE_GIGABYTES)
def copy_touched(_: int) -> Call:
    return copy_of(arrays.touched(arrays.LARGE_LENGTH))
