"""Refs as futures: `ref.future()` and `await ref`.

One thread, started at the first use, waits for all watched refs of the process.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from . import _native

_lock = threading.Lock()
_keys = itertools.count(1)
_pending: dict[int, tuple[Future[Any], _native.ObjectRef]] = {}
_watcher: threading.Thread | None = None


def future_of(ref: _native.ObjectRef) -> Future[Any]:
    """A future that gets the value of `ref`, or its error."""
    global _watcher
    future: Future[Any] = Future()
    key = next(_keys)
    with _lock:
        _pending[key] = (future, ref)
    try:
        _native.watch(ref, key)
    except BaseException:
        with _lock:
            _pending.pop(key, None)
        raise
    with _lock:
        if _watcher is None:
            _watcher = threading.Thread(target=_watch, name="oxiray-futures", daemon=True)
            _watcher.start()
    return future


def await_of(ref: _native.ObjectRef) -> Generator[Any, None, Any]:
    """What `__await__` of a ref returns."""
    return asyncio.wrap_future(future_of(ref)).__await__()


def forget() -> None:
    """In a forked child: the thread and what it watches are the parent's."""
    global _lock, _watcher
    _lock = threading.Lock()
    _watcher = None
    _pending.clear()


def _watch() -> None:
    global _watcher
    while (keys := _native.next_watched()) is not None:
        for key in keys:
            with _lock:
                entry = _pending.pop(key, None)
            if entry is not None:
                _finish(*entry)
    with _lock:
        _watcher = None
        left = list(_pending.values())
        _pending.clear()
    for future, ref in left:
        if future.set_running_or_notify_cancel():
            future.set_exception(RuntimeError(f"The session ended before {ref!r} was ready"))


def _finish(future: Future[Any], ref: _native.ObjectRef) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        value = _native.get(ref)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(value)
