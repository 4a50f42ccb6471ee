"""GPUs: how many this machine offers, and what CUDA calls those the engine assigned.

The engine counts GPUs from 0. Where the driver was started with CUDA_VISIBLE_DEVICES, number i
means the i-th entry of it; otherwise CUDA's own number i.
"""

from __future__ import annotations

import os

VARIABLE = "CUDA_VISIBLE_DEVICES"
# As the process started, before any task changed it.
_inherited = os.environ.get(VARIABLE)


def count() -> int:
    """The GPUs of this machine that the driver may use."""
    if _inherited is not None:
        return len(_entries())
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        return 0


def names(ids: list[int]) -> list[str]:
    """CUDA's names of the GPUs with these numbers."""
    entries = _entries()
    return [entries[i] if i < len(entries) else str(i) for i in ids]


def expose(ids: list[int]) -> None:
    """Lets what runs next in this process see these GPUs only.

    Without an assignment the variable is put back as the driver had it, as in Ray: hiding every GPU
    from a task that asked for none would break programs that share GPUs by hand.
    """
    if ids:
        os.environ[VARIABLE] = ",".join(names(ids))
    elif _inherited is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = _inherited


def _entries() -> list[str]:
    entries = [entry.strip() for entry in (_inherited or "").split(",")]
    return [] if entries in ([""], ["-1"], ["NoDevFiles"]) else entries
