"""Refs as futures: `await ref`, `ref.as_future()` and `ref.future()`.

Each event loop that awaits refs has a port of the engine's, a descriptor that is readable when
values are there: many of them wake the loop once, and no thread is in between. For futures without
a loop one thread, started at the first use, waits for all refs of the process.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import weakref
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextvars import Context
from typing import Any

from . import _native
from ._reading_loop import ReadingLoop

Callback = Callable[[_native.ObjectRef], object]

_lock = threading.Lock()
_keys = itertools.count(1)
_pending: dict[int, tuple[Future[Any], _native.ObjectRef]] = {}
_watcher: threading.Thread | None = None
_ports: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Port] = weakref.WeakKeyDictionary()


class _Port:
    """The refs that one event loop awaits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self.native = _native.LoopPort()
        # Of those without a ref only that the value is there is awaited.
        self._futures: dict[int, tuple[asyncio.Future[Any], _native.ObjectRef | None]] = {}
        # Who is to be told of refs that are waited for as if they were futures.
        self.told: dict[tuple[_native.ObjectRef, Callback], asyncio.Future[Any]] = {}
        if self.native.is_readers and isinstance(loop, ReadingLoop):
            loop.expect_port(self.native.fileno())
        loop.add_reader(self.native.fileno(), self._turn)

    def future_of(self, ref: _native.ObjectRef) -> asyncio.Future[Any]:
        loop = self._loop()
        assert loop is not None, "it runs"
        future: asyncio.Future[Any] = loop.create_future()
        if _native.is_near(ref):
            _settle(future, ref)
            return future
        self._watch(ref, future, ref)
        return future

    def completion_of(self, ref: _native.ObjectRef) -> asyncio.Future[None]:
        loop = self._loop()
        assert loop is not None, "it runs"
        future: asyncio.Future[None] = loop.create_future()
        self._watch(ref, future, None)
        return future

    def _watch(
        self, watched: _native.ObjectRef, future: asyncio.Future[Any], ref: _native.ObjectRef | None
    ) -> None:
        key = next(_keys)
        self._futures[key] = future, ref
        try:
            self.native.watch(watched, key)
        except BaseException:
            del self._futures[key]
            raise

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        """The session that its refs belong to is over."""
        if not loop.is_closed():
            loop.remove_reader(self.native.fileno())
        for future, ref in self._futures.values():
            if not future.done():
                what = "the next item" if ref is None else repr(ref)
                future.set_exception(RuntimeError(f"The session ended before {what} was ready"))

    def _turn(self) -> None:
        for key in self.native.take():
            future, ref = self._futures.pop(key)
            if future.done():
                continue
            if ref is None:
                future.set_result(None)
            elif _native.is_near(ref):
                _settle(future, ref)
            else:
                _bring(future, ref)
        loop = self._loop()
        if loop is not None and not self.native.is_current():
            self.close(loop)


def _port_of(loop: asyncio.AbstractEventLoop) -> _Port:
    port = _ports.get(loop)
    if port is not None and port.native.is_current():
        return port
    if port is not None:
        port.close(loop)
    port = _ports[loop] = _Port(loop)
    return port


def _settle(future: asyncio.Future[Any], ref: _native.ObjectRef) -> None:
    try:
        future.set_result(_native.get(ref))
    except StopIteration as error:  # no future takes it
        wrapped = RuntimeError(f"the task raised StopIteration: {error}")
        wrapped.__cause__ = error
        future.set_exception(wrapped)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        future.set_exception(error)


def _bring(future: asyncio.Future[Any], ref: _native.ObjectRef) -> None:
    """The value is at another node: bringing it must not stop the loop."""
    loop = future.get_loop()

    def bring() -> None:
        # Whatever is wrong with it, `_settle` hears again.
        try:
            _native.get(ref)
        finally:
            loop.call_soon_threadsafe(lambda: None if future.done() else _settle(future, ref))

    loop.run_in_executor(None, bring).add_done_callback(lambda done: done.exception())


def as_future(ref: _native.ObjectRef) -> asyncio.Future[Any]:
    """A future of the running event loop that gets the value of `ref`, or its error."""
    return _port_of(asyncio.get_running_loop()).future_of(ref)


def completion_of(ref: _native.ObjectRef) -> asyncio.Future[None]:
    """A future of the running event loop that is done when the value of `ref`, or its error, is
    there."""
    return _port_of(asyncio.get_running_loop()).completion_of(ref)


def await_of(ref: _native.ObjectRef) -> Generator[Any, None, Any]:
    """What `__await__` of a ref returns."""
    return as_future(ref).__await__()


def add_done_callback(ref: _native.ObjectRef, callback: Callback, context: Context | None) -> None:
    """Calls `callback` with `ref` in the running event loop once its value or error is there."""
    port = _port_of(asyncio.get_running_loop())
    future = port.future_of(ref)

    def tell(_: object) -> None:
        if port.told.pop((ref, callback), None) is not None:
            callback(ref)

    # Who wants the error asks the ref for it.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    port.told[ref, callback] = future
    future.add_done_callback(tell, context=context)


def remove_done_callback(ref: _native.ObjectRef, callback: Callback) -> int:
    """How many were removed."""
    port = _port_of(asyncio.get_running_loop())
    return int(port.told.pop((ref, callback), None) is not None)


def exception_of(ref: _native.ObjectRef) -> BaseException | None:
    """The error that `get` would raise, if there is one."""
    if not _native.is_complete(ref):
        raise asyncio.InvalidStateError(f"There is no value of {ref!r} yet")
    if not _native.is_near(ref):
        return None  # errors are
    try:
        _native.get(ref)
    except BaseException as error:
        return error
    return None


def on_completed(ref: _native.ObjectRef, callback: Callable[[Any], object]) -> _native.ObjectRef:
    """Calls `callback` with the value, or with the error, in the thread that watches refs."""

    def tell(done: Future[Any]) -> None:
        error = done.exception()
        try:
            callback(done.result() if error is None else error)
        except Exception:
            import traceback

            traceback.print_exc()

    future_of(ref).add_done_callback(tell)
    return ref


def future_of(ref: _native.ObjectRef) -> Future[Any]:
    """A future that gets the value of `ref`, or its error."""
    global _watcher
    future: Future[Any] = Future()
    future.object_ref = ref  # type: ignore[attr-defined]  # as Ray's has it
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


def forget() -> None:
    """In a forked child: the thread and what it watches are the parent's."""
    global _lock, _watcher
    _lock = threading.Lock()
    _watcher = None
    _pending.clear()
    _ports.clear()


def _watch() -> None:
    global _watcher
    while (keys := _native.next_watched()) is not None:
        for key in keys:
            _finish(key)
    with _lock:
        _watcher = None
        left = list(_pending.values())
        _pending.clear()
    for future, ref in left:
        if future.set_running_or_notify_cancel():
            future.set_exception(RuntimeError(f"The session ended before {ref!r} was ready"))


def _finish(key: int) -> None:
    """Of its own: the thread must keep neither the future nor its value while it waits for more."""
    with _lock:
        future, ref = _pending.pop(key, (None, None))
    if future is None or ref is None or not future.set_running_or_notify_cancel():
        return
    try:
        value = _native.get(ref)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(value)
