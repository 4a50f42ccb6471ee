"""Control groups for tests: a tree of files that says what a test wants, and real ones."""

from __future__ import annotations

import contextlib
import os
import time

import pytest

ROOT = "/sys/fs/cgroup"
# What the files of version 1 and of version 2 are called.
LIMIT = ("memory.limit_in_bytes", "memory.max")
USED = ("memory.usage_in_bytes", "memory.current")


def own_group(controller):
    """Which version has the controller, and the path of this process's group there."""
    two = "/"
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controller in controllers.split(","):
                return 1, path.strip("/")
            if not controllers:
                two = path.strip("/")
    return 2, two


class FakeGroup:
    """A tree at which `OXIRAY_CGROUP_ROOT` points: this process's group has the memory that the
    program says, and uses as much as it says."""

    def __init__(self, root):
        version, path = own_group("memory")
        folder = root / "memory" / path if version == 1 else root / path
        folder.mkdir(parents=True)
        if version == 2:
            (root / "cgroup.controllers").write_text("cpu memory\n")
        self.env = {
            "OXIRAY_CGROUP_ROOT": str(root),
            "MEMORY_LIMIT": str(folder / LIMIT[version - 1]),
            "MEMORY_USED": str(folder / USED[version - 1]),
        }


# For programs. What the kernel would say is a number in a file: as a link to the `oom_score_adj` of
# a worker, which is 500, it is there for as long as that worker is, and not a moment longer.
PRELUDE = """
import os, time

def say(name, text):
    with open(os.environ[name] + ".new", "w") as file:
        file.write(text)
    os.replace(os.environ[name] + ".new", os.environ[name])

def be_short_while_there_is(pid):
    say("MEMORY_LIMIT", "515")
    os.symlink(f"/proc/{pid}/oom_score_adj", os.environ["MEMORY_USED"] + ".new")
    os.replace(os.environ["MEMORY_USED"] + ".new", os.environ["MEMORY_USED"])
"""


@contextlib.contextmanager
def _group(above, files):
    folder = os.path.join(above, f"oxiray-test-{os.getpid()}")
    try:
        os.mkdir(folder)
        for name, value in files.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(str(value))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield folder
    finally:
        for _ in range(200):
            try:
                os.rmdir(folder)
                break
            except OSError:  # the last of its processes is about to go
                time.sleep(0.05)


@contextlib.contextmanager
def real_group(limit):
    """A group below this process's own whose processes may have so much memory: its folder."""
    version, path = own_group("memory")
    above = os.path.join(ROOT, "memory", path) if version == 1 else os.path.join(ROOT, path)
    with _group(above, {LIMIT[version - 1]: limit}) as folder:
        yield folder


@contextlib.contextmanager
def pids_group(most):
    """A group below this process's own that may have so many processes and threads: its folder."""
    version, path = own_group("pids")
    above = os.path.join(ROOT, "pids", path) if version == 1 else os.path.join(ROOT, path)
    with _group(above, {"pids.max": most}) as folder:
        yield folder
