"""Takes the symbols out of programs and modules, and keeps them aside for debuggers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_tool: list[str] | None = None


def strip(program: Path, aside: Path | None = None) -> bool:
    """Strips it in place. Its symbols go to `aside`, which it then names: gdb finds them there.

    Where no tool for it is found, that is said, and it stays as it is.
    """
    tool = _find()
    if not tool:
        return False
    link = []
    if aside:
        aside.parent.mkdir(parents=True, exist_ok=True)
        _run([*tool, "--only-keep-debug", str(program), str(aside)])
        link = [f"--add-gnu-debuglink={aside}"]
    stripped = program.with_suffix(".stripped")
    _run([*tool, "--strip-all", *link, str(program), str(stripped)])
    shutil.copymode(program, stripped)
    stripped.rename(program)
    return True


def _find() -> list[str]:
    """Rust's own, which knows every architecture; else that of the machine."""
    global _tool
    if _tool is None:
        asked = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True)
        rust = Path(asked.stdout.strip() or "/nowhere")
        commands = [
            ["env", f"LD_LIBRARY_PATH={rust}/lib", str(path)]
            for path in rust.glob("lib/rustlib/*/bin/rust-objcopy")
        ]
        commands += [["llvm-objcopy"], ["objcopy"]]
        _tool = next((command for command in commands if _runs(command)), [])
        if not _tool:
            print("oxiray: objcopy is not found: the wheel keeps its symbols", file=sys.stderr)
    return _tool


def _runs(command: list[str]) -> bool:
    try:
        return subprocess.run([*command, "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True)
