"""One progress bar as a line of text."""

from __future__ import annotations

import dataclasses
import math
import unicodedata

_EIGHTHS = " ▏▎▍▌▋▊▉"
_LONGEST_METER = 40
_SHORTEST_METER = 5


@dataclasses.dataclass
class Bar:
    """How far something is, as it said last."""

    who: str
    started: float
    desc: str = ""
    n: float = 0
    total: float | None = None
    unit: str = "it"
    position: int = 0
    closed: bool = False
    pid: int = 0
    is_here: bool = True


def bar_line(bar: Bar, now: float, columns: int) -> str:
    """`(f pid=7) desc:  40%|████      | 4/10 [00:02<00:03, 2.00it/s]`, no wider than `columns`."""
    elapsed = max(now - bar.started, 0.0)
    rate = max(bar.n, 0) / elapsed if elapsed > 0 else 0.0
    speed = f"{_count(rate)}{bar.unit}/s" if rate else f"?{bar.unit}/s"
    head = " ".join(filter(None, (bar.who, bar.desc)))
    head += ": " if head else ""
    if not bar.total:
        return cut(f"{head}{_count(bar.n)}{bar.unit} [{_clock(elapsed)}, {speed}]", columns)
    share = min(max(bar.n / bar.total, 0.0), 1.0)
    left = _clock((bar.total - bar.n) / rate) if rate and bar.n <= bar.total else "?"
    percent = f"{head}{share:4.0%}|"
    tail = f"| {_count(bar.n)}/{_count(bar.total)} [{_clock(elapsed)}<{left}, {speed}]"
    room = min(columns - width(percent) - width(tail), _LONGEST_METER)
    if room < _SHORTEST_METER:
        return cut(f"{percent[:-1]} {tail[2:]}", columns)
    return percent + _meter(share, room) + tail


def _meter(share: float, columns: int) -> str:
    full, part = divmod(round(share * columns * 8), 8)
    text = "█" * full + (_EIGHTHS[part] if part else "")
    return text.ljust(columns)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(min(seconds, 1e9)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


def _count(number: float) -> str:
    """`7`, `1.50`, `12.3k`."""
    if abs(number) < 1000:
        return f"{number:d}" if isinstance(number, int) else f"{number:.2f}"
    power = min(int(math.log10(abs(number))) // 3, 6)
    return f"{number / 1000**power:.3g}{'kMGTPE'[power - 1]}"


def cut(text: str, columns: int) -> str:
    """As much of it as has room."""
    if width(text) <= columns:
        return text
    kept, room = [], max(columns - 1, 0)
    for character in text:
        room -= width(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def width(text: str) -> int:
    """In columns of a terminal."""
    if text.isascii():
        return len(text)
    wide = (unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + sum(wide)
