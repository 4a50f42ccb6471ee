"""`oxiray microbenchmark`: its lines, its options, and its bar at a terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

from conftest import Driver
from oxiray import _microbenchmark
from terminal import run_at_terminal, screen

PROGRAM = os.path.join(os.path.dirname(sys.executable), "oxiray")
LINE = re.compile(r"(.+) per second (\d+\.\d\d) \+- (\d+\.\d\d)")


def run(directory, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
    driver = Driver(directory)
    result = subprocess.run(
        [PROGRAM, "microbenchmark", *arguments],
        env={**os.environ, "OXIRAY_TMPDIR": driver.base},
        cwd=directory,
        stdout=stdout,
        stderr=stderr,
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


def test_what_cannot_be_is_said_before_anything_is_measured(tmp_path):
    for wrong in ("-3", "0", "many"):
        result = run(tmp_path, f"--num-cpus={wrong}")
        assert (result.returncode, result.stdout) == (2, ""), wrong
        assert "1 or more" in result.stderr and "Traceback" not in result.stderr
    result = run(tmp_path, "--quick", "--json=no/such/file.json")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "oxiray: no/such/file.json cannot be written: No such file or directory\n"
    )


def test_an_output_that_takes_nothing(tmp_path):
    quick = ("--quick", "-k", "put calls", "--json=results.json")
    with open("/dev/full", "w") as full:
        result = run(tmp_path, *quick, stdout=full)
    assert result.returncode == 1
    assert result.stderr == "oxiray: the output cannot be written: No space left on device\n"
    with open("/dev/full", "w") as full:
        result = run(tmp_path, *quick, stdout=full, stderr=full)
        assert result.returncode == 1
        assert run(tmp_path, "-k", "no such row", stderr=full).returncode == 2
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as closed:
        result = run(tmp_path, *quick, stdout=closed)
    assert (result.returncode, result.stderr) == (0, "")
    assert not [path for path in tmp_path.iterdir() if "results" in path.name]


def test_interrupted(tmp_path):
    driver = Driver(tmp_path)
    process = subprocess.Popen(
        [PROGRAM, "microbenchmark", "--json=results.json"],
        env={**os.environ, "OXIRAY_TMPDIR": driver.base},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert LINE.match(process.stdout.readline())
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    driver.clean()
    assert (process.returncode, said) == (130, "")
    assert not [path for path in tmp_path.iterdir() if "results" in path.name]


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
