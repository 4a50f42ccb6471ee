"""Finishes a wheel that maturin made: without symbols, with the licences of what is linked."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import architectures
import linked
import readme
import symbols

_RECORD = "RECORD"


def finish(wheel: Path, root: Path, target: str | None = None, aside: Path | None = None) -> None:
    """In place. With `aside`, the symbols go there, in a folder for each wheel."""
    target = target or _host()
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tree)
            modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        for name in modes:
            path = tree / name
            machine = architectures.of(path) if path.is_file() else None
            if machine:
                if not target.startswith(machine):
                    sys.exit(f"{wheel.name}: is for {target}, and {name} in it for {machine}")
                path.chmod(modes[name])
                kept = aside / wheel.stem / f"{path.name}.debug" if aside else None
                symbols.strip(path, kept)
        information = next(tree.glob("*.dist-info"))
        _say_what_is_linked(information, root, target)
        _pack(tree, information, modes, wheel)


def _say_what_is_linked(information: Path, root: Path, target: str) -> None:
    parts = linked.parts(root, target)
    version = information.name.split("-")[1].removesuffix(".dist")
    # maturin's knows the crates of the module alone.
    shutil.rmtree(information / "sboms", ignore_errors=True)
    (information / "sboms").mkdir()
    (information / "sboms/oxiray.cdx.json").write_text(linked.bill(parts, version))
    (information / "licenses").mkdir(exist_ok=True)
    (information / "licenses/THIRD-PARTY.txt").write_text(linked.licences(parts))
    metadata = information / "METADATA"
    head, _, page = metadata.read_text().partition("\n\n")
    if "License-File: THIRD-PARTY.txt" not in head:
        head += "\nLicense-File: THIRD-PARTY.txt"
    metadata.write_text(f"{head}\n\n{readme.make_links_whole(page, version)}")


def _pack(tree: Path, information: Path, modes: dict[str, int], wheel: Path) -> None:
    record = information / _RECORD
    files = sorted(path for path in tree.rglob("*") if path.is_file() and path != record)
    lines = []
    for path in files:
        data = path.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path.relative_to(tree)},sha256={digest},{len(data)}")
    lines.append(f"{record.relative_to(tree)},,")
    record.write_text("\n".join(lines) + "\n")
    beside = wheel.with_suffix(".new")
    with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in [*files, record]:
            name = path.relative_to(tree).as_posix()
            # The oldest time that a zip can have: the same files are the same bytes.
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (modes.get(name) or 0o100644) << 16
            archive.writestr(info, path.read_bytes(), compresslevel=9)
    beside.rename(wheel)


def _host() -> str:
    told = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    return next(line.split()[1] for line in told.splitlines() if line.startswith("host:"))
