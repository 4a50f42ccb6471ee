"""Writes the stubs by which type checkers know that `ray.x` is `oxiray.x`, which happens at import.

python python/oxiray-as-ray/stubs.py
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
OXIRAY = HERE.parent / "oxiray"
RAY = HERE / "src" / "ray"


def stubs() -> dict[Path, str]:
    """Each stub's place below `ray`, and its text."""
    found = {}
    for file in sorted(OXIRAY.rglob("*.py")):
        place = file.relative_to(OXIRAY)
        parts = [part for part in place.with_suffix("").parts if part != "__init__"]
        if any(part.startswith("_") and part != "_private" for part in parts):
            continue
        module = ".".join(["oxiray", *parts])
        text = f"from {module} import *\n"
        if not parts:
            text += "\n__commit__: str\n"
        found[place.with_suffix(".pyi")] = text
    return found


if __name__ == "__main__":
    for old in RAY.rglob("*.pyi"):
        old.unlink()
    for place, text in stubs().items():
        path = RAY / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
