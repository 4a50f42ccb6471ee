"""The event loop of an actor with `async def` methods: one for each of its lanes.

The loop of the first lane is that of the main thread, from before the constructor. The engine has
a descriptor that is readable while calls wait to begin; a loop that reads for itself
(`_reading_loop`) needs none. Each call runs as a task of its own, in a context of its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import sys
import threading
import traceback
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import partial
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from . import _native, _reading_loop, _running
from ._worker import no_generator

# Looked up once: they are on the way of every call.
_copy_context, _set_call = contextvars.copy_context, _running.call.set

_warned: set[str] = set()


def warn_of_sleep(what: str) -> None:
    """Says once that a blocking call stops everything that the loop runs."""
    if what in _warned:
        return
    _warned.add(what)
    from ._worker import tell

    tell(
        f"Using blocking ray.{what} inside async actor. This blocks the event loop. Please use "
        "`await` on object ref with asyncio.gather if you want to yield execution to the event "
        "loop instead."
    )


# Which thread runs the loop of each lane.
_threads: dict[int, int] = {}


def tell_blocked(lane: int, seconds: int) -> str:
    """Says where the loop of a lane is, which has begun nothing for long: the stack."""
    frame = sys._current_frames().get(_threads[lane])
    if frame is None:
        return ""
    frames = traceback.extract_stack(frame)
    own = (os.path.dirname(__file__) + os.sep, os.path.dirname(asyncio.__file__) + os.sep)
    shown = [one for one in frames if not one.filename.startswith(own)]
    stack = "".join(traceback.format_list(shown)).rstrip()
    from ._worker import tell

    tell(
        f"The event loop of this actor has begun nothing for {seconds} s, and calls wait: code "
        "that it runs blocks. Use `await`, or asyncio.to_thread(...) for what cannot be awaited. "
        f"It is in:\n{stack}"
    )
    return stack


class ActorLoop:
    """Begins calls as tasks on an event loop, and answers them."""

    def __init__(self) -> None:
        self.loop = _reading_loop.new_event_loop()
        asyncio.set_event_loop(self.loop)
        own = isinstance(self.loop, _reading_loop.ReadingLoop)
        self._selector = self.loop.own_selector if own else None  # type: ignore[attr-defined]
        self._calls: _native.LaneOfCalls | None = None
        # The loop itself holds no task that waits.
        self._tasks: dict[_native.Reply, asyncio.Task[None]] = {}
        # Calls that wait for their readers.
        self._reads: dict[bytes, asyncio.Future[None]] = {}
        # Which methods are coroutine functions: to find that out takes longer than to begin one.
        self._is_coroutine: dict[Callable[..., Any], bool] = {}
        self._exit: str | None = None
        self._is_telling = False

    def run(self, calls: _native.LaneOfCalls) -> str:
        """Runs until the process is to exit: why."""
        self._calls = calls
        _threads[calls.lane] = threading.get_ident()
        if not self.loop.is_closed():
            if isinstance(self.loop, _reading_loop.ReadingLoop) and calls.may_read():
                self.loop.read(calls)
            self.loop.add_reader(calls.fileno(), self._turn)
        while self._exit is None:
            if self.loop.is_closed():
                return "its event loop was closed"
            try:
                asyncio.set_event_loop(self.loop)
                self.loop.run_forever()  # user code may stop it
            except (KeyboardInterrupt, SystemExit):
                continue  # raised by a callback: there is no call that it could end
        return self._exit

    def begin(
        self,
        reply: _native.Reply,
        running: _native.RunningCall,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
    ) -> None:
        """Begins one call."""
        is_coroutine = self._is_coroutine.get(method)
        if is_coroutine is None:
            is_coroutine = self._is_coroutine[method] = inspect.iscoroutinefunction(method)
        self._start(reply, running, self._run(reply, is_coroutine, method, args, kwargs))

    def begin_stream(
        self,
        reply: _native.Reply,
        running: _native.RunningCall,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
    ) -> None:
        """Begins one that yields."""
        self._start(reply, running, self._run_stream(reply, method, args, kwargs or {}))

    def _start(
        self,
        reply: _native.Reply,
        running: _native.RunningCall,
        coroutine: Coroutine[Any, Any, None],
    ) -> None:
        context = _copy_context()
        context.run(_set_call, running)
        if sys.version_info >= (3, 11):
            self._tasks[reply] = self.loop.create_task(coroutine, context=context)
        else:  # which copies it once more
            self._tasks[reply] = context.run(self.loop.create_task, coroutine)

    def cancel(self, task_id: bytes) -> None:
        """Nobody wants this call any more: its coroutine is cancelled."""
        for reply, task in self._tasks.items():
            if reply.task_id() == task_id:
                task.add_done_callback(partial(self._end_unbegun, reply))
                task.cancel()
                return

    def _end_unbegun(self, reply: _native.Reply, _: object) -> None:
        """A coroutine that is cancelled before its first step runs nothing at all."""
        if reply in self._tasks:
            reply.fail(asyncio.CancelledError())
            self._answered(reply)

    async def _run(
        self,
        reply: _native.Reply,
        is_coroutine: bool,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
    ) -> None:
        try:
            result = method(*args) if kwargs is None else method(*args, **kwargs)
            if is_coroutine:
                result = await result
        except BaseException as error:
            reply.fail(error)
        else:
            reply.succeed(result)
        self._answered(reply)

    async def _run_stream(
        self,
        reply: _native.Reply,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        try:
            made: Any = method(*args, **kwargs)
            if isinstance(made, AsyncGeneratorType):
                await self._yield_all(reply, made)
            elif isinstance(made, GeneratorType):
                await self._yield_all(reply, _as_async(made))
            else:
                raise no_generator(made, reply.begin_items())
        except BaseException as error:
            reply.fail(error)
        else:
            reply.succeed(None)
        self._answered(reply)

    async def _yield_all(self, reply: _native.Reply, made: AsyncGenerator[Any, None]) -> None:
        """Yields what a generator makes, no faster than it is read."""
        reply.begin_items()
        try:
            async for item in made:
                flow = reply.send(item)
                while flow == "full":
                    task_id = reply.task_id()
                    assert task_id is not None, "it runs"
                    read = self._reads[task_id] = self.loop.create_future()
                    # What was read before the loop would have told us is seen here.
                    flow = reply.flow()
                    if flow == "full":
                        await read
                        flow = reply.flow()
                    del self._reads[task_id]
                if flow == "end":
                    return
                if flow == "cancelled":  # asyncio tells it only once the loop has its turn
                    raise asyncio.CancelledError
        finally:
            await made.aclose()

    def read_on(self, task_id: bytes) -> None:
        """Who reads what a call yields is further, or gone."""
        read = self._reads.get(task_id)
        if read is not None and not read.done():
            read.set_result(None)

    def _answered(self, reply: _native.Reply) -> None:
        self._tasks.pop(reply, None)
        # Before it sleeps where the engine's threads do, callers are told of all.
        if self._selector is not None and self._selector.is_reading:
            return
        # Once for all that end in this turn of the loop.
        if not self._is_telling:
            self._is_telling = True
            self.loop.call_soon(self._tell_answers)

    def _tell_answers(self) -> None:
        self._is_telling = False
        assert self._calls is not None, "it runs"
        self._calls.tell_answers()

    def _turn(self) -> None:
        assert self._calls is not None, "it runs"
        reason = self._calls.turn()
        if reason is not None:
            self.leave(reason)

    def leave(self, reason: str) -> None:
        """The process is to exit, for this reason."""
        self._exit = reason
        self.loop.stop()


async def _as_async(made: Generator[Any, None, None]) -> AsyncGenerator[Any, None]:
    try:
        for item in made:
            yield item
    finally:
        made.close()
