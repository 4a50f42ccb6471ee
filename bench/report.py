"""The comparison as a table, in Markdown for people and JSON for programs."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PEERS = {"pool": "Pool", "memcpy": "memcpy", "tls": "TLS", "tcp": "TCP"}


@dataclass(frozen=True)
class Outcome:
    """A number with the range it was found in, or the reason why there is none."""

    value: float | None = None
    lowest: float = 0
    highest: float = 0
    samples: int = 0
    reason: str | None = None

    def text(self) -> str:
        if self.value is None:
            return shorten(self.reason or "no answer")
        if self.samples == 1:
            return f"{number(self.value)} once"
        spread = (self.highest - self.lowest) / 2 / self.value if self.value else 0
        return f"{number(self.value)} ±{spread:.0%}"


@dataclass
class Line:
    name: str
    unit: str
    lower_is_better: bool = False
    # Fewer items a call than Ray's own benchmark has, on every side alike.
    reduced: bool = False
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def times_better(self, side: str, than: str) -> float | None:
        ours, theirs = (self.outcomes.get(name, Outcome()).value for name in (side, than))
        if not ours or not theirs:
            return None
        return theirs / ours if self.lower_is_better else ours / theirs


def number(value: float) -> str:
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def shorten(text: str, longest: int = 50) -> str:
    text = text.replace("|", "/")
    return text if len(text) <= longest else text[: longest - 1] + "…"


def ratio(value: float | None) -> str:
    return "" if value is None else f"{number(value)} ×"


def cells(line: Line, sides: list[str]) -> list[str]:
    row = [line.name + (" †" if line.reduced else ""), line.unit]
    row += [line.outcomes[side].text() if side in line.outcomes else "" for side in sides]
    if {"oxiray", "ray"} <= set(sides):
        row.append(ratio(line.times_better("oxiray", "ray")))
    peers = [side for side in PEERS if side in line.outcomes]
    # Without oxiray in the run, a peer is compared with nothing.
    better = [ratio(line.times_better("oxiray", peer)) for peer in peers]
    said = [f"{line.outcomes[peer].text()} ({PEERS[peer]})" for peer in peers]
    return [*row, ", ".join(said), ", ".join(filter(None, better))]


def table(lines: list[Line], sides: list[str]) -> str:
    """A Markdown table whose columns also line up as plain text."""
    heads = ["row", "unit", *sides]
    if {"oxiray", "ray"} <= set(sides):
        heads.append("oxiray vs ray")
    heads += ["other peer or limit", "oxiray vs it"]
    rows = [cells(line, sides) for line in lines]
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]

    def drawn(row: list[str]) -> str:
        aligned = [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "| " + " | ".join(aligned) + " |"

    rule = ["-" * width if i < 2 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join([drawn(heads), drawn(rule), *(drawn(row) for row in rows)])


def document(lines: list[Line], sides: list[str], facts: dict[str, Any]) -> str:
    notes = [
        "Median of the windows, ± half the distance between the slowest and the fastest of them.",
        "`once`: a single window, since one call took long.",
        "`×`: how many times better oxiray is, whether more or less of the unit is better.",
    ]
    if any(line.name.endswith("*") for line in lines):
        notes.append("`*`: not one of the rows of Ray's own benchmark.")
    if any(line.reduced for line in lines):
        notes.append("`†`: smaller batches than Ray's own benchmark has, on all sides (`--quick`).")
    said = ", ".join(f"{name} {value}" for name, value in facts.items())
    return "\n\n".join(["# Oxiray beside its peers", said, table(lines, sides), *notes]) + "\n"


def save(lines: list[Line], sides: list[str], facts: dict[str, Any], where: Path) -> None:
    where.mkdir(exist_ok=True)
    (where / "latest.md").write_text(document(lines, sides, facts))
    content = {"facts": facts, "lines": [asdict(line) for line in lines]}
    (where / "latest.json").write_text(json.dumps(content, indent=1) + "\n")
