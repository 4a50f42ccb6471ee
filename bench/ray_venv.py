"""Finds or makes the interpreter that has Ray from PyPI, apart from the project's own."""

import os
import subprocess
import sys
from pathlib import Path

RAY_VERSION = "2.60.0"
VENV = Path(__file__).parent / ".venv-ray"

ASK_VERSION = "from importlib.metadata import version; import numpy; print(version('ray'))"


def ray_python() -> str:
    """The interpreter's path; makes the venv at first, which downloads Ray."""
    if chosen := os.environ.get("OXIRAY_BENCH_RAY_PYTHON"):
        return chosen
    python = str(VENV / "bin" / "python")
    if installed_version(python) != RAY_VERSION:
        print(f"installing ray {RAY_VERSION} into {VENV.name} (once)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        # Without the last it has no `pip` environments.
        packages = [f"ray=={RAY_VERSION}", "numpy", "virtualenv"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def installed_version(python: str) -> str | None:
    if not Path(python).exists():
        return None
    asked = subprocess.run([python, "-c", ASK_VERSION], capture_output=True, text=True)
    return asked.stdout.strip() or None
