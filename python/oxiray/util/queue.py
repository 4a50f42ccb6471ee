"""A first-in, first-out queue that every process of a session can use: an actor holds it."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Iterable
from typing import Any

from .._actor import kill
from .._native import get, wait
from .._remote import remote

__all__ = ["Empty", "Full", "Queue"]

# Callers that wait for an item or for room, at most.
_MOST_WAITING = 1000


class Empty(queue.Empty):
    """There is nothing in the queue."""


class Full(queue.Full):
    """There is no room in the queue."""


class Queue:
    """Like `queue.Queue`, for tasks and actors; it can be passed to them.

    `maxsize` items at most, 0: any number. `actor_options` are those of the actor that holds it.
    The queue lives as long as somebody has it.
    """

    def __init__(self, maxsize: int = 0, actor_options: dict[str, Any] | None = None) -> None:
        options = {"max_concurrency": _MOST_WAITING, **(actor_options or {})}
        self.maxsize = maxsize
        self.actor = _QueueActor.options(**options).remote(maxsize)

    def __len__(self) -> int:
        return self.size()

    def size(self) -> int:
        """How many items are in the queue."""
        return get(self.actor.qsize.remote())  # type: ignore[no-any-return]

    def qsize(self) -> int:
        """How many items are in the queue."""
        return self.size()

    def empty(self) -> bool:
        """Whether there are none."""
        return self.size() == 0

    def full(self) -> bool:
        """Whether there is room for no more."""
        return get(self.actor.full.remote())  # type: ignore[no-any-return]

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Adds an item. Waits for room, `timeout` seconds at most, or not at all; then `Full`."""
        if not block:
            self.put_nowait(item)
        else:
            get(self.actor.put.remote(item, _checked(timeout)))

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Takes the oldest item. Waits for one, for `timeout` seconds at most, or not at all; then
        `Empty`."""
        if not block:
            return self.get_nowait()
        return get(self.actor.get.remote(_checked(timeout)))

    async def put_async(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """`put` for coroutines."""
        if not block:
            await self.actor.put_nowait.remote(item)
        else:
            await self.actor.put.remote(item, _checked(timeout))

    async def get_async(self, block: bool = True, timeout: float | None = None) -> Any:
        """`get` for coroutines."""
        if not block:
            return await self.actor.get_nowait.remote()
        return await self.actor.get.remote(_checked(timeout))

    def put_nowait(self, item: Any) -> None:
        """Adds an item if there is room, else raises `Full`."""
        get(self.actor.put_nowait.remote(item))

    def get_nowait(self) -> Any:
        """Takes the oldest item if there is one, else raises `Empty`."""
        return get(self.actor.get_nowait.remote())

    def put_nowait_batch(self, items: Iterable[Any]) -> None:
        """Adds all items if there is room for all, else none of them and raises `Full`."""
        if not isinstance(items, Iterable):
            raise TypeError(f"items must be an iterable, not {type(items).__name__}")
        get(self.actor.put_nowait_batch.remote(list(items)))

    def get_nowait_batch(self, num_items: int) -> list[Any]:
        """Takes so many items if there are as many, else none of them and raises `Empty`."""
        if not isinstance(num_items, int):
            raise TypeError(f"num_items must be an int, not {type(num_items).__name__}")
        if num_items < 0:
            raise ValueError(f"num_items must not be negative: {num_items}")
        return get(self.actor.get_nowait_batch.remote(num_items))  # type: ignore[no-any-return]

    def shutdown(self, force: bool = False, grace_period_s: int = 5) -> None:
        """Ends the queue and what is in it, after the calls that it has: so many seconds at most.

        With `force` at once.
        """
        if self.actor is None:
            return
        if not force:
            last = self.actor.__ray_terminate__.remote()
            force = not wait([last], timeout=grace_period_s)[0]
        if force:
            kill(self.actor, no_restart=True)
        self.actor = None


def _checked(timeout: float | None) -> float | None:
    if timeout is not None and timeout < 0:
        raise ValueError("'timeout' must be a non-negative number")
    return timeout


class _Holder:
    """What the actor is: everything happens on its event loop, so that nothing needs a lock."""

    def __init__(self, maxsize: int) -> None:
        self._maxsize = maxsize
        self._items: asyncio.Queue[Any] = asyncio.Queue(maxsize)

    def qsize(self) -> int:
        return self._items.qsize()

    def empty(self) -> bool:
        return self._items.empty()

    def full(self) -> bool:
        return self._items.full()

    async def put(self, item: Any, timeout: float | None) -> None:
        try:
            await asyncio.wait_for(self._items.put(item), timeout)
        except asyncio.TimeoutError:  # until Python 3.10 another than the built-in
            raise Full(f"there was no room for {timeout} s") from None

    async def get(self, timeout: float | None) -> Any:
        try:
            return await asyncio.wait_for(self._items.get(), timeout)
        except asyncio.TimeoutError:
            raise Empty(f"there was nothing for {timeout} s") from None

    def put_nowait(self, item: Any) -> None:
        self.put_nowait_batch([item])

    def get_nowait(self) -> Any:
        return self.get_nowait_batch(1)[0]

    def put_nowait_batch(self, items: list[Any]) -> None:
        size = self._items.qsize()
        if self._maxsize > 0 and size + len(items) > self._maxsize:
            raise Full(f"Cannot add {len(items)} items: {size} of {self._maxsize} are there")
        for item in items:
            self._items.put_nowait(item)

    def get_nowait_batch(self, count: int) -> list[Any]:
        size = self._items.qsize()
        if count > size:
            raise Empty(f"Cannot get {count} items: {size} are there")
        return [self._items.get_nowait() for _ in range(count)]


_QueueActor: Any = remote(_Holder)
