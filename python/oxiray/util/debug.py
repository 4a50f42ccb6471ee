"""Saying a thing once in a process."""

from __future__ import annotations

import time

__all__ = ["disable_log_once_globally", "enable_periodic_logging", "log_once", "reset_log_once"]

# With periodic logging everything may be said again after so many seconds.
_PERIOD_S = 60.0

_said: set[str] = set()
_disabled = False
_periodic = False
_last = 0.0


def log_once(key: str) -> bool:
    """True the first time it is called with `key` in this process.

    if log_once("no-gpu"):
        logger.warning("Running without a GPU")
    """
    global _last
    if _disabled:
        return False
    now = time.monotonic()
    if _periodic and now - _last > _PERIOD_S:
        _said.clear()
    if key in _said:
        return False
    _said.add(key)
    _last = now
    return True


def disable_log_once_globally() -> None:
    """From now on `log_once` is False in this process."""
    global _disabled
    _disabled = True


def enable_periodic_logging() -> None:
    """From now on `log_once` is True again for every key after a minute without a new one."""
    global _periodic
    _periodic = True


def reset_log_once(key: str | None = None) -> None:
    """Lets `key` be said again, or every one."""
    if key is None:
        _said.clear()
    else:
        _said.discard(key)
