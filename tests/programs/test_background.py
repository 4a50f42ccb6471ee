"""The tests themselves, started as a background job starts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def ignore():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_programs_that_tests_start_hear_signals_all_the_same():
    """`nohup make test &` ignores two signals, and every program inherits that."""
    environment = {key: value for key, value in os.environ.items() if key != "OXIRAY_TMPDIR"}
    tests = [str(TESTS / "api/test_lifetime.py"), "-k", "interrupt_in_get or test_a_signal"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        env=environment,
        cwd=TESTS.parent,
        preexec_fn=ignore,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert run.returncode == 0, run.stdout + run.stderr
