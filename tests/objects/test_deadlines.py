"""A deadline holds whatever is waited for on the way: room in the store, the disk, the node."""

from __future__ import annotations

import os
import signal
import time

import oxiray as ray
import pytest
from oxiray.exceptions import GetTimeoutError
from storehouse import MB, STORE, blob

# Of the store's patience with who wants room (30 s), less than half.
SOON = 14.0


@pytest.fixture
def full(fresh, tmp_path):
    """Objects of which some are on disk, and a store full of what is looked at."""
    fresh(object_store_memory=STORE, object_spilling_directory=str(tmp_path / "spill"))
    refs = [ray.put(blob(number, 16 * MB)) for number in range(8)]
    looks = []
    for index, ref in enumerate(refs):
        began = time.monotonic()
        try:
            looks.append(ray.get(ref, timeout=1))
        except GetTimeoutError:
            assert time.monotonic() - began < SOON
            return index, ref, looks
    pytest.fail("all of it was looked at, in a store that is smaller")


def test_get_does_not_wait_longer_for_room(full):
    index, ref, looks = full
    began = time.monotonic()
    with pytest.raises(GetTimeoutError):
        ray.get([ref, ref], timeout=0.5)
    assert time.monotonic() - began < SOON
    # Who is in time gets it.
    looks.clear()
    assert (ray.get(ref, timeout=60) == blob(index, 16 * MB)).all()


def service():
    """The process id of the node service of this program's session."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(") ")
        except OSError:
            continue
        if name == "oxirayd" and int(rest.split()[1]) == os.getpid():
            return int(pid)
    return pytest.fail("no node service")


def test_get_does_not_wait_longer_for_a_silent_node(full):
    _, ref, looks = full
    looks.clear()
    pid = service()
    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(GetTimeoutError):
            ray.get(ref, timeout=0.5)
        ready, rest = ray.wait([ref, ray.remote(lambda: 1).remote()], num_returns=2, timeout=0.5)
        assert (len(ready), len(rest)) == (1, 1)
        assert time.monotonic() - began < SOON
    finally:
        os.kill(pid, signal.SIGCONT)
    assert ray.get(ref, timeout=60).nbytes == 16 * MB
