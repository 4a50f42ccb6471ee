"""Notes on exceptions, for Python 3.10 too, which keeps them but does not print them."""

from __future__ import annotations


def add_note(error: BaseException, text: str) -> None:
    if hasattr(error, "add_note"):
        error.add_note(text)
    else:
        error.__notes__ = [*getattr(error, "__notes__", ()), text]  # type: ignore[attr-defined]
