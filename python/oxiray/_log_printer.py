"""Prints in the driver what workers print: a thread over `_native.next_log()`.

`sys.stdout` and `sys.stderr` are looked up for every batch: notebooks replace them per cell.
"""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from . import _bars, _log_text, _native, _settings
from ._log_folding import Folder, FoldingRules, Line
from ._stuck import Lookout

_HINT = (
    "Lines that several workers print are shown once and then counted every few seconds; "
    "RAY_DEDUP_LOGS=0 in the environment shows all."
)
_hint_given = False


class LogPrinter:
    def __init__(self, show_logs: bool) -> None:
        self._show_logs = show_logs
        rules = FoldingRules.from_environment()
        # By whether it is standard error.
        self._folders = {is_error: Folder(rules) for is_error in (False, True)} if rules else {}
        # The thread's, and that of who flushes.
        self._lock = threading.Lock()
        self._printed = 0
        self._done = threading.Event()
        # Not a `threading.Thread`: notebooks show what such a thread prints under the cell that
        # started it, and this one speaks to whoever looks at the cell that runs now.
        _thread.start_new_thread(self._run, ())
        self._forget_cells = _after_cells(self.flush)
        self._lookout = Lookout(_settings.number("OXIRAY_WARN_STUCK_AFTER_S", 0, 1e6), self.warn)

    def join(self, patience: float) -> None:
        """Waits until all that arrived is printed; the session must have ended.

        Gives up when nothing could be printed for `patience` seconds: nobody reads.
        """
        self._lookout.end()
        printed = -1
        while not self._done.wait(patience) and printed != self._printed:
            printed = self._printed
        self._forget_cells()

    def warn(self, text: str) -> None:
        """Says something of ours."""
        with self._lock:
            self._warn([text])

    def flush(self) -> None:
        """Prints what is held back."""
        with self._lock:
            for is_error, folder in self._folders.items():
                self._print(is_error, folder.flush())

    def _run(self) -> None:
        try:
            while (entry := _native.next_log(self._patience())) is not None:
                try:
                    with self._lock:
                        self._take(*entry)
                except Exception:  # whatever is wrong with one must not stop what comes later
                    continue
            self.flush()
            _bars.bars().finish()
        finally:
            self._done.set()

    def _patience(self) -> float | None:
        """Seconds until something is to be printed whatever comes."""
        times = [folder.next_due() for folder in self._folders.values()]
        times.append(_bars.next_draw())
        due = [at for at in times if at is not None]
        return max(min(due) - time.monotonic(), 0.0) if due else None

    def _take(
        self, kind: str, name: str, pid: int, host: str, is_error: bool, texts: list[str]
    ) -> None:
        now = time.monotonic()
        if kind == "warning":
            self._warn(texts)
        elif kind == "log" and self._show_logs:
            lines = (Line(name, pid, host, text) for text in texts)
            self._print(is_error, self._shown(is_error, lines, now))
        for stream, folder in self._folders.items():
            self._print(stream, folder.due(now))
        _bars.draw(now)
        self._printed += 1

    def _shown(self, is_error: bool, lines: Iterable[Line], now: float) -> list[Line]:
        folder = self._folders.get(is_error)
        shown = []
        for line in lines:
            if line.text.startswith(_bars.MARK):
                _bars.bars().take(line, now)
            elif folder is None:
                shown.append(line)
            elif (found := folder.add(line, now)) is not None:
                shown.append(found)
        return shown

    def _print(self, is_error: bool, lines: list[Line]) -> None:
        global _hint_given
        stream = sys.stderr if is_error else sys.stdout
        if not lines or stream is None:
            return
        terminal, colours = _log_text.is_terminal(stream), _log_text.is_coloured(stream)
        written = [_log_text.written(line, terminal=terminal, colours=colours) for line in lines]
        _write(stream, "".join(written))
        if not _hint_given and any(line.repeated for line in lines):
            _hint_given = True
            self._warn([_HINT])

    def _warn(self, texts: list[str]) -> None:
        stream = sys.stderr
        if stream is not None:
            colours = _log_text.is_coloured(stream)
            _write(stream, "".join(_log_text.written_by_us(t, colours=colours) for t in texts))


def _write(stream: TextIO, text: str) -> None:
    """One write, so that lines of the user's own threads do not fall in between."""
    with _bars.hidden():
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = getattr(stream, "encoding", None) or "ascii"
            _try_to(stream.write, text.encode(encoding, "backslashreplace").decode(encoding))
        except Exception:  # a closed or broken stream must not stop what comes later
            return
        _try_to(stream.flush)


def _try_to(action: Any, *arguments: Any) -> None:
    try:
        action(*arguments)
    except Exception:
        pass


def _after_cells(action: Callable[[], None]) -> Callable[[], None]:
    """In a notebook, does it whenever a cell is done, until what is returned is called."""
    if "IPython" not in sys.modules:
        return lambda: None
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        return lambda: None
    shell.events.register("post_execute", action)
    return lambda: _try_to(shell.events.unregister, "post_execute", action)
