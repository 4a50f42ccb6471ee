"""What all tests share: a session to use, driver programs to run, and a check that nothing is left.

Every session of this test run lives under one OXIRAY_TMPDIR, by which leftovers are found.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import pytest
from rendezvous import Gate, Meeting

# Short: the path of a Unix socket may have 107 bytes. A worker that imports this, because a test's
# function refers to it, is in the run that started it.
_PREFIX = "/tmp/oxt-"
BASE = os.environ.get("OXIRAY_TMPDIR", "")
if not BASE.startswith(_PREFIX):
    BASE = os.environ["OXIRAY_TMPDIR"] = tempfile.mkdtemp(
        prefix=os.path.basename(_PREFIX), dir="/tmp"
    )

# Nothing stays of a session, unless a test is about that.
os.environ["OXIRAY_KEEP_SESSIONS"] = "0"

import oxiray as ray  # noqa: E402


def pytest_configure():
    """Programs that tests start have the default signals, even under `nohup make test &`.

    There SIGHUP and SIGINT are ignored, which every program inherits; a handler is not inherited,
    and one that does nothing leaves this process as deaf as it was.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def wait_until(condition, timeout=20.0, message=""):
    """Returns what `condition` returns once it is true."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            pytest.fail(f"not within {timeout} s: {message or condition.__name__}")
        time.sleep(0.01)


def processes_under(base):
    """The processes, by pid, that were started for sessions under `base`."""
    found = {}
    mark = f"OXIRAY_TMPDIR={base}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        # The test run itself has the variable only in Python's copy of its environment.
        if mark in environment and state != "Z" and int(pid) != os.getpid():
            found[int(pid)] = command
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left():
    """After all tests: no process, no session directory."""
    yield
    ray.shutdown()
    wait_until(lambda: not processes_under(BASE), 10, f"processes end: {processes_under(BASE)}")
    left = os.listdir(BASE)
    shutil.rmtree(BASE, ignore_errors=True)
    assert not left, f"session directories are left: {left}"


@pytest.fixture(scope="module")
def cluster():
    """A session with four CPUs for the tests of a module."""
    ray.shutdown()
    ray.init(num_cpus=4, num_gpus=2, resources={"tool": 2}, logging_level="error")
    yield ray
    ray.shutdown()


@pytest.fixture
def fresh():
    """`init` for a test that wants a session of its own."""
    ray.shutdown()

    def init(**options):
        options.setdefault("num_cpus", 2)
        return ray.init(logging_level="error", **options)

    yield init
    ray.shutdown()


@pytest.fixture
def driver(tmp_path):
    """Runs a program as a driver of its own: `driver(source)`, or `driver.start(source)`."""
    return Driver(tmp_path)


class Driver:
    def __init__(self, directory):
        self.directory = directory
        self.base = tempfile.mkdtemp(prefix="d-", dir=BASE)

    def start(self, source, *, env=None, **options):
        """The running program, its output in pipes."""
        path = self.directory / "program.py"
        path.write_text(textwrap.dedent(source))
        return subprocess.Popen(
            [sys.executable, "-u", str(path)],
            env={**os.environ, "OXIRAY_TMPDIR": self.base, **(env or {})},
            cwd=options.pop("cwd", self.directory),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def __call__(self, source, *, check=True, timeout=60, **options):
        """The finished program: returncode, stdout, stderr."""
        process = self.start(source, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"the program did not end; it printed\n{out}\n{err}")
        if check and process.returncode != 0:
            pytest.fail(f"the program ended with {process.returncode}; it printed\n{out}\n{err}")
        self.clean()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def clean(self):
        """Nothing of the program is left; then its directory goes."""
        wait_until(
            lambda: not processes_under(self.base), 10, f"left: {processes_under(self.base)}"
        )
        left = lambda: os.listdir(self.base)  # noqa: E731
        wait_until(lambda: not left(), 10, f"session directories left: {left()}")
        shutil.rmtree(self.base, ignore_errors=True)


@pytest.fixture
def meeting(tmp_path):
    """Lets tasks prove that they run at the same time."""
    return lambda count: Meeting(str(tmp_path), count)


@pytest.fixture
def gate(tmp_path):
    """Tasks wait at it until the test opens it, at the latest when the test ends."""
    gate = Gate(str(tmp_path / "gate"))
    yield gate
    gate.open()
