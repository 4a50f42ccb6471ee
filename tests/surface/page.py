"""The part of `docs/compatibility.md` that is made of the table of absent names.

PYTHONPATH=tests python -m surface.page      writes it
"""

from __future__ import annotations

from pathlib import Path

from oxiray._absent import ABSENT

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN, END = "<!-- made by tests/surface/page.py -->", "<!-- end -->"


def part() -> str:
    lines = ["| what | names |", "|---|---|"]
    for reason, names in ABSENT.items():
        shown = ", ".join(f"`{name.removeprefix('ray.')}`" for name in names.split())
        lines.append(f"| {reason} | {shown} |")
    return "\n".join([BEGIN, *lines, END])


def page() -> str:
    """The page as it should be."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + part() + after


if __name__ == "__main__":
    PAGE.write_text(page())
