"""Queued work that is bounded: `init(max_pending_tasks=)`."""

import os
import subprocess
import sys
import time

import oxiray as ray
import pytest


def test_a_call_waits_until_there_is_room(fresh, gate):
    fresh(max_pending_tasks=3)

    @ray.remote
    def wait(gate):
        gate.wait()

    @ray.remote
    class Counter:
        def __init__(self):
            self.calls = 0

        def add(self):
            self.calls += 1
            return self.calls

    # One that may be started again is remembered for as long as it lives, and is not pending.
    counter = Counter.options(max_restarts=1, num_cpus=0).remote()
    assert ray.get(counter.add.remote()) == 1
    refs = [wait.remote(gate) for _ in range(3)]

    import threading

    opener = threading.Timer(0.3, gate.open)
    opener.start()
    before = time.monotonic()
    refs.append(counter.add.remote())
    assert time.monotonic() - before > 0.2, "the fourth had to wait"
    opener.join()
    assert ray.get(refs)[-1] == 2
    assert sum(ray.get([counter.add.remote() for _ in range(100)])) == sum(range(3, 103))


def test_or_raises(fresh, gate):
    fresh(max_pending_tasks=2, max_pending_tasks_policy="raise")

    @ray.remote
    def wait(gate):
        gate.wait()

    refs = [wait.remote(gate) for _ in range(2)]
    with pytest.raises(ray.exceptions.PendingCallsLimitExceeded, match="max_pending_tasks"):
        wait.remote(gate)
    gate.open()
    ray.get(refs)
    # The answers are there, if nobody has looked at them.
    ray.get(wait.remote(gate))


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"max_pending_tasks": 0}, ValueError, "at least 1"),
        ({"max_pending_tasks": "many"}, TypeError, "a number of tasks"),
        ({"max_pending_tasks": 1, "max_pending_tasks_policy": "drop"}, ValueError, '"block" or'),
    ],
)
def test_wrong_limits(fresh, options, error, says):
    with pytest.raises(error, match=says):
        fresh(**options)


def test_what_the_driver_has_queued_is_seen(fresh, gate):
    """And long arguments take little more than their own length."""
    fresh(num_cpus=1)

    @ray.remote
    def take(gate, argument):
        gate.wait()

    def own_memory():
        with open("/proc/self/statm") as file:
            _, resident, shared, *_ = map(int, file.read().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")

    argument = os.urandom(10_000)
    before = own_memory()
    refs = [take.remote(gate, argument) for _ in range(10_000)]
    grown = own_memory() - before
    assert grown < 10_000 * 12_500, f"{grown / 10_000:.0f} bytes for each"
    command = [os.path.join(os.path.dirname(sys.executable), "oxiray"), "memory", "--stats-only"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert f"of its own (pid {os.getpid()})" in said and "workers" in said, said
    for ref in refs:
        ray.cancel(ref)
    gate.open()
