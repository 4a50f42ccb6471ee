"""An event loop that reads for itself what comes to its actor.

A loop sleeps on descriptors, and so another thread has to read for it and wake it: twice the way
for each call. While nothing is to be waited for but what the engine knows of, this one sleeps
where the engine's threads do (`crates/worker/src/reading.rs`). From the first descriptor or signal
of the user's, until the last has gone, it sleeps on descriptors as any other.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

from . import _native

Events = list[tuple[selectors.SelectorKey, int]]

# What the engine says that it has found: `crates/python/src/loops.rs`.
_VALUES, _OVER = 1, 2


class _Selector(selectors.EpollSelector):
    """Sleeps in `wait`, if there is one, while there is nothing of the user's to wait for."""

    def __init__(self) -> None:
        super().__init__()
        # Descriptors of which the engine knows without looking,
        self.own: set[int] = set()
        # and how many others and signals there are.
        self.others = 0
        # Sleeps, and says what it has found; what that means for the loop.
        self.wait: Callable[[float | None], int] | None = None
        self.found: Callable[[int], Events] = lambda _: []
        self.cease: Callable[[], bool] = bool
        # Then the engine's peers are told whatever there is for them before it sleeps.
        self.is_reading = False

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        self.others += key.fd not in self.own
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = super().unregister(fileobj)
        if key.fd in self.own:
            self.own.discard(key.fd)  # its number may be another's soon
        else:
            self.others -= 1
        return key

    def select(self, timeout: float | None = None) -> Events:
        if self.wait is not None and not self.others:
            self.is_reading = True
            found = self.wait(timeout)
            return self.found(found) if found else []
        if self.is_reading:
            self.is_reading = False
            if self.cease():
                timeout = 0
        return super().select(timeout)


class ReadingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.own_selector = selector = _Selector()
        self._calls: _native.LaneOfCalls | None = None
        self._ports: set[int] = set()
        self._signals: set[int] = set()
        super().__init__(selector)
        # What wakes it from other threads: see `_write_to_self`.
        selector.own.update(key.fd for key in selector.get_map().values())
        selector.others = 0

    def read(self, calls: _native.LaneOfCalls) -> None:
        """Sleeps where the engine's threads do, from now on; `calls` begins calls meanwhile."""
        self._calls, selector = calls, self.own_selector
        selector.own.add(calls.fileno())
        selector.wait, selector.found, selector.cease = calls.wait, self._found, calls.cease

    @property
    def is_reading(self) -> bool:
        """Whether it sleeps where the engine's threads do."""
        return self.own_selector.is_reading

    def expect_port(self, fd: int) -> None:
        """This descriptor, which is about to be added, is that of a port of the engine's."""
        self.own_selector.own.add(fd)
        self._ports.add(fd)

    def _found(self, found: int) -> Events:
        if found & _OVER:
            self.own_selector.wait = None
        if not found & _VALUES:
            return []
        known = self.own_selector.get_map()
        self._ports.intersection_update(self.own_selector.own)
        return [(known[fd], selectors.EVENT_READ) for fd in self._ports]

    def _write_to_self(self) -> None:
        """Another thread has something for it: asyncio calls this."""
        if self._calls is None or not self._calls.call():
            super()._write_to_self()  # type: ignore[misc]

    def add_signal_handler(  # type: ignore[override]
        self, sig: int, callback: Callable[..., Any], *args: Any
    ) -> None:
        super().add_signal_handler(sig, callback, *args)
        # It comes by a descriptor, whichever thread the signal finds.
        self.own_selector.others += sig not in self._signals
        self._signals.add(sig)

    def remove_signal_handler(self, sig: int) -> bool:
        is_removed = super().remove_signal_handler(sig)
        self.own_selector.others -= sig in self._signals
        self._signals.discard(sig)
        return is_removed


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop of that kind, unless the user's policy makes another."""
    made = asyncio.new_event_loop()
    if type(made) is not asyncio.SelectorEventLoop:
        return made
    made.close()
    return ReadingLoop()
