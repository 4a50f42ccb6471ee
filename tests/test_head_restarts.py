"""The head's control service is killed, and its store fails, under load: nobody's work notices.

Redis is a real one, of Debian's package `redis-server`, on a port of its own. Without it, those
tests are skipped; with CI set that is an error.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from conftest import BASE, is_alive, processes_under, wait_until
from machines import NOTHING_RUNS, Machine, finish

SMALL = ("--num-cpus=2", "--num-gpus=0", f"--object-store-memory={80 * 2**20}")
PASSWORD = "not/to-be.seen"
PASSWORD_IN_URL = "not%2Fto-be.seen"
KILLS = 20
# Seconds without a finished operation. The first is what users are promised; the second is there
# to tell a stall from a busy machine.
LONGEST_STALL = 2.0
LONGEST_GAP = 1.5


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Redis:
    """A server that keeps nothing on disk, with a directory of its own."""

    def __init__(self, password="", tls=None):
        self.folder = tempfile.mkdtemp(prefix="redis-", dir="/tmp")
        self.port = free_port()
        self.at = f"127.0.0.1:{self.port}"
        secret = f":{PASSWORD_IN_URL}@" if password else ""
        self.url = f"{'rediss' if tls else 'redis'}://{secret}{self.at}/0"
        self.arguments = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self.arguments += ["--dir", self.folder, "--daemonize", "no"]
        if tls:
            self.arguments += ["--port", "0", "--tls-port", str(self.port)]
            self.arguments += ["--tls-cert-file", tls[0], "--tls-key-file", tls[1]]
            self.arguments += ["--tls-auth-clients", "no"]
        else:
            self.arguments += ["--port", str(self.port)]
        if password:
            self.arguments += ["--requirepass", password]
        self.process = None
        self.start()

    def start(self):
        # It ends with this program, however that ends.
        prefix = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        self.process = subprocess.Popen(
            [*prefix, "redis-server", *self.arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self.answers, 20, "Redis starts")

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        """With all that it has."""
        self.process.kill()
        self.process.wait()

    def end(self):
        self.kill()
        shutil.rmtree(self.folder)


@pytest.fixture
def redis():
    """Starts servers."""
    if not shutil.which("redis-server"):
        missing = "redis-server is not installed: apt-get install redis-server"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    servers = []

    def start(**options):
        servers.append(Redis(**options))
        return servers[-1]

    yield start
    for server in servers:
        server.end()


@pytest.fixture
def machine():
    """Makes machines, which are all at 127.0.0.1."""
    machines = []

    def make():
        machines.append(Machine())
        return machines[-1]

    yield make
    trouble = []
    for one in reversed(machines):
        try:
            one.end()
        except BaseException as error:
            trouble.append(error)
    assert not trouble, trouble


def start_control_again(head):
    port = head.address.rpartition(":")[2]
    head("start", "--head", f"--port={port}", *SMALL)


def kill_control(head):
    pid = head.pid("control_pid")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), 10, "the control service is dead")


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


# A driver with all kinds of work at once, until its standard input ends. It prints when operations
# finished, and what went wrong.
LOAD = """
import json, os, sys, threading, time, traceback, uuid
from collections import deque

import oxiray as ray

given = json.loads(sys.argv[1])
ray.init(address=given["address"], namespace="load", logging_level="error")
stop = threading.Event()
finished = {"tasks": [], "calls": [], "names": [], "lookups": []}
errors = []


def note(kind):
    finished[kind].append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))


def runs(kind):
    def wrap(step):
        def run():
            try:
                number = 0
                while not stop.is_set():
                    number += 1
                    step(number)
                    note(kind)
            except BaseException:
                errors.append(f"{kind}: {traceback.format_exc()}")

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    return wrap


@ray.remote(scheduling_strategy="SPREAD")
def square(i):
    time.sleep(0.005)
    return i * i, ray.get_runtime_context().get_node_id()


@ray.remote(num_cpus=0)
class Counter:
    def __init__(self):
        self.count = 0

    def add(self):
        self.count += 1
        return self.count, os.getpid()


@ray.remote(num_cpus=0, scheduling_strategy="SPREAD")
class Kept:
    def __init__(self, name, made):
        self.who = f"{name} {os.getpid()} {uuid.uuid4().hex}"
        with open(made, "a") as file:
            file.write(self.who + "\\n")

    def instance(self):
        return self.who


counter = Counter.options(name="counter", scheduling_strategy="SPREAD").remote()
pid = ray.get(counter.add.remote())[1]
tasks, calls, kept, used = deque(), deque(), {}, set()


@runs("tasks")
def tasks_thread(number):
    tasks.append(square.remote(number))
    if len(tasks) > 8:
        value, node = ray.get(tasks.popleft(), timeout=30)
        assert value == (number - 8) ** 2, (number, value)
        used.add(node)


@runs("calls")
def calls_thread(number):
    calls.append(counter.add.remote())
    if len(calls) > 4:
        got = ray.get(calls.popleft(), timeout=30)
        assert got == (number - 4 + 1, pid), (number, got, pid)
    time.sleep(0.002)


@runs("names")
def names_thread(number):
    name = f"n{number}"
    actor = Kept.options(name=name, lifetime="detached").remote(name, given["made"])
    found = ray.get_actor(name)
    who = ray.get(found.instance.remote(), timeout=30)
    assert who == ray.get(actor.instance.remote(), timeout=30)
    if number % 8 == 1:
        kept[name] = who
    else:
        ray.kill(actor)


