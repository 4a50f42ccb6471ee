"""The actors of a pool, and which of them gets the next batch of calls.

Batches wait in one queue and an actor has one at a time, so that none waits behind a long one. Who
has which is behind one lock; batches are sent, and their ends told, outside of it, because both may
run code that comes back here.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from ... import exceptions
from ..._actor import kill
from ..._errors import describe
from ..._native import context, get
from ..._remote import remote
from ..._session import is_initialized

# How a function is called with each item of a batch.
ONE = 0  # function(item)
STAR = 1  # function(*item)
FULL = 2  # function(*item[0], **item[1])

# What the calls returned, and by their index the errors of those that raised.
Results = tuple[list[Any], dict[int, bytes]]


class _PoolActor:
    """Runs batches of calls."""

    def __init__(self, initializer: Callable[..., Any] | None, initargs: Any) -> None:
        if initializer is not None:
            initializer(*initargs)

    def run(self, function: Callable[..., Any], form: int, items: list[Any]) -> Results:
        """The values of all calls; None for those that raised, whose errors are beside."""
        values: list[Any] = []
        errors = {}
        for item in items:
            try:
                if form == ONE:
                    values.append(function(item))
                elif form == STAR:
                    values.append(function(*item))
                else:
                    values.append(function(*item[0], **item[1]))
            except Exception as error:
                name = getattr(function, "__name__", type(function).__name__)
                errors[len(values)] = describe(error, name)[0]
                values.append(None)
        return values, errors

    def ready(self) -> None:
        """Returns when the initializer has."""


PoolActor: Any = remote(_PoolActor)


@dataclass(eq=False)
class Batch:
    """Calls that go to one actor together."""

    function: Any
    form: int
    items: list[Any]
    # Told once: what `run` returned, or the error that kept it from returning.
    done: Callable[[Results | None, BaseException | None], None]


@dataclass(eq=False)
class _Member:
    actor: Any
    # How many batches it may still be given; None: any number.
    left: int | None
    running: Batch | None = None


class Crew:
    """So many actors, replaced when they die or have done their share."""

    def __init__(self, size: int, start: Callable[[], Any], share: int | None) -> None:
        self._start = start
        self._share = share
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._waiting: deque[Batch] = deque()
        self._ended = False
        self._session = context()["session_dir"]
        self._members = [_Member(start(), share) for _ in range(size)]
        get([member.actor.ready.remote() for member in self._members])

    def __len__(self) -> int:
        return len(self._members)

    def submit(self, batch: Batch) -> None:
        """Gives the batch to an actor, now or when one has room."""
        with self._lock:
            ended = self._ended
            if not ended:
                self._waiting.append(batch)
                given = self._give()
        if ended:
            batch.done(None, _terminated())
        else:
            self._send(given)

    def wait(self) -> None:
        """Returns when no batch waits or runs."""
        with self._idle:
            self._idle.wait_for(self._is_idle)

    def session_lives(self) -> bool:
        """Whether the session that the actors are in is there still."""
        return is_initialized() and context()["session_dir"] == self._session

    def end(self) -> None:
        """Ends the actors. Whatever has not returned by then fails."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            left = [*self._waiting, *(m.running for m in self._members if m.running)]
            self._waiting.clear()
            for member in self._members:
                member.running = None
            self._idle.notify_all()
        if self.session_lives():
            for member in self._members:
                kill(member.actor)
        for batch in left:
            batch.done(None, _terminated())

    def _is_idle(self) -> bool:
        return not self._waiting and all(m.running is None for m in self._members)

    def _give(self) -> list[tuple[_Member, Batch]]:
        """With the lock: which actors get which of the batches that wait."""
        given = []
        for member in self._members:
            if self._waiting and member.running is None:
                member.running = self._waiting.popleft()
                if member.left is not None:
                    member.left -= 1
                given.append((member, member.running))
        return given

    def _send(self, given: list[tuple[_Member, Batch]]) -> None:
        for member, batch in given:
            future = member.actor.run.remote(batch.function, batch.form, batch.items).future()
            future.add_done_callback(partial(self._returned, member, batch))

    def _returned(self, member: _Member, batch: Batch, future: Future[Any]) -> None:
        if not self.session_lives():
            self.end()  # with it: a call now would be one to another
            return
        error = future.exception()
        gone = None
        with self._lock:
            if member.running is not batch:
                return  # the crew ended meanwhile, and told this one's end
            member.running = None
            if isinstance(error, exceptions.ActorDiedError) or member.left == 0:
                gone, member.actor, member.left = member.actor, self._start(), self._share
            given = self._give()
            if self._is_idle():
                self._idle.notify_all()
        if gone is not None:
            kill(gone)
        self._send(given)
        batch.done(None if error else future.result(), error)


def _terminated() -> exceptions.RayError:
    return exceptions.ActorDiedError("The pool was terminated before this call returned.")
