"""Programs that users handed over pass as they are.

They lie outside of this repository: OXIRAY_ACCEPTANCE names their directory, in which `run PYTHON
[PROGRAM...]` runs all or some, prints a line for each that begins with ok, FAILED or skipped, and
sums up. `make test-tf` runs this, because some need TensorFlow.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Driver


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_of_them_pass(tmp_path):
    directory = os.environ.get("OXIRAY_ACCEPTANCE")
    if not directory:
        pytest.skip("OXIRAY_ACCEPTANCE names no directory with programs")
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs tensorflow: see make test-tf")
    driver = Driver(tmp_path)
    outcome = run(directory, driver)
    # They measure how long they take. Other work on the machine may have been in the way, once.
    again = [name for name, word in outcome.items() if word == "FAILED"]
    if again:
        outcome |= run(directory, driver, *again)
    assert outcome and set(outcome.values()) == {"ok"}, outcome
    driver.clean()


def run(directory, driver, *programs):
    """What became of each program."""
    result = subprocess.run(
        [str(Path(directory) / "run"), sys.executable, *programs],
        env={**os.environ, "OXIRAY_TMPDIR": driver.base, "TMPDIR": str(driver.directory)},
        capture_output=True,
        text=True,
    )
    print(result.stdout, result.stderr)
    words = re.findall(r"^(ok|FAILED|skipped) +(\S+)", result.stdout, re.MULTILINE)
    return {name: word for word, name in words}