@runs("lookups")
def lookups_thread(number):
    assert ray.get_actor("counter")._actor_id == counter._actor_id
    time.sleep(0.01)


print("ready", flush=True)
sys.stdin.read()
stop.set()
for thread in (tasks_thread, calls_thread, names_thread, lookups_thread):
    thread.join()
try:
    ray.get(list(tasks), timeout=30)
    last = ray.get(counter.add.remote(), timeout=30)
    expected = 1 + len(finished["calls"]) + 1
    assert errors or last == (expected, pid), (last, expected, pid)
    for name, who in kept.items():
        found = ray.get_actor(name)
        assert ray.get(found.instance.remote(), timeout=30) == who, (name, who)
        ray.kill(found)
except BaseException:
    errors.append(traceback.format_exc())
nodes = {node["NodeID"]: node["Alive"] for node in ray.nodes()}
text = {"finished": finished, "errors": errors, "nodes": nodes, "used": sorted(used)}
print(json.dumps({**text, "kept": len(kept)}))
"""

# A driver that comes and goes.
VISIT = """
import json, sys
import oxiray as ray

ray.init(address=sys.argv[1], namespace="load", logging_level="error")
counter = ray.get_actor("counter")
assert ray.get(ray.remote(lambda: 5).remote(), timeout=30) == 5
assert len([node for node in ray.nodes() if node["Alive"]]) == 3
"""


class Visitors:
    """New drivers, one after the other, on all nodes in turn."""

    def __init__(self, machines):
        self.machines = itertools.cycle(machines)
        self.address = machines[0].address
        self.count = 0
        self.error = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            while not self.over.is_set():
                next(self.machines).run_program(VISIT, self.address)
                self.count += 1
                self.over.wait(0.5)
        except BaseException as error:
            self.error = error

    def end(self):
        self.over.set()
        self.thread.join()


def longest_gap(times, begin, end):
    """The longest time within these bounds in which nothing was finished, in seconds."""
    marks = [begin, *(at for at in times if begin < at < end), end]
    return max(b - a for a, b in itertools.pairwise(marks)) / 1e9


def kill_and_start(head, number, dice):
    """Kills the control service `number` times at random moments: when each, and when it ran again.

    One in four comes when nodes have hardly begun to come back.
    """
    times = []
    for _ in range(number):
        killed = now_ns()
        kill_control(head)
        start_control_again(head)
        times.append((killed, now_ns()))
        time.sleep(dice.uniform(0, 0.1) if dice.random() < 0.25 else dice.uniform(0.4, 0.9))
    return times


@pytest.mark.slow
@pytest.mark.parametrize("store", ["redis", "file"])
def test_the_control_service_is_killed_twenty_times(store, request, machine, tmp_path, capsys):
    url = request.getfixturevalue("redis")(password=PASSWORD).url if store == "redis" else ""
    head, *others = (machine() for _ in range(3))
    head.start_head(*SMALL, *([f"--store={url}"] if url else []))
    for other in others:
        other.join(head, *SMALL)
    machines = [head, *others]
    ids = {one.node_id for one in machines}
    made = tmp_path / "made"
    load = head.start_program(LOAD, json.dumps({"address": head.address, "made": str(made)}))
    visitors = None
    try:
        assert load.stdout.readline() == "ready\n", load.communicate()[1]
        visitors = Visitors(machines)
        time.sleep(0.5)
        kills = kill_and_start(head, KILLS, random.Random(19))
        time.sleep(2 * LONGEST_STALL)
    finally:
        if visitors:
            visitors.end()
        said = json.loads(finish(load, 60))
    assert not said["errors"], "\n".join(said["errors"])
    assert visitors.error is None and visitors.count >= 3, visitors.error
    # Nobody was lost, and nobody came back as another.
    assert said["nodes"] == dict.fromkeys(ids, True)
    assert {one.node_id for one in machines} == ids and set(said["used"]) == ids

    # Every actor was made once: the names were all different.
    lines = made.read_text().split("\n")[:-1]
    names = [line.split()[0] for line in lines]
    assert len(names) == len(set(names)) >= KILLS and said["kept"] > 0
    assert len({line.split()[2] for line in lines}) == len(lines)

    ends = [killed for killed, _ in kills[1:]] + [kills[-1][1] + int(2e9 * LONGEST_STALL)]
    stalls, away = [], []
    for (killed, again), end in zip(kills, ends, strict=True):
        away.append((again - killed) / 1e9)
        gaps = [longest_gap(said["finished"][kind], killed, end) for kind in ("names", "lookups")]
        stalls.append(max(gaps))
    whole = (kills[0][0], ends[-1])
    gaps = {kind: longest_gap(said["finished"][kind], *whole) for kind in ("tasks", "calls")}
    with capsys.disabled():
        print(
            f"\n{store}: {KILLS} kills, stalls: longest {max(stalls):.2f} s, median "
            f"{statistics.median(stalls):.2f} s; control away: longest {max(away):.2f} s, median "
            f"{statistics.median(away):.2f} s; gaps: tasks {gaps['tasks']:.2f} s, calls "
            f"{gaps['calls']:.2f} s; done: {({k: len(v) for k, v in said['finished'].items()})}, "
            f"{visitors.count} drivers"
        )
    assert max(stalls) < LONGEST_STALL, stalls
    assert max(gaps.values()) < LONGEST_GAP, gaps
