"""A line of a worker as it is written: who printed it, in a colour of its process on a terminal.

What a worker prints may be anything. On a terminal only its colours pass: what would move the
cursor, clear the screen or name the window is left out.
"""

from __future__ import annotations

import os
import re
import zlib
from typing import TextIO

from . import _settings
from ._log_folding import Line

_RESET = "\x1b[0m"
_WARNING = "\x1b[33m"
_COUNT = "\x1b[32m"
# Seen well on light and on dark: cyan, magenta, green, and bright blue, magenta, cyan.
_BY_PROCESS = [f"\x1b[{code}m" for code in (36, 35, 32, 94, 95, 96)]

_SUSPICIOUS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CONTROL = re.compile(
    r"(\x1b\[[0-9;:]*m)"  # a colour, which stays
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # other sequences with parameters
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # sequences with text in them, such as a title
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody looks at it."""
    try:
        return stream.isatty()
    except Exception:  # closed, or no stream at all
        return False


def is_coloured(stream: TextIO) -> bool:
    """Whether colours are seen there and wanted."""
    if os.environ.get("NO_COLOR") or not _settings.is_on("RAY_COLOR_PREFIX"):
        return False
    return os.environ.get("TERM") != "dumb" and is_terminal(stream)


def who(name: str, pid: int, host: str, *, colours: bool) -> str:
    """`(name pid=7, ip=10.0.0.2)`; without what is empty."""
    # Without a name: what did not come through Python's streams, as of subprocesses and crashes.
    text = f"{name} pid={pid}" if name else f"pid={pid}"
    text += f", ip={host}" if host else ""
    if not colours:
        return f"({text})"
    colour = _BY_PROCESS[(pid + zlib.crc32(host.encode())) % len(_BY_PROCESS)]
    return f"{colour}({text}){_RESET}"


def written(line: Line, *, terminal: bool, colours: bool) -> str:
    """The line with who printed it and how often it stands for others."""
    text = harmless(line.text) if terminal else line.text
    if line.repeated:
        count = f"[repeated {line.repeated}x across cluster]"
        text += f" {_COUNT}{count}{_RESET}" if colours else f" {count}"
    return f"{who(line.name, line.pid, line.host, colours=colours)} {text}\n"


def written_by_us(text: str, *, colours: bool) -> str:
    """A sentence of the engine."""
    return f"{_WARNING}(oxiray){_RESET} {text}\n" if colours else f"(oxiray) {text}\n"


def harmless(text: str) -> str:
    """What a terminal may be given: of control sequences only colours, which end with the line."""
    if not _SUSPICIOUS.search(text):
        return text
    # A line that was written over is what it was last.
    text = text.rstrip("\r").rpartition("\r")[2]
    text = _CONTROL.sub(lambda found: found[1] or "", text)
    return f"{text}{_RESET}" if "\x1b" in text else text


def plain(text: str) -> str:
    """Without control sequences and colours."""
    return _CONTROL.sub(" ", text) if _SUSPICIOUS.search(text) else text
