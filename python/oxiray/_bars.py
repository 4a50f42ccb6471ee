"""The progress bars of this driver: its own and those of its workers, drawn together.

A worker says how far it is in a line `MARK` + JSON of its standard output, which the node service
keeps out of the log files. What arrives is checked: anyone can print such a line.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

from . import _bar_views, _log_text
from ._bar_text import Bar, bar_line
from ._log_folding import Line

MARK = "\x1eoxiray-bar:"

_BETWEEN_DRAWINGS_S = 0.05
_LONGEST_DESC, _LONGEST_UNIT = 200, 20
_MOST_LIVE = 10_000


class Bars:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        # By machine, process, and what the process calls it.
        self._live: dict[tuple[str, int, str], Bar] = {}
        self._left: list[Bar] = []
        self._view: _bar_views.View | None = None
        self._drawn = 0.0
        self._changed = False
        # Whether the program's last line has no end: bars drawn now would come into it.
        self._mid_line = False

    def take(self, line: Line, now: float) -> None:
        """A worker's line. What is not understood is passed over."""
        import json

        try:
            state = json.loads(line.text.removeprefix(MARK))
        except ValueError:
            return
        if isinstance(state, dict):
            name = _text(state.get("name"), _LONGEST_DESC)
            who = _log_text.who(name, line.pid, line.host, colours=False)
            self.update((line.host, line.pid), who, state, now)

    def update(self, source: tuple[str, int], who: str, state: dict[str, Any], now: float) -> None:
        """A bar is new, has moved, or is done."""
        host, pid = source
        key = (host, pid, str(state.get("id"))[:100])
        with self._lock:
            bar = self._live.get(key)
            if bar is None:
                if len(self._live) >= _MOST_LIVE:
                    return
                bar = self._live[key] = Bar(who, now, pid=pid, is_here=not host)
            bar.desc = _text(state.get("desc"), _LONGEST_DESC)
            bar.unit = _text(state.get("unit") or "it", _LONGEST_UNIT)
            bar.n = _number(state.get("n")) or 0
            bar.total = _number(state.get("total"))
            bar.position = int(_number(state.get("position")) or 0)
            bar.closed = bool(state.get("closed"))
            if bar.closed:
                self._left.append(self._live.pop(key))
            self._changed = True

    def next_draw(self) -> float | None:
        """When to draw; None: there is nothing to."""
        if self._mid_line or not (self._live or self._left):
            return None
        return self._drawn + (_BETWEEN_DRAWINGS_S if self._changed else 1.0)

    def draw(self, now: float) -> None:
        """Draws, if it is time to."""
        at = self.next_draw()
        if at is not None and now >= at:
            with self._lock:
                self._end_those_of_the_dead()
                self._show(now)

    def settle(self, now: float) -> None:
        """Draws what is done at once: nobody may come by later."""
        if self._left:
            with self._lock:
                self._show(now)

    def finish(self) -> None:
        """All bars stay as they are."""
        with self._lock:
            self._left += self._live.values()
            self._live.clear()
            if self._left:
                self._show(time.monotonic())

    @contextlib.contextmanager
    def hidden(self, mid_line: bool = False) -> Iterator[None]:
        """Other output may be written meanwhile; what ends in the middle of a line goes on."""
        with self._lock:
            hid = self._view is not None and self._view.hide()
            try:
                yield
            finally:
                again = hid or self._mid_line
                self._mid_line = mid_line
                if again and self._live and not mid_line:
                    self._show(time.monotonic())

    def _show(self, now: float) -> None:
        if self._view is None:
            self._view = _bar_views.choose(self.hidden)
        columns = self._view.columns()
        # Workers in the order in which they came, the bars of each by their positions.
        order = {key[:2]: at for at, key in reversed([*enumerate(self._live)])}
        live = sorted(self._live.items(), key=lambda item: (order[item[0][:2]], item[1].position))
        left, self._left = self._left, []
        self._view.show(
            [bar_line(bar, now, columns) for bar in left],
            [bar_line(bar, now, columns) for _, bar in live],
            now,
        )
        self._drawn, self._changed = now, False
        if not self._live:  # the next ones may be seen elsewhere
            self._view = None

    def _end_those_of_the_dead(self) -> None:
        for key, bar in [*self._live.items()]:
            if bar.is_here and bar.pid != os.getpid() and not os.path.exists(f"/proc/{bar.pid}"):
                self._left.append(self._live.pop(key))


def _text(value: object, longest: int) -> str:
    return " ".join(_log_text.plain(str(value or ""))[:longest].split())


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return value if abs(value) < 1e18 else None
    return None


_bars = Bars()


def bars() -> Bars:
    """Those of this process."""
    return _bars


def next_draw() -> float | None:
    return _bars.next_draw()


def draw(now: float) -> None:
    _bars.draw(now)


def hidden() -> contextlib.AbstractContextManager[None]:
    return _bars.hidden()


def safe_print(*values: object, **options: Any) -> None:
    """`print` that goes around the bars."""
    with _bars.hidden():
        print(*values, **options)


def _forget() -> None:
    """A forked child has no bars, and its parent's lock may be held for ever."""
    global _bars
    _bar_views.StreamsAround(_bars.hidden).put(False)
    _bars = Bars()


os.register_at_fork(after_in_child=_forget)
