"""Importing is cheap and brings nothing along."""

from __future__ import annotations

import subprocess
import sys


def run(code):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_import_brings_no_heavy_modules():
    heavy = ("numpy", "asyncio", "concurrent.futures", "logging", "cloudpickle", "typing")
    assert run(f"import sys, oxiray; print([m for m in {heavy!r} if m in sys.modules])") == "[]"


def test_import_takes_less_than_60_ms():
    code = "import time; t = time.perf_counter(); import oxiray; print(time.perf_counter() - t)"
    assert min(float(run(code)) for _ in range(5)) < 0.060


def test_import_prints_nothing_and_starts_nothing():
    code = "import oxiray, threading; print(threading.active_count(), oxiray.is_initialized())"
    assert run(code) == "1 False"


def test_every_public_name_is_there():
    run("import oxiray; [getattr(oxiray, name) for name in oxiray.__all__]")


def test_star_import():
    run("from oxiray import *; assert remote and ObjectRef and nodes")
