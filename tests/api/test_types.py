"""Type checkers know the API, under both names: `tests/typed/sample.py` has what they must know."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[1] / "typed" / "sample.py"
PYTHON = Path(__file__).parents[2] / "python"


def written(name, directory):
    """The sample, as a program that imports `name`."""
    text = SAMPLE.read_text()
    if name == "ray":
        text = text.replace("import oxiray as ray", "import ray").replace("from oxiray", "from ray")
    path = directory / "sample.py"
    path.write_text(text)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oxiray", "ray"])
def test_mypy(name, tmp_path):
    pytest.importorskip("mypy")
    options = [
        "--strict",
        "--follow-imports=silent",  # What is asked of the package itself, `make check` asks.
        "--no-incremental",
        "--config-file",
        "",
        "--cache-dir",
        tmp_path / "cache",
    ]
    path = f"{PYTHON}:{PYTHON / 'oxiray-as-ray' / 'src'}"
    result = subprocess.run(
        [sys.executable, "-m", "mypy", *options, written(name, tmp_path)],
        env={"MYPYPATH": path, "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert result.returncode == 0, result.stdout + result.stderr
