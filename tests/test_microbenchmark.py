"""`oxiray microbenchmark`: its lines, its options, and its bar at a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

from conftest import Driver
from oxiray import _microbenchmark
from terminal import run_at_terminal, screen

PROGRAM = os.path.join(os.path.dirname(sys.executable), "oxiray")
LINE = re.compile(r"(.+) per second (\d+\.\d\d) \+- (\d+\.\d\d)")


def run(directory, *arguments):
    driver = Driver(directory)
    result = subprocess.run(
        [PROGRAM, "microbenchmark", *arguments],
        env={**os.environ, "OXIRAY_TMPDIR": driver.base},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=100,
    )
    driver.clean()
    return result


def test_all_rows_are_measured(tmp_path):
    result = run(tmp_path, "--quick", "--num-cpus=2", "--json=results.json")
    assert result.returncode == 0, result.stderr
    lines = [LINE.fullmatch(line) for line in result.stdout.splitlines()]
    assert [line[1] for line in lines] == [row.name for row in _microbenchmark.ROWS]
    assert all(float(line[2]) > 0 for line in lines)
    written = json.loads((tmp_path / "results.json").read_text())
    assert [row["name"] for row in written] == [line[1] for line in lines]
    assert set(written[0]) == {"name", "mean", "deviation"}
    assert result.stderr == ""


def test_rows_are_chosen_and_a_wrong_name_is_told(tmp_path):
    result = run(tmp_path, "--quick", "-k", "tasks sync")
    assert [LINE.fullmatch(line)[1] for line in result.stdout.splitlines()] == [
        "single client tasks sync"
    ]
    result = run(tmp_path, "-k", "no such row")
    assert result.returncode == 2 and "single client tasks sync" in result.stderr


def test_a_bar_says_how_far_it_is(driver):
    written = run_at_terminal(
        driver,
        """
        from oxiray import _microbenchmark
        _microbenchmark.main(["--quick", "-k", "single client put"])
        """,
    )
    lines = [line for line in screen(written) if line]
    assert all(LINE.fullmatch(line) for line in lines[:-1]) and len(lines) == 3, lines
    assert lines[-1].startswith("measured: 100%|") and "2/2" in lines[-1]
    assert "measured:   0%|" in written
