"""What a check found: how bad it is, what there is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

FINE, WARNING, TROUBLE = "ok", "warn", "FAIL"


@dataclass(frozen=True)
class Finding:
    subject: str
    verdict: str
    says: str
    remedy: str = ""


def fine(subject: str, says: str) -> Finding:
    return Finding(subject, FINE, says)


def warning(subject: str, says: str, remedy: str) -> Finding:
    """It works, though not as well, or not for everything."""
    return Finding(subject, WARNING, says, remedy)


def trouble(subject: str, says: str, remedy: str) -> Finding:
    """It cannot work like this."""
    return Finding(subject, TROUBLE, says, remedy)
