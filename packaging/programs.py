"""Builds `oxiray` and `oxirayd` and lays them into the package: every wheel has them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("oxiray", "oxirayd")
_RUST = "1.95"


def prepare(root: Path) -> None:
    """Sees that there is all that a build needs; what is missing ends it with a sentence."""
    if not shutil.which("cargo"):
        sys.exit(
            f"oxiray: it is built with Rust {_RUST} or later, and cargo is not found: "
            "https://rustup.rs installs it; or install a wheel, which needs no compiler"
        )
    compiler = (os.environ.get("CC", "").split() or ["cc"])[0]
    if not shutil.which(compiler):
        sys.exit(
            f"oxiray: a C compiler is needed to link it, and {compiler!r} is not found (Debian: "
            "apt-get install gcc libc6-dev; Fedora: dnf install gcc); or install a wheel"
        )
    fetch(root)


def fetch(root: Path) -> None:
    """Brings the crates here; without asking the network if they are."""
    command = ["cargo", "fetch", "--locked", "--quiet"]
    if subprocess.run([*command, "--offline"], cwd=root, capture_output=True).returncode == 0:
        return
    done = subprocess.run(command, cwd=root, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        sys.exit(
            f"oxiray: the crates it is built of cannot be fetched ({lines[-1] if lines else '?'}): "
            "a network, or a vendored copy (cargo vendor), is needed; or install a wheel"
        )


def build(root: Path, target: str | None = None, glibc: str | None = None) -> None:
    """For this machine; or for a target and a version of glibc, by zig's linker."""
    command = ["cargo", "build"]
    if target:
        command = ["cargo", "zigbuild", "--target", f"{target}.{glibc}"]
    command += ["--locked", "--profile", "programs", "-p", "oxiray-cli", "-p", "oxiray-daemon"]
    done = subprocess.run(command, cwd=root)
    if done.returncode != 0:
        sys.exit(f"oxiray: its programs cannot be built: see above ({' '.join(command)})")
    built = Path(target_directory(root), target or "", "programs")
    folder = root / "python/oxiray/_bin"
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        _replace(built / name, folder / name)


def target_directory(root: Path) -> Path:
    return root / os.environ.get("CARGO_TARGET_DIR", "target")


def _replace(new: Path, old: Path) -> None:
    """Leaves what is the same; what runs is not written over."""
    if old.exists() and old.read_bytes() == new.read_bytes():
        return
    beside = old.with_suffix(".new")
    shutil.copy2(new, beside)
    beside.chmod(0o755)
    beside.rename(old)
