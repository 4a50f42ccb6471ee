"""Sessions that have ended, looked at afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import oxiray
import pytest
from conftest import processes_under, wait_until

PROGRAM = os.path.join(os.path.dirname(oxiray.__file__), "_bin", "oxiray")
NOTHING_RUNS = 3

WORK = """
import os, sys, time
import oxiray as ray
context = ray.init(num_cpus=2, logging_level="error", log_to_driver=False)

@ray.remote
def speak(i):
    print("said", i)
    return i

@ray.remote(max_retries=0)
def fail():
    raise ValueError("what went wrong")

@ray.remote
class Counter:
    def add(self):
        return 1

counter = Counter.remote()
assert ray.get(counter.add.remote()) == 1
assert ray.get([speak.remote(i) for i in range(5)]) == list(range(5))
try:
    ray.get(fail.remote())
except ValueError:
    pass
print(context["session_dir"], flush=True)
"""


@pytest.fixture
def kept(driver):
    """Runs programs whose sessions are kept, and commands that look at them."""
    yield Kept(driver)
    shutil.rmtree(driver.base)


class Kept:
    def __init__(self, driver):
        self.driver = driver
        self.base = driver.base

    def program(self, rest="", many=10, **options):
        env = {"OXIRAY_KEEP_SESSIONS": str(many)}
        process = self.driver.start(WORK + rest, env=env, **options)
        directory = process.stdout.readline().strip()
        assert directory, process.stderr.read()
        return process, directory

    def run(self, rest="", many=10):
        process, directory = self.program(rest, many)
        _, err = process.communicate(timeout=60)
        self.ended()
        return directory, err

    def ended(self):
        wait_until(lambda: not processes_under(self.base), 10, "all of it ends")

    def __call__(self, *arguments, code=0, **env):
        done = subprocess.run(
            [PROGRAM, *arguments],
            env={**os.environ, "OXIRAY_TMPDIR": self.base, **env},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def rows(self, *arguments):
        return json.loads(self(*arguments, "--format", "json"))


def test_the_last_session_can_be_looked_at_after_its_end(kept, tmp_path):
    directory, _ = kept.run()
    name = os.path.basename(directory)
    assert sorted(os.listdir(directory)) == ["events", "lock", "logs", "record"]
    for which in (("--session", "last"), ("--session", name), ("--address", directory)):
        tasks = kept.rows("list", "tasks", *which)
        states = sorted((task["name"], task["state"]) for task in tasks)
        assert states.count(("speak", "FINISHED")) == 5 and ("fail", "FAILED") in states, states
    last = ("--session", "last")
    (failed,) = kept.rows("list", "tasks", *last, "--filter", "state=FAILED")
    assert "what went wrong" in kept("get", "tasks", failed["task_id"], *last)
    assert "speak" in kept("summary", "tasks", *last)
    assert [actor["class_name"] for actor in kept.rows("list", "actors", *last)] == ["Counter"]
    assert len(kept.rows("list", "jobs", *last)) == 1
    assert kept.rows("list", "workers", *last) and len(kept.rows("list", "nodes", *last)) == 1
    assert kept.rows("list", "objects", *last) == []

    files = kept("logs", *last)
    assert "oxirayd.log" in files and "worker-" in files
    speaker = next(task for task in kept.rows("list", "tasks", *last) if task["name"] == "speak")
    assert "said" in kept("logs", "--task-id", speaker["task_id"], *last)
    assert "session ended" in kept("logs", "oxirayd.log", *last)

    trace = tmp_path / "trace.json"
    kept("timeline", "-o", str(trace), *last)
    assert "speak" in {event.get("name") for event in json.loads(trace.read_text())}

    assert "none of its processes" in kept("stack", *last, code=NOTHING_RUNS)
    assert "no Oxiray session" in kept("list", "tasks", code=NOTHING_RUNS)
    assert kept("list", "sessions") == f"ENDED    {name}\n"


def test_it_is_said_that_it_has_ended(kept):
    directory, _ = kept.run()
    done = subprocess.run(
        [PROGRAM, "list", "tasks", "--session", "last"],
        env={**os.environ, "OXIRAY_TMPDIR": kept.base},
        capture_output=True,
        text=True,
    )
    assert f"{os.path.basename(directory)} has ended: this is what it left" in done.stderr


def test_only_the_last_ones_are_kept(kept):
    directories = [kept.run(many=3)[0] for _ in range(5)]
    assert [os.path.exists(directory) for directory in directories] == [False] * 2 + [True] * 3
    assert kept("list", "sessions").count("ENDED") == 3
    assert kept("list", "tasks", "--session", "last")
    kept.run(many=0)
    assert os.listdir(kept.base) == [], "none is kept when none is wanted"
    assert "OXIRAY_KEEP_SESSIONS" in kept("logs", "--session", "last", code=NOTHING_RUNS)


@pytest.mark.parametrize("who", ["driver", "oxirayd", "both"])
def test_one_that_was_killed_is_kept_as_well(kept, who):
    process, directory = kept.program("time.sleep(600)")
    (service,) = [
        pid for pid, line in processes_under(kept.base).items() if "oxirayd" in line.split()[0]
    ]
    victims = {"driver": [process.pid], "oxirayd": [service], "both": [process.pid, service]}
    for pid in victims[who]:
        os.kill(pid, signal.SIGKILL)
    if who == "oxirayd":
        process.terminate()
    process.communicate()
    kept.ended()
    # The next one puts it in order; it ends later, so the killed one is the last but one.
    kept.run("")
    assert os.path.isdir(f"{directory}/logs") and not os.path.exists(f"{directory}/node.sock")
    tasks = kept.rows("list", "tasks", "--session", os.path.basename(directory))
    assert [task["state"] for task in tasks].count("FINISHED") >= 5, tasks


def test_a_running_session_is_not_taken_for_one_that_ended(kept):
    process, directory = kept.program("sys.stdin.read()", stdin=subprocess.PIPE)
    assert "no session that has ended" in kept("logs", "--session", "last", code=NOTHING_RUNS)
    assert kept("list", "sessions") == f"RUNNING  {os.path.basename(directory)}\n"
    assert kept.rows("list", "tasks", "--session", os.path.basename(directory))
    process.communicate()


def test_in_python_too(kept):
    kept.run()
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from oxiray.util.state import list_tasks; print(len(list_tasks(address='last')))",
        ],
        env={**os.environ, "OXIRAY_TMPDIR": kept.base},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "8", done
