"""`asyncio.Runner` for Python 3.10, as far as a generator that is driven step by step needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any


class LoopRunner:
    def __enter__(self) -> LoopRunner:
        self._loop = asyncio.new_event_loop()
        return self

    def run(self, step: Awaitable[Any]) -> Any:
        return self._loop.run_until_complete(step)

    def __exit__(self, *_: object) -> None:
        """What the steps have left running is cancelled, and heard out."""
        try:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self.run(asyncio.wait(left))
            self.run(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
