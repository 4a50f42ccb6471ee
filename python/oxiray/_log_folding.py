"""Folds lines that several workers print: the first is shown at once, the others are counted.

Lines are the same if they differ only in words with digits in them. A line that one process alone
repeats is shown every time: that is its progress. No clock in here: time is an argument.
"""

from __future__ import annotations

import dataclasses
import re

from . import _settings

# Longer lines, and kinds of lines beyond so many at once, are shown and not compared: what is
# remembered stays small whatever workers print.
_LONGEST = 2000
_MOST_KINDS = 1000

_DIGIT = re.compile(r"\d")


@dataclasses.dataclass(frozen=True)
class Line:
    """One line and who printed it; `repeated` counts those that it stands for."""

    name: str
    pid: int
    host: str
    text: str
    repeated: int = 0


@dataclasses.dataclass(frozen=True)
class FoldingRules:
    """What may be folded, by the environment: RAY_… or OXIRAY_…, the latter counts more."""

    window_s: float = 5.0
    always_shown: re.Pattern[str] | None = None
    never_shown: re.Pattern[str] | None = None

    @staticmethod
    def from_environment() -> FoldingRules | None:
        """None: fold nothing."""
        if not _settings.is_on("OXIRAY_DEDUP_LOGS"):
            return None
        return FoldingRules(
            _settings.number("OXIRAY_DEDUP_LOGS_AGG_WINDOW_S", 0, 1e9),
            _pattern("OXIRAY_DEDUP_LOGS_ALLOW_REGEX"),
            _pattern("OXIRAY_DEDUP_LOGS_SKIP_REGEX"),
        )


def _pattern(name: str) -> re.Pattern[str] | None:
    by, text = _settings.given(name)
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise ValueError(f"{by} is not a regular expression: {text!r}: {error}") from None


@dataclasses.dataclass
class _Kind:
    since: float
    latest: Line
    source: tuple[str, int]
    several_sources: bool = False
    folded: int = 0


class Folder:
    """Decides which lines of one stream are shown, and when."""

    def __init__(self, rules: FoldingRules) -> None:
        self._rules = rules
        # By what stays of a line without its numbers; the one that began first stands first.
        self._kinds: dict[str, _Kind] = {}
        self._held_back = 0

    def add(self, line: Line, now: float) -> Line | None:
        """The line, if it is to be shown now."""
        text, rules = line.text, self._rules
        if rules.always_shown and rules.always_shown.search(text):
            return line
        if rules.never_shown and rules.never_shown.search(text):
            return None
        if len(text) > _LONGEST:
            return line
        key = " ".join(word for word in text.split() if not _DIGIT.search(word))
        if not key:  # numbers alone: they are what the user wants to see
            return line
        source = (line.host, line.pid)
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) < _MOST_KINDS:
                self._kinds[key] = _Kind(now, line, source)
            return line
        kind.several_sources |= kind.source != source
        if not kind.several_sources:
            return line
        kind.latest = line
        kind.folded += 1
        self._held_back += 1
        return None

    def due(self, now: float) -> list[Line]:
        """The folded lines whose time has come, counted."""
        lines = []
        while self._kinds:
            key = next(iter(self._kinds))
            kind = self._kinds[key]
            if now < kind.since + self._rules.window_s:
                break
            del self._kinds[key]
            lines += _summary(kind)
            self._held_back -= kind.folded
            if kind.folded > 1:  # it goes on, probably
                kind.since, kind.folded = now, 0
                self._kinds[key] = kind
        return lines

    def next_due(self) -> float | None:
        """When to ask for what is due; None: nothing is held back."""
        if not self._held_back:
            return None
        return next(iter(self._kinds.values())).since + self._rules.window_s

    def flush(self) -> list[Line]:
        """All that is held back. Nothing is remembered any more."""
        lines = [line for kind in self._kinds.values() for line in _summary(kind)]
        self._kinds.clear()
        self._held_back = 0
        return lines


def _summary(kind: _Kind) -> list[Line]:
    match kind.folded:
        case 0:
            return []
        case 1:  # a count of one would be longer than the line
            return [kind.latest]
        case count:
            return [dataclasses.replace(kind.latest, repeated=count)]
