"""Timelines to look at: inside a notebook, or as files."""

from __future__ import annotations

import os
import sys
import tempfile
import time

from .. import _native
from .._timeline import timeline, warn

# Rectangles a row in a notebook: more than any screen has, and still a small page.
_WIDTH = 4000


def task_timeline(filename: str | None = None) -> str | None:
    """Shows the session's tasks, if this is a notebook; else writes them as a Chrome trace.

    With `filename` it writes in any case. Returns the path of what was written.
    """
    if filename is None and _in_notebook():
        _show()
        return None
    if filename is None:
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        prefix = f"oxiray-timeline-{stamp}-"
        handle, filename = tempfile.mkstemp(prefix=prefix, suffix=".json")
        os.close(handle)
    timeline(filename)
    print(f"Timeline written to {filename}; open it in https://ui.perfetto.dev or chrome://tracing")
    return filename


def _in_notebook() -> bool:
    # Who runs in a kernel has imported this; nobody else pays for it.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def _show() -> None:
    from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]

    from ._timeline_page import page

    if not _native.is_running():
        raise RuntimeError("There is no session to show a timeline of: call init() first")
    names, rows, missing = _native.timeline_view(_WIDTH)
    warn(missing)
    display(HTML(page(names, rows)))
