"""Reading what tasks yield: the async half of `ObjectRefGenerator`, and what "dynamic" returns."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator

from . import _futures, _native


async def next_of(
    generator: _native.ObjectRefGenerator, timeout_s: float | None = None
) -> _native.ObjectRef:
    """The ref of the next item, once it has come; a nil ref if that is not in time."""
    deadline = None
    if timeout_s is not None and timeout_s >= 0:
        deadline = asyncio.get_running_loop().time() + timeout_s
    while True:
        taken, is_end = generator._take()
        if taken is not None:
            return taken
        if is_end:
            raise StopAsyncIteration
        [head] = generator._get_next_ref_n(1)
        came = _futures.completion_of(head)
        left = None
        if deadline is not None:
            left = max(0, deadline - asyncio.get_running_loop().time())
        try:
            await asyncio.wait_for(came, left)
        except asyncio.TimeoutError:
            return generator._nil()


class DynamicObjectRefGenerator:
    """The refs of what a task with `num_returns="dynamic"` yielded; each is given once."""

    def __init__(self, refs: Iterable[_native.ObjectRef]) -> None:
        self._refs = deque(refs)

    def __iter__(self) -> Iterator[_native.ObjectRef]:
        while self._refs:
            yield self._refs.popleft()

    def __len__(self) -> int:
        return len(self._refs)
