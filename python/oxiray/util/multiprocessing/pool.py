"""`Pool`: the interface of `multiprocessing.Pool`, with actors for its processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import TimeoutError
from typing import Any

from ..._cluster import cluster_resources
from ..._native import put
from ..._session import init, is_initialized
from ..debug import log_once
from ._crew import FULL, ONE, STAR, Crew, PoolActor
from ._results import (
    AsyncResult,
    IMapIterator,
    OrderedIMapIterator,
    UnorderedIMapIterator,
    at_least_one,
)

__all__ = [
    "AsyncResult",
    "IMapIterator",
    "OrderedIMapIterator",
    "Pool",
    "TimeoutError",
    "UnorderedIMapIterator",
]

logger = logging.getLogger("oxiray")

Callback = Callable[[Any], object] | None
ErrorCallback = Callable[[BaseException], object] | None


class Pool:
    """A fixed number of processes that run calls: on this machine, or all over a cluster.

    `processes` is by default the number of CPUs of the session. `initializer(*initargs)` runs in
    each process first. After `maxtasksperchild` batches a process is replaced. `ray_address` is the
    cluster to connect to if there is no session yet, `ray_remote_args` are options of the actors.
    """

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., Any] | None = None,
        initargs: Iterable[Any] | None = None,
        maxtasksperchild: int | None = None,
        context: Any = None,
        ray_address: str | None = None,
        ray_remote_args: dict[str, Any] | None = None,
    ) -> None:
        if processes is not None and processes < 1:
            raise ValueError(f"processes must be at least 1, not {processes!r}")
        if maxtasksperchild is not None and maxtasksperchild < 1:
            raise ValueError(
                f"maxtasksperchild must be at least 1 or None, not {maxtasksperchild!r}"
            )
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if context is not None and log_once("oxiray-pool-context"):
            logger.warning("Pool's argument context has no meaning here: processes are actors.")
        actor = PoolActor.options(**{"num_cpus": 0, **(ray_remote_args or {})})
        arguments = tuple(initargs or ())
        self._crew = Crew(
            _size(processes, ray_address),
            lambda: actor.remote(initializer, arguments),
            maxtasksperchild,
        )
        self._closed = False

    def apply(
        self,
        func: Callable[..., Any],
        args: Iterable[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What `func(*args, **kwargs)` returns in a process of the pool."""
        return self.apply_async(func, args, kwargs).get()

    def apply_async(
        self,
        func: Callable[..., Any],
        args: Iterable[Any] = (),
        kwargs: dict[str, Any] | None = None,
        callback: Callback = None,
        error_callback: ErrorCallback = None,
    ) -> AsyncResult:
        """The same, later. The callbacks are called with the result, or with what it raised."""
        self._check_open()
        result = AsyncResult(1, True, callback, error_callback)
        call = (tuple(args or ()), dict(kwargs or {}))
        self._crew.submit(result._batch(0, func, FULL, [call]))
        return result

    def map(
        self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int | None = None
    ) -> list[Any]:
        """`func` of every item, in their order."""
        return self.map_async(func, iterable, chunksize).get()  # type: ignore[no-any-return]

    def map_async(
        self,
        func: Callable[[Any], Any],
        iterable: Iterable[Any],
        chunksize: int | None = None,
        callback: Callback = None,
        error_callback: ErrorCallback = None,
    ) -> AsyncResult:
        """The same, later. The callbacks are called with the list, or with the first error."""
        return self._all(func, ONE, iterable, chunksize, callback, error_callback)

    def starmap(
        self,
        func: Callable[..., Any],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
    ) -> list[Any]:
        """`func(*item)` of every item, in their order."""
        result = self._all(func, STAR, iterable, chunksize, None, None)
        return result.get()  # type: ignore[no-any-return]

    def starmap_async(
        self,
        func: Callable[..., Any],
        iterable: Iterable[Iterable[Any]],
        callback: Any = None,
        error_callback: Any = None,
        chunksize: Any = None,
    ) -> AsyncResult:
        """The same, later. By their places the arguments may also be the standard library's, where
        the size of chunks, which Ray has not, comes before the callbacks."""
        if isinstance(callback, int) or callable(chunksize):
            callback, error_callback, chunksize = error_callback, chunksize, callback
        return self._all(func, STAR, iterable, chunksize, callback, error_callback)

    def imap(
        self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int | None = 1
    ) -> IMapIterator:
        """`func` of every item, in their order, each as soon as it is there."""
        return OrderedIMapIterator(self, func, iterable, chunksize)

    def imap_unordered(
        self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int | None = 1
    ) -> IMapIterator:
        """`func` of every item, whichever is there first."""
        return UnorderedIMapIterator(self, func, iterable, chunksize)

    def close(self) -> None:
        """Takes no more calls; those that there are run to their end."""
        self._closed = True

    def terminate(self) -> None:
        """Ends the processes now. Calls that have not returned fail."""
        self._closed = True
        self._crew.end()

    def join(self) -> None:
        """Waits for all calls of a closed pool, then ends its processes."""
        if not self._closed:
            raise ValueError("Pool is still running: close() or terminate() it first")
        self._crew.wait()
        self._crew.end()

    def __enter__(self) -> Pool:
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()

    def __reduce__(self) -> Any:
        raise NotImplementedError("A pool cannot be sent to another process: make one there.")

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("Pool not running")
        if not self._crew.session_lives():
            raise ValueError("Pool not running: its session has ended. Make another pool.")

    def _all(
        self,
        func: Callable[..., Any],
        form: int,
        iterable: Iterable[Any],
        chunksize: int | None,
        callback: Callback,
        error_callback: ErrorCallback,
    ) -> AsyncResult:
        self._check_open()
        items = list(iterable)
        if chunksize is None:
            # Four for each process, so that one with long calls does not hold up the end.
            chunksize = max(1, -(-len(items) // (4 * len(self._crew))))
        chunks = list(_chunks(items, at_least_one(chunksize)))
        result = AsyncResult(len(chunks), False, callback, error_callback)
        function = put(func)
        for index, chunk in enumerate(chunks):
            self._crew.submit(result._batch(index, function, form, chunk))
        return result


def _size(processes: int | None, address: str | None) -> int:
    """How many processes; starts or finds a session if there is none."""
    if not is_initialized():
        if address in (None, "local"):
            init(address=address, num_cpus=processes)
        else:
            init(address=address)
    cpus = int(cluster_resources().get("CPU", 0))
    if processes is None:
        return max(1, cpus)
    if processes > cpus:
        raise ValueError(
            f"Tried to start a pool with {processes} processes, but there are only {cpus} CPUs in "
            "the session. Ask for fewer, or begin with init(num_cpus=)."
        )
    return processes


def _chunks(items: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
