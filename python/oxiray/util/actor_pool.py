"""A fixed set of actors that share a stream of work: each takes the next piece when it is free."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from .. import exceptions
from .._native import get, wait

V = TypeVar("V")
Submit = Callable[[Any, V], Any]

__all__ = ["ActorPool"]


@dataclass(eq=False)
class _Call:
    """A piece of work that an actor has: its place in the order of submission, and its result.

    `refs` is what the user's function returned: one ref, or a list of them that count as one.
    """

    index: int
    actor: Any
    refs: Any

    def first_pending(self) -> Any:
        """A ref by which the end of all of it can be waited for; None when all are there."""
        refs = self.refs if isinstance(self.refs, list) else [self.refs]
        _, pending = wait(refs, num_returns=len(refs), timeout=0) if refs else ([], [])
        return pending[0] if pending else None


class ActorPool:
    """Lets several actors work on one stream of values.

        pool = ActorPool([Doubler.remote(), Doubler.remote()])
        list(pool.map(lambda actor, value: actor.double.remote(value), [1, 2, 3]))  # [2, 4, 6]

    An actor has one piece of work at a time; what has none yet waits in order. Results come in the
    order of submission (`map`, `get_next`) or as they are ready (`map_unordered`,
    `get_next_unordered`), not both. An actor that has died leaves the pool.
    """

    def __init__(self, actors: list[Any]) -> None:
        self._idle: list[Any] = list(actors)
        # By index; results that were taken or given up are no longer here.
        self._calls: dict[int, _Call] = {}
        self._waiting: deque[tuple[Submit[Any], Any]] = deque()
        self._submitted = 0
        self._next = 0

    def map(self, fn: Submit[V], values: Iterable[V]) -> Iterator[Any]:
        """The results in the order of `values`. What an earlier `map` left is given up."""
        self._give_up()
        for value in values:
            self.submit(fn, value)
        return self._results(self.get_next)

    def map_unordered(self, fn: Submit[V], values: Iterable[V]) -> Iterator[Any]:
        """The results as they are ready. What an earlier `map` left is given up."""
        self._give_up()
        for value in values:
            self.submit(fn, value)
        return self._results(self.get_next_unordered)

    def submit(self, fn: Submit[V], value: V) -> None:
        """Gives `value` by `fn(actor, value)` to an idle actor, or to the first that will be."""
        if not self._idle:
            self._waiting.append((fn, value))
            return
        actor = self._idle.pop()
        index = self._submitted
        self._calls[index] = _Call(index, actor, fn(actor, value))
        self._submitted += 1

    def has_next(self) -> bool:
        """Whether there are results that were not taken yet."""
        return bool(self._calls)

    def get_next(self, timeout: float | None = None, ignore_if_timedout: bool = False) -> Any:
        """The next result in the order of submission.

        After `timeout` seconds it raises TimeoutError; with `ignore_if_timedout` that piece of work
        is then given up, and the next call is about the one after it.
        """
        self._expect_one()
        if self._next not in self._calls:
            raise ValueError(
                "get_next() cannot be used after get_next_unordered(): what is next in order was "
                "taken. Take the rest by get_next_unordered()."
            )
        call = self._calls[self._next]
        refs = call.refs if isinstance(call.refs, list) else [call.refs]
        _, pending = wait(refs, num_returns=len(refs), timeout=timeout) if refs else ([], [])
        if pending:
            self._time_out(call, timeout, ignore_if_timedout)
        return self._take(call)

    def get_next_unordered(
        self, timeout: float | None = None, ignore_if_timedout: bool = False
    ) -> Any:
        """Any result that is ready; the arguments are those of `get_next`.

        With `ignore_if_timedout` the oldest piece of work is given up when none is ready in time.
        """
        self._expect_one()
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            pending = []
            for call in self._calls.values():
                ref = call.first_pending()
                if ref is None:
                    return self._take(call)
                pending.append(ref)
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _ = wait(pending, num_returns=1, timeout=left)
            if not ready:
                self._time_out(next(iter(self._calls.values())), timeout, ignore_if_timedout)

    def has_free(self) -> bool:
        """Whether an actor is idle and nothing waits for one."""
        return bool(self._idle) and not self._waiting

    def pop_idle(self) -> Any:
        """Takes an idle actor out of the pool; None if there is none."""
        return self._idle.pop() if self.has_free() else None

    def push(self, actor: Any) -> None:
        """Puts an actor into the pool, which must not be there already."""
        if actor in self._idle or any(call.actor == actor for call in self._calls.values()):
            raise ValueError("Actor already belongs to current ActorPool")
        self._free(actor)

    def _results(self, take: Callable[[], Any]) -> Iterator[Any]:
        while self.has_next():
            yield take()

    def _expect_one(self) -> None:
        if not self.has_next():
            raise StopIteration("No more results to get")

    def _give_up(self) -> None:
        """Forgets all results: those to come are not waited for."""
        self._waiting.clear()
        for call in list(self._calls.values()):
            self._forget(call)
            self._free(call.actor)

    def _time_out(self, call: _Call, timeout: float | None, ignore: bool) -> NoReturn:
        text = f"Timed out waiting for result: it was not there after {timeout} s"
        if ignore:
            self._forget(call)
            self._free(call.actor)
            text += f". The task {call.refs} has been ignored."
        raise TimeoutError(text)

    def _take(self, call: _Call) -> Any:
        self._forget(call)
        try:
            value = get(call.refs)
        except exceptions.ActorDiedError:
            # What waits is left to the others.
            self._start_waiting()
            raise
        except BaseException:
            self._free(call.actor)
            raise
        self._free(call.actor)
        return value

    def _forget(self, call: _Call) -> None:
        del self._calls[call.index]
        self._next = max(self._next, call.index + 1)

    def _free(self, actor: Any) -> None:
        self._idle.append(actor)
        self._start_waiting()

    def _start_waiting(self) -> None:
        if self._waiting and self._idle:
            self.submit(*self._waiting.popleft())
