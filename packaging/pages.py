"""The dashboard's page, `ui/dist`: built by Node, or already there in an sdist."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

_SOURCES = ("src", "public", "index.html", "vite.config.ts", "package.json", "package-lock.json")


def are_there(root: Path) -> bool:
    return (root / "ui/dist/index.html").exists()


def build(root: Path) -> None:
    """Builds them if they are older than what they are made of. Without Node the rest is built."""
    page = root / "ui"
    if not (page / "src").exists() or _is_fresh(page):
        return
    if not shutil.which("npm"):
        _left_out("npm is not found")
        return
    commands = (
        ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"],
        ["npm", "run", "--silent", "build", "--", "--logLevel=warn"],
    )
    for command in commands[int((page / "node_modules").exists()) :]:
        if subprocess.run(command, cwd=page, stdout=sys.stderr).returncode != 0:
            _left_out(f"`{' '.join(command[:2])}` failed, see above")
            return


def _is_fresh(page: Path) -> bool:
    built = page / "dist/index.html"
    if not built.exists():
        return False
    files = [page / name for name in _SOURCES]
    newest = max(
        path.stat().st_mtime
        for start in files
        for path in ([start] if start.is_file() else start.rglob("*"))
    )
    return built.stat().st_mtime >= newest


def _left_out(why: str) -> None:
    """With CI set it is an error: there nothing is left out unseen."""
    text = f"oxiray: the dashboard has no pages: {why}; Node 20.19 or later and a network make them"
    if os.environ.get("CI"):
        sys.exit(text)
    print(text, file=sys.stderr)
