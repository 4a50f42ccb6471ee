"""The Pythons of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def find(python: str, target: str = "") -> str | None:
    """An interpreter of this version here; without one the module is built by what PyO3 knows."""
    if target and not target.startswith(os.uname().machine):
        return None
    versions = Path(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions")
    number = python.rstrip("t")
    free = python != number
    installed = sorted(versions.glob(f"{number}.*{'t' if free else '[0-9]'}/bin/python{python}"))
    for candidate in [shutil.which(f"python{python}"), *map(str, reversed(installed))]:
        if candidate and _is(candidate, number, free):
            return candidate
    return None


def _is(candidate: str, number: str, free: bool) -> bool:
    code = (
        "import sys, sysconfig as s; "
        "print('%d.%d' % sys.version_info[:2], bool(s.get_config_var('Py_GIL_DISABLED')))"
    )
    try:
        done = subprocess.run([candidate, "-c", code], capture_output=True, text=True)
    except OSError:
        return False
    return done.stdout.split() == [number, str(free)]
