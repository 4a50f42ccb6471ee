"""The event loop of an actor with `async def` methods: one for each of its lanes.

The loop of the first lane is that of the main thread, from before the constructor. The engine has
a descriptor that is readable while calls wait to begin. Each runs as a task of its own, in a
context of its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from . import _native, _running

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


class ActorLoop:
    """Begins calls as tasks on an event loop, and answers them."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self._calls: _native.LaneOfCalls | None = None
        # The loop itself holds no task that waits.
        self._tasks: dict[_native.Reply, asyncio.Task[None]] = {}
        self._exit: str | None = None
        self._is_telling = False

    def run(self, calls: _native.LaneOfCalls) -> str:
        """Runs until the process is to exit: why."""
        self._calls = calls
        if not self.loop.is_closed():
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
        context = contextvars.copy_context()
        context.run(_running.call.set, running)
        run = self._run if inspect.iscoroutinefunction(method) else self._run_plain
        task = self.loop.create_task(run(reply, method, args, kwargs or {}), context=context)
        self._tasks[reply] = task

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
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        try:
            result = await method(*args, **kwargs)
        except BaseException as error:
            reply.fail(error)
        else:
            reply.succeed(result)
        self._answered(reply)

    async def _run_plain(
        self,
        reply: _native.Reply,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        try:
            result = method(*args, **kwargs)
        except BaseException as error:
            reply.fail(error)
        else:
            reply.succeed(result)
        self._answered(reply)

    def _answered(self, reply: _native.Reply) -> None:
        self._tasks.pop(reply, None)
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
        self._exit = self._calls.turn()
        if self._exit is not None:
            self.loop.stop()
