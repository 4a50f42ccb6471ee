"""What a template says to its node service while it makes an environment."""

from __future__ import annotations

import os
import threading
from types import TracebackType

SOCKET = 3
# A packet has that much room for words.
_LONGEST = 30_000
# A step that takes longer is told to those who wait, and then again so often.
_SOON_S, _AGAIN_S = 2.0, 15.0


class SetupFailed(Exception):
    """The environment cannot be made; the text says why, a tool's own words included."""


def say(word: str, text: str) -> None:
    message = f"{word} {text}".encode(errors="replace")
    if len(message) > _LONGEST:  # what a tool said last is what matters
        head = f"{word} … ".encode()
        message = head + message[-(_LONGEST - len(head)) :]
    os.write(SOCKET, message)


class Progress:
    """A step of the making: if it takes long, the driver hears what it is at."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._last = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def note(self, line: str) -> None:
        self._last = line

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _tell(self) -> None:
        wait = _SOON_S
        while not self._over.wait(wait):
            last = f": {self._last[:200]}" if self._last else ""
            say("making", f"Runtime environment: {self._what}{last}")
            wait = _AGAIN_S
