"""Text without what is meant for terminals: the codes that colour it and move the cursor."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable

_CODE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
# One that has begun at the end of a piece; what is longer than any code is none.
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?)?\Z")
_LONGEST = 4096


def remove_ansi_escape_codes(text: str) -> str:
    """The text without them."""
    return _CODE.sub("", text)


def plain(pieces: Iterable[str]) -> Generator[str, None, None]:
    """Each piece without them; one that goes over the end of a piece waits for the next."""
    kept = ""
    for piece in pieces:
        text = kept + piece
        begun = _BEGUN.search(text, max(0, len(text) - _LONGEST))
        at = len(text) if begun is None else begun.start()
        text, kept = remove_ansi_escape_codes(text[:at]), text[at:]
        if text:
            yield text
    if kept:
        yield kept
