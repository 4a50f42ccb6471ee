"""The connection by which a session is looked at: one for each session, kept while it lasts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import TypeVar

from ... import _native
from .exception import RayStateApiException

T = TypeVar("T")

# By process and session: a child must not speak over its parent's socket.
_known: dict[tuple[int, str | None, str | None], _native.Observer] = {}


def ask(address: str | None, question: Callable[[_native.Observer], T]) -> T:
    """Asks the session of `address`, or this process's own, or the newest."""
    address = address or os.environ.get("RAY_ADDRESS") or None
    directory = None
    if address in (None, "auto") and _native.is_running():
        directory, address = _native.context()["session_dir"], None
    key = (os.getpid(), directory, address)
    observer = _known.get(key)
    try:
        if observer is not None:
            try:
                return question(observer)
            except ConnectionError:
                # The session ended; another may have begun.
                _known.pop(key, None)
        _known.clear()
        observer = _native.Observer(directory, address)
        _known[key] = observer
        return question(observer)
    except (ConnectionError, ValueError):
        raise
    except OSError as error:
        raise RayStateApiException(str(error)) from None


def miss(notes: list[str], raise_on_missing_output: bool) -> None:
    """Says what is missing from an answer."""
    if not notes:
        return
    text = "Some of it is missing: " + "; ".join(notes)
    if raise_on_missing_output:
        raise RayStateApiException(
            f"{text}. With raise_on_missing_output=False there is a warning instead."
        )
    warnings.warn(text, stacklevel=4)
