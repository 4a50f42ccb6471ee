"""Progress bars for tasks, actors and drivers, all drawn by the driver.

    @ray.remote
    def work(n):
        for item in tqdm_ray.tqdm(range(n), desc="work"):
            ...

A subset of tqdm's interface; tqdm itself is not needed.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

from .. import _bars, _native

__all__ = ["safe_print", "tqdm"]

safe_print = _bars.safe_print

# A line of this length is written to a pipe in one piece.
_LONGEST_LINE = 4096
_LONGEST_DESC = 200
_numbers = itertools.count()


class tqdm:
    """A bar. It is drawn from its first report until `close`, which the end of a loop does."""

    DEFAULT_FLUSH_INTERVAL_SECONDS = 0.2

    def __init__(
        self,
        iterable: Iterable[Any] | None = None,
        desc: str | None = None,
        total: float | None = None,
        unit: str | None = None,
        position: int | None = None,
        flush_interval_s: float | None = None,
    ) -> None:
        if total is None and iterable is not None:
            try:
                total = len(iterable)  # type: ignore[arg-type]
            except TypeError:
                total = None
        self._iterable = iterable
        self._desc = desc or ""
        self._unit = unit or "it"
        self._position = position or 0
        self._closed = False
        self.total = total
        self.n: float = 0
        self._id = f"{os.getpid()}.{next(_numbers)}"
        self._interval = (
            self.DEFAULT_FLUSH_INTERVAL_SECONDS if flush_interval_s is None else flush_interval_s
        )
        self._reported = 0.0
        self._in_worker = _native.is_running() and not _native.context()["is_driver"]

    def update(self, n: float = 1) -> None:
        """It is further by `n`."""
        self.n += n
        self._report()

    def set_description(self, desc: str | None = None, refresh: bool = True) -> None:
        self._desc = desc or ""
        self._report(now=refresh)

    def refresh(self) -> None:
        """Reports at once."""
        self._report(now=True)

    def close(self) -> None:
        """The bar stays as it is. Closing again does nothing."""
        if not self._closed:
            self._closed = True
            self._report(now=True)

    def __iter__(self) -> Iterator[Any]:
        if self._iterable is None:
            raise ValueError("This bar has no iterable: give it one, or call update()")
        try:
            for item in self._iterable:
                yield item
                self.update()
        finally:
            self.close()

    def __len__(self) -> int:
        return int(self.total or 0)

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> tqdm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            if self._reported:  # else nobody has seen it
                self.close()
        except Exception:  # the interpreter ends
            pass

    def _report(self, now: bool = False) -> None:
        clock = time.monotonic()
        if not now and clock - self._reported < self._interval:
            return
        self._reported = clock
        state = {
            "id": self._id,
            "name": _native.current_printer()[0] if self._in_worker else "",
            "desc": str(self._desc)[:_LONGEST_DESC],
            "n": self.n,
            "total": self.total,
            "unit": str(self._unit)[:_LONGEST_DESC],
            "position": self._position,
            "closed": self._closed,
        }
        if self._in_worker:
            _send(state)
        else:
            bars = _bars.bars()
            bars.update(("", os.getpid()), "", state, clock)
            bars.draw(clock)
            if self._closed:
                bars.settle(clock)


def _send(state: dict[str, Any]) -> None:
    """To the driver. Not through `sys.stdout`, which may be in the middle of a line."""
    line = f"{_bars.MARK}{json.dumps(state, default=float)}\n".encode()
    if len(line) <= _LONGEST_LINE:
        try:
            os.write(1, line)
        except OSError:
            pass
