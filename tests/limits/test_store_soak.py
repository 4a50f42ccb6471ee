"""Many small and 1-MB objects with refs in every place: afterwards nothing is left of them.

Each form runs as a program of its own, see soak.py; OXIRAY_TEST_LONG=1 runs the long one.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import oxiray as ray
import pytest
from conftest import BASE, is_alive, wait_until
from storehouse import expect_empty, workers

LONG = bool(os.environ.get("OXIRAY_TEST_LONG"))
SEED = os.environ.get("OXIRAY_TEST_SEED", "20261116")


@pytest.mark.slow
@pytest.mark.timeout(900 if LONG else 120)
@pytest.mark.parametrize("store", ["300", "80"], ids=["in memory", "with spilling"])
def test_nothing_is_left_and_memory_is_flat(store):
    program = os.path.join(os.path.dirname(__file__), "..", "soak.py")
    amount = ["--full"] if LONG else ["--small", "100000", "--large", "2000"]
    done = subprocess.run(
        [sys.executable, program, *amount, "--seed", SEED, "--store", store],
        env={**os.environ, "OXIRAY_TMPDIR": BASE},
        capture_output=True,
        text=True,
        timeout=900,
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0


def leave_garbage():
    """A reference that nothing but the garbage collector lets go of."""
    gc.collect()
    ring = [ray.put(bytes(1 << 20))]
    ring.append(ring)
    return os.getpid()


def test_surplus_workers_go_though_their_garbage_has_refs(fresh):
    fresh(num_cpus=1)

    @ray.remote
    def nested(depth):
        pid = leave_garbage()
        return [pid, *(ray.get(nested.remote(depth - 1)) if depth else [])]

    assert len(set(ray.get(nested.remote(5)))) == 6
    wait_until(lambda: len(workers()) == 1, message="surplus workers exit")
    ray.get(ray.remote(gc.collect).remote())
    expect_empty()


def test_a_worker_at_its_last_call_goes_though_its_garbage_has_refs(fresh):
    fresh(num_cpus=1)
    pid = ray.get(ray.remote(max_calls=1)(leave_garbage).remote())
    wait_until(lambda: not is_alive(pid))
    expect_empty()
