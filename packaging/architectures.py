"""Architectures that there are wheels for: whether they can be built here, whose a program is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# As the tags of wheels name them, with their number in programs and modules (ELF's e_machine).
ALL = {"x86_64": 62, "aarch64": 183}


def targets(asked: list[str] | None) -> list[str]:
    """As Rust names them. Not asked for, those that cannot be built here are said and left out."""
    found = []
    for architecture in asked or ALL:
        target = f"{architecture}-unknown-linux-gnu"
        if _has_library(target):
            found.append(target)
            continue
        text = (
            f"wheels: none for {architecture}: Rust's library for it is not here, "
            f"which `rustup target add {target}` brings"
        )
        if asked or architecture == os.uname().machine:
            sys.exit(text)
        print(text, file=sys.stderr, flush=True)
    return found


def _has_library(target: str) -> bool:
    command = ["rustc", "--print", "target-libdir", "--target", target]
    # Here, where the toolchain is pinned.
    here = Path(__file__).parent
    found = subprocess.run(command, cwd=here, capture_output=True, text=True).stdout.strip()
    return bool(found) and Path(found).exists()


def of(path: Path) -> str | None:
    """The one that a program or module is for; None of what is neither."""
    with path.open("rb") as file:
        head = file.read(20)
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return None
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    return next((name for name, own in ALL.items() if own == number), f"machine {number}")
