"""Says by itself that tasks of this program can never go on: they wait for each other, or for what
idle actors hold.

A thread of the driver looks, every few seconds, whether tasks are the same as before. Only then are
all processes asked what they wait for, as `oxiray why` does; less and less often while nothing is
wrong. What is found twice is true, and said once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from . import _native

#: Seconds between two looks at most.
_SELDOM = 300.0


class Lookout:
    """Looks until it is ended; `say` is given each sentence once."""

    def __init__(self, period: float, say: Callable[[str], None]) -> None:
        self._period, self._say = period, say
        self._ended = threading.Event()
        self._said: set[str] = set()
        if period > 0:
            threading.Thread(target=self._run, name="oxiray-lookout", daemon=True).start()

    def end(self) -> None:
        """Looks no more."""
        self._ended.set()

    def _run(self) -> None:
        before: set[str] = set()
        suspected: dict[str, str] = {}
        patience = self._period
        while not self._ended.wait(patience):
            now = set(_native.tasks_under_way())
            same, before = now & before, now
            if not same:
                suspected, patience = {}, self._period
                continue
            try:
                found = _native.Observer(_native.context()["session_dir"]).stuck(sorted(same))
            except (OSError, ValueError, RuntimeError):
                return  # The session has ended, or cannot be seen.
            for name in found.keys() & suspected.keys() - self._said:
                self._said.add(name)
                self._say(f"A part of this program cannot go on. {found[name]}")
            is_news = bool(found.keys() - self._said)
            suspected = found
            patience = self._period if is_news else min(2 * patience, _SELDOM)
