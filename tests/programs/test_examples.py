"""Every example runs, and its last line says what it should.

Those that need TensorFlow run in `make test-tf`, those that need PyTorch where it is installed.
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

EXAMPLES = Path(__file__).parents[2] / "examples"
slow = pytest.mark.slow

# Example, what its last line is, as a regular expression.
CORE = [
    ("tutorial_1_tasks", r"squares: \[0, 1, 4, 9\]"),
    ("tutorial_2_dependencies", r"below their mean: 499679, above: 500321"),
    ("tutorial_3_nested", r"best degree: 3"),
    ("tutorial_4_actors", r"Ada has 150, Bob has 125"),
    ("tutorial_5_handles", r"20 reports from 4 tasks"),
    ("tutorial_6_wait", r"frames rendered: 30"),
    ("monte_carlo_pi", r"pi is about 3\.140764"),
    ("fibonacci", r"Fibonacci number 20000 ends in 093125"),
    ("image_pipeline", r"8 thumbnails of 64x48, the same both ways"),
    ("tree_reduce", r"8! = 40320"),
    ("parameter_server", r"accuracy on new data after 150 updates: 0\.9\d"),
    ("hyperparameter_sweep", r"best of 16: width \d+, accuracy (0\.9\d\d|1\.000)"),
    ("evolution_strategies", r"balanced to the end in (1[5-9]|20) of 20 new episodes"),
    ("progress_bars", r"4 jobs, 240 steps"),
    ("word_count", r"99 words, 240000 in all; most frequent: the"),
    ("serialization", r"get was faster than loads for [1-8] of 8 kinds of values"),
]
TENSORFLOW = [
    ("average_weights_tensorflow", r"the averaged net is better than at first"),
    ("lenet_digits", r"accuracy on 297 new digits: 0\.[89]\d"),
]
CAFFE = [
    ("caffe_nets", r"means after three blurs: 1\.000 1\.000 1\.000"),
    ("caffe2_blobs", r"blobs: sums table total: 7999998000000"),
]
TORCH = [("average_weights_torch", r"the averaged net is better than at first")]

# Under a second; the others are left out by `make quick`.
QUICK = {"tutorial_4_actors", "fibonacci", "evolution_strategies", "word_count"}


def check(name, last_line, directory, timeout):
    """Runs the example as a user would, in a directory of its own."""
    driver = Driver(directory)
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        env={**os.environ, "OXIRAY_TMPDIR": driver.base, "PYTHONIOENCODING": "utf-8"},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    assert re.fullmatch(last_line, result.stdout.splitlines()[-1]), result.stdout
    driver.clean()


def need(*modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")


@pytest.mark.parametrize(
    ("name", "last_line"),
    [pytest.param(*case, id=case[0], marks=() if case[0] in QUICK else slow) for case in CORE],
)
def test_core(name, last_line, tmp_path):
    need("numpy", "PIL")
    check(name, last_line, tmp_path, timeout=100)


@slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "last_line"), TENSORFLOW, ids=[case[0] for case in TENSORFLOW])
def test_tensorflow(name, last_line, tmp_path):
    need("tensorflow", "sklearn")
    check(name, last_line, tmp_path, timeout=280)


@slow
@pytest.mark.parametrize(("name", "last_line"), CAFFE, ids=[case[0] for case in CAFFE])
def test_caffe(name, last_line, tmp_path):
    need("caffe", "cv2")
    check(name, last_line, tmp_path, timeout=100)


@slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "last_line"), TORCH, ids=[case[0] for case in TORCH])
def test_torch(name, last_line, tmp_path):
    need("torch", "numpy")
    check(name, last_line, tmp_path, timeout=280)


def test_every_example_is_tested_and_in_the_index():
    names = {path.stem for path in EXAMPLES.glob("*.py")} - {"demo"}
    assert names == {name for name, _ in CORE + TENSORFLOW + CAFFE + TORCH}
    index = (EXAMPLES / "README.md").read_text()
    assert not [name for name in {*names, "demo"} if f"({name}.py)" not in index]
