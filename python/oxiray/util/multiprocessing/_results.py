"""What a pool's calls return: all of it later, or one by one."""

from __future__ import annotations

import collections
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing import TimeoutError
from typing import Any, Protocol

from ..._errors import rebuild
from ..._native import put
from ._crew import ONE, Batch, Crew, Results

# Whether a call returned, and its value or its exception.
Outcome = tuple[bool, Any]


def _outcomes(size: int, results: Results | None, error: BaseException | None) -> list[Outcome]:
    if results is None:
        return [(False, error)] * size
    values, errors = results
    outcomes = [(True, value) for value in values]
    for index, described in errors.items():
        outcomes[index] = (False, rebuild(described))
    return outcomes


class AsyncResult:
    """The result of `apply_async`, `map_async` or `starmap_async`, when it is there."""

    def __init__(
        self,
        batches: int,
        single: bool,
        callback: Callable[[Any], object] | None,
        error_callback: Callable[[BaseException], object] | None,
    ) -> None:
        self._parts: list[list[Any]] = [[] for _ in range(batches)]
        self._left = batches
        self._single = single
        self._callback = callback
        self._error_callback = error_callback
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._done = threading.Event()
        if not batches:
            self._end()

    def wait(self, timeout: float | None = None) -> None:
        """Returns when it is there, or after `timeout` seconds."""
        self._done.wait(timeout)

    def ready(self) -> bool:
        """Whether every call has ended."""
        return self._done.is_set()

    def successful(self) -> bool:
        """Whether no call raised. ValueError if that is not known yet."""
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        return self._error is None

    def get(self, timeout: float | None = None) -> Any:
        """The result; what a call raised is raised here, TimeoutError after `timeout` seconds."""
        if not self._done.wait(timeout):
            raise TimeoutError(f"no result after {timeout} s")
        if self._error is not None:
            raise self._error
        return self._value()

    def _value(self) -> Any:
        values = list(itertools.chain.from_iterable(self._parts))
        return values[0] if self._single else values

    def _batch(self, index: int, function: Any, form: int, items: list[Any]) -> Batch:
        return Batch(function, form, items, partial(self._returned, index))

    def _returned(self, index: int, results: Results | None, error: BaseException | None) -> None:
        if results is not None:
            self._parts[index], errors = results
            if errors:
                error = rebuild(errors[min(errors)])
        with self._lock:
            first = error is not None and self._error is None
            self._error = self._error or error
            self._left -= 1
            last = self._left == 0
        if first and error is not None and self._error_callback is not None:
            self._error_callback(error)
        if last:
            self._end()

    def _end(self) -> None:
        try:
            if self._error is None and self._callback is not None:
                self._callback(self._value())
        finally:
            self._done.set()


class Runner(Protocol):
    """What an iterator needs of its pool."""

    def _check_open(self) -> None: ...

    @property
    def _crew(self) -> Crew: ...


class IMapIterator:
    """Results one by one. Chunks are submitted as results are taken, a few ahead."""

    _ordered = False

    def __init__(
        self, pool: Runner, func: Any, iterable: Iterable[Any], chunksize: int | None = None
    ) -> None:
        pool._check_open()
        self._submit = pool._crew.submit
        self._chunksize = at_least_one(1 if chunksize is None else chunksize)
        self._function = put(func)
        self._items = iter(iterable)
        self._arrived = threading.Condition()
        self._chunks: dict[int, list[Outcome]] = {}
        self._ready: collections.deque[Outcome] = collections.deque()
        self._submitted = 0
        self._taken = 0
        self._source_error: BaseException | None = None
        for _ in range(2 * len(pool._crew)):
            self._submit_next()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        """The next result. As in Ray, an exception that its call raised is the result: it is not
        raised, so that a loop goes on with the others."""
        if not self._ready:
            self._ready.extend(self._next_chunk(timeout))
        _, value = self._ready.popleft()
        return value

    def _next_chunk(self, timeout: float | None) -> list[Outcome]:
        if self._taken == self._submitted:
            if self._source_error is not None:
                error, self._source_error = self._source_error, None
                raise error
            raise StopIteration
        with self._arrived:
            if not self._arrived.wait_for(self._has_next, timeout):
                raise TimeoutError(f"no result after {timeout} s")
            index = self._taken if self._ordered else next(iter(self._chunks))
            chunk = self._chunks.pop(index)
        self._taken += 1
        self._submit_next()
        return chunk

    def _has_next(self) -> bool:
        return self._taken in self._chunks if self._ordered else bool(self._chunks)

    def _submit_next(self) -> None:
        if self._source_error is not None:
            return
        items: list[Any] = []
        try:
            items.extend(itertools.islice(self._items, self._chunksize))
        except Exception as error:  # the user's iterator raised: told after what came before it
            self._source_error = error
        if not items:
            return
        index, size = self._submitted, len(items)

        def done(results: Results | None, error: BaseException | None) -> None:
            with self._arrived:
                self._chunks[index] = _outcomes(size, results, error)
                self._arrived.notify_all()

        self._submitted += 1
        self._submit(Batch(self._function, ONE, items, done))


class OrderedIMapIterator(IMapIterator):
    """Of `imap`: in the order of the items."""

    _ordered = True


class UnorderedIMapIterator(IMapIterator):
    """Of `imap_unordered`: whichever is there first."""


def at_least_one(chunksize: int) -> int:
    if chunksize < 1:
        raise ValueError(f"chunksize must be at least 1, not {chunksize!r}")
    return chunksize
