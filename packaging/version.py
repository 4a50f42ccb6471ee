"""The version: where it is written, whether that is the same everywhere, and how to change it.

python packaging/version.py          # prints it
python packaging/version.py 0.2.0    # writes it everywhere
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_LIKE = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?"
# Files, and what is before and after it there.
PLACES = (
    ("Cargo.toml", r'\n\[workspace\.package\]\nversion = "', '"'),
    ("pyproject.toml", r'\nname = "oxiray"\nversion = "', '"'),
    ("python/oxiray/_version.py", r'\n__version__ = "', '"'),
    ("python/oxiray-as-ray/pyproject.toml", r'\nversion = "[\d.]+\+oxiray\.', '"'),
    ("python/oxiray-as-ray/pyproject.toml", r'"oxiray~=', '"'),
    ("python/oxiray-caffe/pyproject.toml", r'\nversion = "', '"'),
    ("python/oxiray-caffe/pyproject.toml", r'"oxiray~=', '"'),
    ("python/oxiray-caffe/src/oxiray_caffe/__init__.py", r'\n__version__ = "', '"'),
)


def everywhere(root: Path = ROOT) -> dict[str, str]:
    """What each place says."""
    found = {}
    for path, before, after in PLACES:
        match = re.search(f"{before}({_LIKE}){after}", (root / path).read_text())
        found[f"{path}: {before}"] = match[1] if match else "nothing"
    return found


def read(root: Path = ROOT) -> str:
    found = everywhere(root)
    if len(set(found.values())) != 1:
        told = "\n".join(f"  {version:<8} {place}" for place, version in found.items())
        sys.exit(f"The version is not the same everywhere:\n{told}")
    return next(iter(found.values()))


def write(version: str, root: Path = ROOT) -> None:
    if not re.fullmatch(_LIKE, version):
        sys.exit(f"{version!r} is no version: it must be like 1.2.3 or 1.2.3rc1")
    for path, before, after in PLACES:
        text = (root / path).read_text()
        text, count = re.subn(f"({before}){_LIKE}({after})", rf"\g<1>{version}\g<2>", text)
        if count != 1:
            sys.exit(f"{path}: the version is written there {count} times, and must be once")
        (root / path).write_text(text)


if __name__ == "__main__":
    if sys.argv[1:]:
        write(sys.argv[1])
    print(read())
