"""Environment variables, read as `crates/settings` declares them: docs/settings.md."""

from __future__ import annotations

import os

from . import _native

_DECLARED = _native.settings()


def given(name: str) -> tuple[str, str]:
    """By which of its names it was given, and what it says. An empty one says nothing."""
    other, _ = _DECLARED[name]
    for each in (name, other) if other else (name,):
        if value := os.environ.get(each):
            return each, value
    return name, ""


def text(name: str) -> str:
    """What it says, or is unless said."""
    return given(name)[1] or _DECLARED[name][1]


def is_set(name: str) -> bool:
    """Whether it is there, even if it says nothing."""
    return name in os.environ


def is_on(name: str) -> bool:
    return text(name).strip().lower() not in ("", "0", "false")


def number(name: str, least: float, most: float) -> float:
    by, said = given(name)
    try:
        value = float(said or _DECLARED[name][1])
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise ValueError(f"{by} must be a number from {least:g} to {most:g}, not {said!r}")
    return value
