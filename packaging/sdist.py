"""Writes the sdist: all that a wheel is built of, the page as it is built: Node is not needed."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

_PARTS = (
    "Cargo.toml",
    "Cargo.lock",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
    "crates",
    "examples/demo.py",
    "packaging",
    "python/oxiray",
    "ui/dist",
    "ui/package-lock.json",
)
# Made by builds, and not by git's word: an sdist can be made of an sdist.
_NOT_IN = ("/__pycache__/", "/python/oxiray/_bin/")
_NOT_ENDING = (".so", ".pyc")


def write(root: Path, folder: Path, metadata: bytes) -> str:
    name = f"oxiray-{_version(metadata)}"
    with tarfile.open(folder / f"{name}.tar.gz", "w:gz", compresslevel=9) as archive:
        for path in files(root):
            archive.add(root / path, f"{name}/{path}", recursive=False, filter=_anonymous)
        info = tarfile.TarInfo(f"{name}/PKG-INFO")
        info.size = len(metadata)
        archive.addfile(info, io.BytesIO(metadata))
    return f"{name}.tar.gz"


def files(root: Path) -> list[str]:
    """Those that git knows, and the page; of an unpacked sdist, all."""
    asked = subprocess.run(
        ["git", "ls-files", "-z", "--", *_PARTS], cwd=root, capture_output=True, text=True
    )
    known = asked.stdout.split("\0") if (root / ".git").exists() and not asked.returncode else []
    there = [
        path.relative_to(root).as_posix()
        for part in (("ui/dist",) if known else _PARTS)
        for start in [root / part]
        for path in ([start] if start.is_file() else start.rglob("*"))
    ]
    return sorted(
        {
            path
            for path in [*known, *there]
            if (root / path).is_file()
            and not any(bad in f"/{path}" for bad in _NOT_IN)
            and not path.endswith(_NOT_ENDING)
        }
    )


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _version(metadata: bytes) -> str:
    lines = metadata.decode().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("Version:"))
