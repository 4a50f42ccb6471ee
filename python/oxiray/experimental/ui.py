"""Timelines as files to look at."""

from __future__ import annotations

import os
import tempfile
import time

from .._timeline import timeline


def task_timeline(filename: str | None = None) -> str:
    """Writes the session's tasks as a Chrome trace file, says where, and returns the path."""
    if filename is None:
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        prefix = f"oxiray-timeline-{stamp}-"
        handle, filename = tempfile.mkstemp(prefix=prefix, suffix=".json")
        os.close(handle)
    timeline(filename)
    print(f"Timeline written to {filename}; open it in https://ui.perfetto.dev or chrome://tracing")
    return filename
