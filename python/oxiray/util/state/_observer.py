"""The connections by which sessions are looked at, kept while they are used.

A connection remembers what it has read of tasks, so that the next question reads only what is new.
That may be much: a few are kept, and none for long after its last question.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

from ... import _native, _settings
from .exception import RayStateApiException

T = TypeVar("T")

_MOST = 4
_KEPT_S = 60.0

# Process and session: a child must not speak over its parent's socket.
_Key = tuple[int, str | None, str | None]


class _Kept:
    """Connections, the one used last at the end; each with when that was."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[_Key, tuple[_native.Observer, float]] = {}
        self._timer: threading.Timer | None = None

    def take(self, key: _Key) -> _native.Observer | None:
        """One that nobody uses until it is put back: what it was asked last is its state."""
        with self._lock:
            used = self._used.pop(key, None)
        return None if used is None else used[0]

    def put(self, key: _Key, observer: _native.Observer) -> None:
        with self._lock:
            self._used.pop(key, None)
            self._used[key] = observer, time.monotonic()
            for other in list(self._used)[:-_MOST]:
                del self._used[other]
            if self._timer is None:
                self._look_again(_KEPT_S)

    def forget_idle(self, now: float) -> None:
        """Drops what was not used of late; goes on looking while anything is left."""
        with self._lock:
            idle = [key for key, (_, used) in self._used.items() if now - used >= _KEPT_S]
            for key in idle:
                del self._used[key]
            self._timer = None
            if self._used:
                oldest = min(used for _, used in self._used.values())
                self._look_again(oldest + _KEPT_S - now)

    def _look_again(self, after: float) -> None:
        self._timer = threading.Timer(after, lambda: self.forget_idle(time.monotonic()))
        self._timer.daemon = True
        self._timer.start()


_kept = _Kept()


def _begin_anew() -> None:
    global _kept
    _kept = _Kept()


# A child has neither its parent's thread, nor a lock that nobody holds.
os.register_at_fork(after_in_child=_begin_anew)


def ask(address: str | None, question: Callable[[_native.Observer], T], timeout: float) -> T:
    """Asks the session of `address`, or this process's own, or the newest.

    A node that does not answer within `timeout` seconds, or three, is left out, and that is said.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ValueError(f"timeout must be a number of seconds above 0, not {timeout!r}")
    address = address or _settings.text("OXIRAY_ADDRESS") or None
    directory = None
    if address in (None, "auto") and _native.is_running():
        directory, address = _native.context()["session_dir"], None
    key = (os.getpid(), directory, address)
    observer = _kept.take(key)
    try:
        if observer is not None:
            try:
                return _put(question, observer, key, timeout)
            except ConnectionError:
                pass  # The session ended; another may have begun.
        return _put(question, _native.Observer(directory, address), key, timeout)
    except (ConnectionError, ValueError):
        raise
    except OSError as error:
        raise RayStateApiException(str(error)) from None


def _put(
    question: Callable[[_native.Observer], T], observer: _native.Observer, key: _Key, timeout: float
) -> T:
    observer.set_patience(timeout)
    is_connected = True
    try:
        return question(observer)
    except ConnectionError:
        is_connected = False
        raise
    finally:
        if is_connected:
            _kept.put(key, observer)


def miss(notes: list[str], raise_on_missing_output: bool, gaps: Sequence[str] = ()) -> None:
    """Says what is missing from an answer.

    `gaps` is what nobody has any more: a list would be refused for as long as the session lasts,
    so of that there is a warning.
    """
    if not notes:
        return
    text = "Some of it is missing: " + "; ".join(notes)
    if raise_on_missing_output and any(note not in gaps for note in notes):
        raise RayStateApiException(
            f"{text}. With raise_on_missing_output=False there is a warning instead."
        )
    warnings.warn(text, stacklevel=4)
