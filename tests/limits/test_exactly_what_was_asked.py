"""Exactly what was asked, while workers are killed: every time that something is begun is a line
of a file, and the lines are compared with what was promised.

A line is one write to a file that is appended to, before anything else is done: a process that is
killed has either written it or not.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter, defaultdict

import oxiray as ray
import pytest
from oxiray.exceptions import RayActorError, WorkerCrashedError

LONG = os.environ.get("OXIRAY_TEST_LONG") == "1"
ROUNDS = 60 if LONG else 5
CALLS = 40


def note(path, *words):
    """One line: who, what, in which process."""
    line = " ".join(map(str, (*words, os.getpid()))) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        assert os.write(descriptor, line.encode()) == len(line)
    finally:
        os.close(descriptor)


def noted(path):
    """The lines, as words."""
    with open(path) as file:
        return [line.split() for line in file]


@ray.remote
def work(path, name):
    note(path, "task", name)
    time.sleep(0.002)
    return name


@ray.remote
def items(path, name, count):
    note(path, "stream", name)
    for item in range(count):
        time.sleep(0.001)
        yield name, item


@ray.remote(num_cpus=0, max_restarts=-1)
class Callee:
    def call(self, path, who, number):
        note(path, who, number)
        time.sleep(0.001)
        return number


def kill_one(dice, path):
    """A process that has written a line lately; it may have gone meanwhile."""
    lines = noted(path)[-60:] if os.path.exists(path) else []
    if lines:
        try:
            os.kill(int(dice.choice(lines)[-1]), signal.SIGKILL)
        except ProcessLookupError:
            pass


def outcome(ref):
    """The value, or None: it failed because a process died."""
    try:
        return ray.get(ref, timeout=120)
    except (WorkerCrashedError, RayActorError):
        return None


@pytest.mark.timeout(1800 if LONG else 300)
def test_tasks_calls_and_items_are_begun_as_often_as_was_asked(fresh, tmp_path):
    fresh(num_cpus=3)
    dice = random.Random(15)
    once = Callee.options(max_task_retries=0).remote()
    again = Callee.options(max_task_retries=-1).remote()
    path = str(tmp_path / "lines")
    retries, values, kills = {}, {}, 0
    for batch in range(ROUNDS):
        refs = {}
        for number in range(batch * CALLS, (batch + 1) * CALLS):
            most = retries[f"{number}"] = dice.choice((0, 1, 3))
            refs["task", f"{number}"] = work.options(max_retries=most).remote(path, f"{number}")
            refs["once", f"{number}"] = once.call.remote(path, "once", number)
            refs["again", f"{number}"] = again.call.remote(path, "again", number)
            if dice.random() < 0.1:
                kill_one(dice, path)
                kills += 1
        streams = [
            items.options(max_retries=-1).remote(path, f"{batch}-{which}", 30) for which in range(3)
        ]
        for which, stream in enumerate(streams):
            read = []
            for ref in stream:
                read.append(tuple(ray.get(ref, timeout=120)))
                if dice.random() < 0.03:
                    kill_one(dice, path)
                    kills += 1
            assert read == [(f"{batch}-{which}", item) for item in range(30)], "each item once"
        values.update({key: outcome(ref) for key, ref in refs.items()})
    lines = noted(path)
    begun = Counter((who, what) for who, what, _ in lines)
    assert kills > 5 and max(begun.values()) > 1, "something was killed, and begun again"
    for (who, name), value in values.items():
        times = begun[who, name]
        if who == "task":
            assert times <= 1 + retries[name], f"task {name} was begun {times} times"
            assert value == (name if value is not None else None)
        elif who == "once":
            assert times <= 1, f"call {name} was begun {times} times"
        assert times >= 1 or value is None, f"{who} {name} has a value and was not begun"
        assert who != "again" or value == int(name), "calls with retries all have their values"
    check_incarnations(lines)


def check_incarnations(lines):
    """One incarnation begins a call once, and the calls of one caller in their order."""
    calls = defaultdict(list)
    for who, what, pid in lines:
        if who in ("once", "again"):
            calls[who, pid].append(int(what))
    assert len(calls) > 2, "there were several incarnations"
    for (who, pid), numbers in calls.items():
        assert numbers == sorted(set(numbers)), f"{who} in process {pid}: {numbers}"


def test_the_lines_of_something_else_are_told_from_it():
    check_incarnations([["once", "1", "7"], ["once", "2", "8"], ["again", "1", "9"]])
    for wrong in (["once", "1", "7"], ["once", "0", "7"]):
        with pytest.raises(AssertionError, match="in process 7"):
            check_incarnations([["once", "1", "7"], wrong, ["once", "2", "8"], ["again", "1", "9"]])
