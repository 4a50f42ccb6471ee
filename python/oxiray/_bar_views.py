"""Where progress bars are seen: a terminal, a notebook, or anything else that takes text."""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TextIO

from . import _settings
from ._bar_text import cut
from ._log_text import is_terminal

_PLAIN_COLUMNS = 100
# A file or a pipe remembers all: it gets a line now and then.
_BETWEEN_PLAIN_LINES_S = 10.0


class View(Protocol):
    def columns(self) -> int:
        """How wide a line may be."""

    def show(self, left: list[str], live: list[str], now: float) -> None:
        """Shows bars as they are now; those of `left` stay as they are for ever."""

    def hide(self) -> bool:
        """Makes room for other output until the next `show`; False: there was no need to."""


def choose(hidden: Callable[[bool], AbstractContextManager[None]]) -> View:
    """The view that suits this process; `hidden` is how its streams go around the bars."""
    if _in_notebook():
        return NotebookView()
    stream = sys.stderr
    if stream is not None and is_terminal(stream) and os.environ.get("TERM") != "dumb":
        return TerminalView(stream, StreamsAround(hidden))
    return PlainView()


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


class TerminalView:
    """Bars at the bottom of a terminal; the cursor is in the line below them."""

    def __init__(self, stream: TextIO, around: StreamsAround) -> None:
        self._stream = stream._stream if isinstance(stream, _Around) else stream
        self._rows = 0
        self._around = around

    def columns(self) -> int:
        return self._size()[0] - 1

    def show(self, left: list[str], live: list[str], now: float) -> None:
        rows = max(self._size()[1] - 2, 1)
        if len(live) > rows:
            more = f"… and {len(live) - rows + 1} more"
            live = [*live[: rows - 1], cut(more, self.columns())]
        # One write, over the old bars: nothing flickers.
        text = "".join(f"\x1b[K{line}\n" for line in (*left, *live))
        self._write(f"{self._to_first_row()}{text}\x1b[J")
        self._rows = len(live)
        self._around.put(bool(live))

    def hide(self) -> bool:
        if self._rows == 0:
            return False
        self._write(f"{self._to_first_row()}\x1b[J")
        self._rows = 0
        return True

    def _to_first_row(self) -> str:
        return f"\r\x1b[{self._rows}A" if self._rows else ""

    def _size(self) -> tuple[int, int]:
        try:
            columns, rows = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            columns, rows = 0, 0
        return columns or 80, rows or 24

    def _write(self, text: str) -> None:
        try:
            encoding = self._stream.encoding or "ascii"
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()
        except Exception:  # a terminal that was closed
            pass


class StreamsAround:
    """Lets what the program itself prints go around the bars while there are any."""

    def __init__(self, hidden: Callable[[bool], AbstractContextManager[None]]) -> None:
        self._wanted = _settings.is_on("RAY_TQDM_PATCH_PRINT")
        self._hidden = hidden

    def put(self, wanted: bool) -> None:
        """In place of the program's streams, or away."""
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if isinstance(stream, _Around):
                if not wanted:
                    setattr(sys, name, stream._stream)
            elif wanted and self._wanted and stream is not None and is_terminal(stream):
                setattr(sys, name, _Around(stream, self._hidden))


class _Around:
    """A stream that hides the bars while it is written to, and until its line is at its end."""

    def __init__(
        self, stream: TextIO, hidden: Callable[[bool], AbstractContextManager[None]]
    ) -> None:
        self._stream, self._hidden = stream, hidden

    def write(self, text: str) -> int:
        with self._hidden(not text.endswith("\n")):
            return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)


class PlainView:
    """Seldom a line."""

    def __init__(self) -> None:
        self._last: float | None = None

    def columns(self) -> int:
        return _PLAIN_COLUMNS

    def show(self, left: list[str], live: list[str], now: float) -> None:
        self._last = now if self._last is None else self._last
        if now - self._last >= _BETWEEN_PLAIN_LINES_S:
            self._last = now
            left = [*left, *live]
        stream = sys.stderr
        if left and stream is not None:
            try:
                text = "".join(f"{line}\n" for line in left)
                encoding = getattr(stream, "encoding", None) or "ascii"
                stream.write(text.encode(encoding, "replace").decode(encoding))
                stream.flush()
            except Exception:  # a stream that was closed
                pass

    def hide(self) -> bool:
        return False


class NotebookView:
    """A piece of a cell's output that is written again and again."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._left: list[str] = []

    def columns(self) -> int:
        return _PLAIN_COLUMNS

    def show(self, left: list[str], live: list[str], now: float) -> None:
        from IPython.display import display

        self._left += left
        text = "\n".join((*self._left, *live))
        bundle = {"text/plain": text, "text/html": f"<pre>{html.escape(text)}</pre>"}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
        if not live:  # the next bars are those of another cell, probably
            self._handle, self._left = None, []

    def hide(self) -> bool:
        return False
