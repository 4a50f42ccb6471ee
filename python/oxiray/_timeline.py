"""The timeline of the session, in the form that chrome://tracing and Perfetto read."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _native


def timeline(filename: str | os.PathLike[str] | None = None) -> list[dict[str, Any]] | None:
    """The events of the session, or None after writing them to `filename` as JSON.

    Times are in microseconds from the first of them: since 1970 they would be longer than viewers
    keep to the nanosecond. `start_us` of the `process_name` events says when that was.
    """
    if not _native.is_running():
        raise RuntimeError("There is no session to show a timeline of: call init() first")
    if filename is not None:
        warn(_native.write_timeline(os.fspath(filename)))
        return None
    encoded, missing = _native.timeline()
    warn(missing)
    events: list[dict[str, Any]] = json.loads(encoded)
    return events


def warn(missing: list[str]) -> None:
    """Says what a timeline lacks."""
    if missing:
        import warnings

        warnings.warn(f"The timeline is not complete: {'; '.join(missing)}", stacklevel=3)
