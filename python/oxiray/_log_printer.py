"""Prints in the driver what workers print: a thread over `_native.next_log()`.

`sys.stdout` and `sys.stderr` are looked up for every batch: notebooks replace them per cell.
"""

from __future__ import annotations

import sys
import threading
from typing import TextIO

from . import _native

_COLOURS = {"log": "\x1b[36m", "warning": "\x1b[33m"}
_RESET = "\x1b[0m"


class LogPrinter:
    def __init__(self, show_logs: bool) -> None:
        self._show_logs = show_logs
        self._thread = threading.Thread(target=self._run, name="oxiray-logs", daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Waits until all that arrived is printed; the session must have ended."""
        self._thread.join(timeout)

    def _run(self) -> None:
        while (entry := _native.next_log()) is not None:
            kind, name, pid, host, is_error, lines = entry
            if kind == "log" and not self._show_logs:
                continue
            stream = sys.stderr if is_error or kind == "warning" else sys.stdout
            try:
                _print(stream, kind, name, pid, host, lines)
            except Exception:  # a closed or broken stream must not stop what comes later
                continue


def _print(
    stream: TextIO | None, kind: str, name: str, pid: int, host: str, lines: list[str]
) -> None:
    if stream is None:
        return
    # Without a name: what did not come through Python's streams, as of subprocesses and crashes.
    who = f"{name} pid={pid}" if name else f"pid={pid}"
    who += f", ip={host}" if host else ""
    prefix = f"({who})" if kind == "log" else "(oxiray)"
    if stream.isatty():
        prefix = f"{_COLOURS.get(kind, '')}{prefix}{_RESET}"
    # One write, so that lines of the user's own threads do not fall in between.
    stream.write("".join(f"{prefix} {line}\n" for line in lines))
    stream.flush()
