"""The timeline of finished tasks, in the form that chrome://tracing and Perfetto read."""

from __future__ import annotations

from typing import Any

from . import _native


def timeline(filename: str | None = None) -> list[dict[str, Any]] | None:
    """The events of the session, or None after writing them to `filename` as JSON."""
    if not _native.is_running():
        raise RuntimeError("There is no session to show a timeline of: call init() first")
    node = _native.cluster_view()["host"]
    events = [
        {
            "ph": "X",
            "name": name,
            "cat": "task",
            "pid": node,
            "tid": pid,
            "ts": start / 1000,
            "dur": duration / 1000,
            "args": {"task_id": task_id},
        }
        for name, pid, start, duration, task_id in _native.timeline()
    ]
    if filename is None:
        return events
    import json

    with open(filename, "w") as file:
        json.dump(events, file)
    return None
