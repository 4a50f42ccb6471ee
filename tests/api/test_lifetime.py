"""When the driver ends, in any way, everything it started is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import oxiray as ray
import pytest
from conftest import is_alive, processes_under, wait_until

# The promise.
SOON = 2.0

BUSY = """
import os, sys, time
import oxiray as ray
ray.init(num_cpus=3, logging_level="error")

@ray.remote
def spin():
    while True:
        time.sleep(0.1)

@ray.remote
class Actor:
    def pid(self):
        return os.getpid()

actor = Actor.remote()
held = ray.put(b"x" * (20 << 20))
spinning = [spin.remote() for _ in range(2)]
print(ray.get(actor.pid.remote()), flush=True)
sys.stdin.readline()
"""


def start_busy(driver, rest):
    """A program with work under way, and its processes; `rest` is what it does next."""
    process = driver.start(BUSY + rest, stdin=subprocess.PIPE)
    actor = int(process.stdout.readline())
    # Driver, node service, zygote, the actor and two busy workers.
    wait_until(lambda: len(processes_under(driver.base)) >= 6)
    started = processes_under(driver.base)
    assert actor in started
    process.stdin.write("go\n")
    process.stdin.flush()
    return process, started


def gone(driver):
    return not processes_under(driver.base) and not os.listdir(driver.base)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_driver(driver, how):
    shared = set(os.listdir("/dev/shm"))
    process, _ = start_busy(driver, "time.sleep(600)")
    process.send_signal(how)
    process.wait(timeout=20)
    wait_until(lambda: gone(driver), SOON, f"left: {processes_under(driver.base)}")
    assert not {name for name in set(os.listdir("/dev/shm")) - shared if "oxiray" in name}
    process.communicate()
    driver.clean()


@pytest.mark.parametrize(
    "end",
    ["", "sys.exit(3)", "os._exit(4)", "raise RuntimeError('bug')", "ray.shutdown()"],
    ids=["falls off the end", "sys.exit", "os._exit", "exception", "shutdown"],
)
def test_the_driver_ends_by_itself(driver, end):
    process, _ = start_busy(driver, end)
    process.communicate(timeout=30)
    wait_until(lambda: gone(driver), SOON, f"left: {processes_under(driver.base)}")
    driver.clean()


def test_a_killed_node_service_ends_the_workers(driver):
    process, started = start_busy(
        driver,
        "try:\n    ray.get(spinning, timeout=60)\nexcept Exception as e:\n    print(type(e))\n",
    )
    (service,) = [pid for pid, command in started.items() if "oxirayd" in command.split()[0]]
    os.kill(service, signal.SIGKILL)
    others = [pid for pid in started if pid not in (service, process.pid)]
    wait_until(lambda: not any(map(is_alive, others)), SOON, f"of {started}")
    process.communicate(timeout=30)
    driver.clean()


def test_the_next_session_clears_what_a_killed_one_left(driver):
    name = "session_2026-01-01_00-00-00_000000_4194999"  # above any pid
    os.mkdir(os.path.join(driver.base, name), 0o700)
    os.mkdir(os.path.join(driver.base, name, "logs"), 0o700)
    driver("import oxiray as ray; ray.init(num_cpus=1)")


def test_interrupt_in_get_works_at_once(driver):
    process, _ = start_busy(
        driver,
        """
try:
    print("waiting", flush=True)
    ray.get(spinning)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    assert ray.get(ray.put(1)) == 1
""",
    )
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.2)  # let it get into get(); if it is not there yet, the test passes as well
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    assert process.stdout.readline() == "interrupted\n"
    assert time.monotonic() - begin < SOON
    process.communicate(timeout=30)
    assert process.returncode == 0
    driver.clean()


def test_processes_are_few(driver):
    process = driver.start(
        """
        import sys
        import oxiray as ray
        ray.init(num_cpus=2, logging_level="error")
        ray.get([ray.remote(lambda: 1).remote() for _ in range(10)])
        print("ready", flush=True)
        sys.stdin.read()
        """,
        stdin=subprocess.PIPE,
    )
    assert process.stdout.readline() == "ready\n"
    wait_until(lambda: len(processes_under(driver.base)) <= 5)
    process.communicate(timeout=30)
    driver.clean()


def test_what_an_actor_registered_for_its_exit_is_run(cluster, tmp_path):
    @ray.remote
    class Closing:
        def register(self, path):
            import atexit

            atexit.register(lambda: path.write_text("closed"))

        def leave(self):
            ray.actor.exit_actor()

    ends = {
        "handle": lambda actor: None,
        "terminate": lambda actor: actor.__ray_terminate__.remote(),
        "exit": lambda actor: actor.leave.remote(),
    }
    for name, end in ends.items():
        path = tmp_path / name
        actor = Closing.remote()
        ray.get(actor.register.remote(path))
        end(actor)
        del actor
        wait_until(path.exists, message=name)
