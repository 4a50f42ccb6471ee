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
import threading
import time

import pytest
import redis_server
from conftest import is_alive, processes_under, wait_until
from machines import NOTHING_RUNS, Machine, finish
from redis_server import PASSWORD, PASSWORD_IN_URL, free_port

SMALL = ("--num-cpus=2", "--num-gpus=0", f"--object-store-memory={80 * 2**20}")
KILLS = 20
# Seconds without a finished operation. The first is what users are promised; the second is there
# to tell a stall from a busy machine.
LONGEST_STALL = 2.0
LONGEST_GAP = 1.5
# What the control service is asked for.
CONTROLLED = ("names", "lookups", "keys")


redis = redis_server.redis


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


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


# A driver with all kinds of work at once, until its standard input ends. It prints when operations
# finished, and what went wrong.
LOAD = """
import json, os, sys, threading, time, traceback, uuid
from collections import deque

import oxiray as ray
from oxiray.experimental.internal_kv import _internal_kv_get, _internal_kv_put

given = json.loads(sys.argv[1])
ray.init(address=given["address"], namespace="load", logging_level="error")
stop = threading.Event()
finished = {"tasks": [], "calls": [], "names": [], "lookups": [], "keys": []}
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


@runs("keys")
def keys_thread(number):
    # What was there is what was written last.
    before = str(number - 1).encode() if number > 1 else None
    assert _internal_kv_get("count") == before, (number, _internal_kv_get("count"))
    _internal_kv_put("count", str(number))
    time.sleep(0.01)


print("ready", flush=True)
sys.stdin.read()
stop.set()
for thread in (tasks_thread, calls_thread, names_thread, lookups_thread, keys_thread):
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
import sys
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
        if self.error:
            raise self.error


def gaps_during(times, begin, end):
    """How long nothing was finished, each time, for times that touch these bounds; in seconds."""
    pairs = itertools.pairwise(times)
    return [(b - a) / 1e9 for a, b in pairs if b > begin and a < end]


def kill_and_start(head, number, dice):
    """Kills the control service `number` times at random moments: when each, and when it ran again.

    One in four comes when nodes have hardly begun to come back.
    """
    times = []
    for _ in range(number):
        killed = now_ns()
        head.kill_control()
        head.start_control_again(*SMALL)
        times.append((killed, now_ns()))
        time.sleep(dice.uniform(0, 0.1) if dice.random() < 0.25 else dice.uniform(0.3, 0.8))
    return times


@pytest.mark.slow
@pytest.mark.parametrize("store", ["redis", "file"])
def test_the_control_service_is_killed_twenty_times(store, redis, machine, tmp_path):
    where = [f"--store={redis(password=PASSWORD).url}"] if store == "redis" else []
    head, *others = (machine() for _ in range(3))
    head.start_head(*SMALL, *where, port=free_port())
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
        time.sleep(LONGEST_STALL)
        visitors.end()
        said = json.loads(finish(load, 60))
    finally:
        load.kill()
        load.wait()
        if visitors:
            visitors.end()
    assert not said["errors"], "\n".join(said["errors"])
    assert visitors.count >= 3
    # Nobody was lost, and nobody came back as another.
    assert said["nodes"] == dict.fromkeys(ids, True)
    assert {one.node_id for one in machines} == ids and set(said["used"]) == ids

    # Every actor was made once.
    lines = made.read_text().splitlines()
    names = [line.split()[0] for line in lines]
    assert len(names) == len(set(names)) >= KILLS and said["kept"] > 0

    finished = said["finished"]
    ends = [killed for killed, _ in kills[1:]] + [kills[-1][1] + int(1e9 * LONGEST_STALL)]
    stalls = [
        max(gap for kind in CONTROLLED for gap in gaps_during(finished[kind], begin, end))
        for (begin, _), end in zip(kills, ends, strict=True)
    ]
    away = [(again - killed) / 1e9 for killed, again in kills]
    gaps = [max(gaps_during(finished[kind], kills[0][0], ends[-1])) for kind in ("tasks", "calls")]
    print(
        f"\n{store}, {KILLS} kills; stalls: longest {max(stalls):.2f} s, median "
        f"{statistics.median(stalls):.2f} s; away: longest {max(away):.2f} s, median "
        f"{statistics.median(away):.2f} s; without a task {gaps[0]:.2f} s, without a call "
        f"{gaps[1]:.2f} s; { ({kind: len(times) for kind, times in finished.items()}) }, "
        f"{visitors.count} drivers"
    )
    assert max(stalls) < LONGEST_STALL, stalls
    assert max(gaps) < LONGEST_GAP, gaps


# A driver that does what its standard input says: `work`, `make NAME`, which is done meanwhile, and
# `find NAME`.
OBEDIENT = """
import os, sys, threading
import oxiray as ray

ray.init(address=sys.argv[1], namespace="obedient", logging_level="error")


@ray.remote
def square(i):
    return i * i


@ray.remote(num_cpus=0)
class Counter:
    count = 0

    def add(self):
        self.count += 1
        return self.count

    def pid(self):
        return os.getpid()


def say(*words):
    # In one piece: several threads speak.
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())


def make(name):
    actor = Counter.options(name=name, lifetime="detached").remote()
    say("made", name, ray.get(actor.pid.remote()))


counter, calls = Counter.remote(), 0
for line in sys.stdin:
    what, _, name = line.strip().partition(" ")
    if what == "work":
        squares = ray.get([square.remote(i) for i in range(50)], timeout=30)
        assert squares == [i * i for i in range(50)]
        counts = ray.get([counter.add.remote() for _ in range(50)], timeout=30)
        assert counts == list(range(calls + 1, calls + 51))
        calls += 50
        say("worked")
    elif what == "make":
        threading.Thread(target=make, args=(name,)).start()
    elif what == "find":
        say("found", name, ray.get(ray.get_actor(name).pid.remote()))
"""


class Obedient:
    """The driver above."""

    def __init__(self, head):
        self.process = head.start_program(OBEDIENT, head.address)

    def say(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return line.split()

    def ask(self, words):
        self.say(words)
        return self.hear()

    def end(self):
        assert finish(self.process) == ""


def trouble(head):
    """What the status says of the store."""
    said = head("status").stdout
    assert PASSWORD not in said and PASSWORD_IN_URL not in said
    marked = [line for line in said.splitlines() if "TROUBLE" in line]
    return marked[0] if marked else ""


def check_what_is_kept(head, driver, made):
    """The store has what it was given: the control service begins with it."""
    head.kill_control()
    head.start_control_again(*SMALL)
    for name, pid in made.items():
        assert driver.ask(f"find {name}") == ["found", name, pid]


class TestRedis:
    @pytest.mark.parametrize("how", ["stopped", "killed"])
    def test_is_away_for_a_while(self, redis, machine, how):
        server = redis(password=PASSWORD)
        head = machine().start_head(*SMALL, f"--store={server.url}", port=free_port())
        node = machine().join(head, *SMALL)
        ids = head.node_id, node.node_id
        assert f"redis://:…@{server.at}/0" in head("status").stdout and not trouble(head)
        driver = Obedient(head)
        made = {"before": driver.ask("make before")[2]}
        server.pause() if how == "stopped" else server.kill()
        driver.say("make meanwhile")
        # It is asked every second, and has two to answer.
        said = wait_until(lambda: trouble(head), 10, "the status tells of the trouble")
        assert f"cannot reach Redis at {server.at}" in said and "Does it run there" in said
        # What needs the store waits; other work does not.
        for _ in range(5):
            assert driver.ask("work") == ["worked"]
        server.resume() if how == "stopped" else server.start()
        what, _, made["meanwhile"] = driver.hear()
        assert what == "made" and made["meanwhile"] != made["before"]
        wait_until(lambda: not trouble(head), 10, "the trouble is over")
        # Also if Redis had lost everything.
        check_what_is_kept(head, driver, made)
        assert driver.ask("work") == ["worked"]
        driver.end()
        assert (head.node_id, node.node_id) == ids and "Left lately" not in head("status").stdout

    def test_is_not_there_when_the_head_starts(self, machine):
        one = machine()
        at = f"127.0.0.1:{free_port()}"
        said = fails_to_start(one, f"redis://:{PASSWORD_IN_URL}@{at}/0")
        assert f"cannot reach Redis at {at}" in said and "Does it run there" in said

    def test_wants_another_password(self, redis, machine):
        server = redis(password=PASSWORD)
        for wrong in (":wrong-word@", ""):
            said = fails_to_start(machine(), f"redis://{wrong}{server.at}/0")
            assert f"Redis at {server.at} refuses us" in said and "password in the URL" in said
            assert "wrong-word" not in said and "AuthenticationFailed" not in said

    def test_something_else_is_there(self, machine):
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def answer():
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

            thread = threading.Thread(target=answer)
            thread.start()
            at = "{}:{}".format(*listener.getsockname())
            said = fails_to_start(machine(), f"redis://{at}/0")
            thread.join()
        assert f"what is at {at} is not Redis" in said and "Check the host and the port" in said

    def test_is_for_one_head_at_a_time(self, redis, machine):
        server = redis()
        first, second = machine(), machine()
        first.start_head(*SMALL, f"--store={server.url}")
        said = fails_to_start(second, server.url)
        pid = first.pid("control_pid")
        assert f"Redis at {server.at} is in use" in said and f"process {pid}" in said
        assert "?cluster=NAME" in said and is_alive(pid)
        # As it says.
        second.start_head(*SMALL, f"--store={server.url}?cluster=second")
        second("stop")
        # Once the first has stopped, there is nothing to wait for.
        first("stop")
        second.start_head(*SMALL, f"--store={server.url}")

    @pytest.mark.slow
    def test_a_head_that_hung_gives_way_to_its_successor(self, redis, machine):
        server = redis()
        first, second = machine(), machine()
        first.start_head(*SMALL, f"--store={server.url}")
        pid = first.pid("control_pid")
        os.kill(pid, signal.SIGSTOP)
        try:
            # Until its lease has run out.
            second.start_head(*SMALL, f"--store={server.url}")
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: not is_alive(pid), 10, "the first sees that it is not needed any more")
        assert "Nothing waits" in second("status").stdout and not trouble(second)

    def test_over_tls(self, redis, machine, tmp_path):
        certificate, key, authority = certificates(tmp_path)
        server = redis(tls=(certificate, key))
        one = machine()
        said = fails_to_start(one, server.url)
        assert f"Redis at {server.at} is not trusted" in said and "SSL_CERT_FILE" in said
        # Authorities that this machine does not know are given as to any program.
        one.start_head(*SMALL, f"--store={server.url}", SSL_CERT_FILE=authority)
        assert f"in rediss://{server.at}/0" in one("status").stdout and not trouble(one)


def fails_to_start(machine, store):
    """What a head with this store says about it, having left nothing behind."""
    said = machine(
        "start", "--head", "--node-ip-address=127.0.0.1", "--port=0", f"--store={store}", code=1
    ).stderr
    assert said.startswith("oxiray: ") and said.count("\n") == 1, said
    assert PASSWORD not in said and PASSWORD_IN_URL not in said
    assert not processes_under(machine.base) and set(os.listdir(machine.base)) <= {"clusters"}
    return said


def certificates(folder):
    """A certificate for 127.0.0.1, its key, and the authority that signed it."""

    def openssl(*arguments):
        done = subprocess.run(
            ["openssl", *arguments], cwd=folder, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr

    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    openssl("req", "-x509", *curve, "-subj", "/CN=ours", "-keyout", "ca.key", "-out", "ca.crt")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    openssl("req", *curve[:5], "-subj", "/CN=redis", "-keyout", "key", "-out", "request")
    signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
    openssl("x509", "-req", "-in", "request", *signed, "-extfile", "names", "-out", "crt")
    return tuple(str(folder / name) for name in ("crt", "key", "ca.crt"))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 256 KB, which holds the state of a small cluster."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(path)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"only who may mount can have a small disk: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk(small_disk, machine):
    store = small_disk / "state"
    head = machine().start_head(*SMALL, f"--store={store}", port=free_port())
    driver = Obedient(head)
    try:
        made = {"before": driver.ask("make before")[2]}
        with open(small_disk / "full", "wb", 0) as file:
            with pytest.raises(OSError, match="No space"):
                while file.write(4096 * b"x"):
                    pass
        # More than fits into the rest of a page.
        names = [letter + 900 * "x" for letter in "abcdef"]
        for name in names:
            driver.say(f"make {name}")
        said = wait_until(lambda: trouble(head), 10, "the status tells of the trouble")
        assert f"the disk of {store} is full; make room there" in said
        for _ in range(5):
            driver.say("work")
        # Some may have been made just before.
        heard = [driver.hear() for _ in range(5)]
        while [what for what, *_ in heard].count("worked") < 5:
            heard.append(driver.hear())
        assert trouble(head) and len(heard) < 5 + len(names)
        os.remove(small_disk / "full")
        while len(heard) < 5 + len(names):
            heard.append(driver.hear())
        made |= {name: pid for what, name, pid in (one for one in heard if one[0] == "made")}
        wait_until(lambda: not trouble(head), 10, "the trouble is over")
        check_what_is_kept(head, driver, made)
        driver.end()
    finally:
        head("stop")


def test_a_directory_that_cannot_be_used(machine, tmp_path):
    (tmp_path / "file").touch()
    assert "Not a directory" in fails_to_start(machine(), tmp_path / "file" / "state")
    one = machine().start_head(*SMALL, f"--store={tmp_path / 'state'}")
    said = fails_to_start(machine(), tmp_path / "state")
    assert str(tmp_path / "state") in said and "in use" in said and "oxiray stop" in said
    # What was asked for stays when the cluster is stopped, and the next one begins with it.
    one("stop")
    assert os.listdir(tmp_path / "state")
    one.start_head(*SMALL, f"--store={tmp_path / 'state'}")


def test_a_store_that_is_none(machine):
    said = fails_to_start(machine(), f"postgres://u:{PASSWORD_IN_URL}@h/db")
    assert "`postgres:` is not a kind of store" in said and "redis://HOST:PORT" in said


class TestJoining:
    """What the first tests of `start` do not have: see test_cluster_cli.py."""

    @pytest.fixture
    def head(self, machine):
        return machine().start_head(*SMALL)

    def refused(self, head, node, *arguments, address=None, **env):
        env.setdefault("OXIRAY_TOKEN", head("token").stdout.strip())
        arguments = ("start", f"--address={address or head.address}", *arguments)
        said = node(*arguments, code=1, **env).stderr
        assert said.startswith("oxiray: ") and said.count("\n") == 1, said
        assert not processes_under(node.base) and set(os.listdir(node.base)) <= {"clusters"}
        # The cluster has not changed.
        status = head("status").stdout
        assert status.count("\nNode ") == 1 and "Left lately" not in status
        return said

    def test_a_host_that_does_not_exist(self, head, machine):
        said = self.refused(head, machine(), address="nosuch.invalid:6379")
        assert "nosuch.invalid:6379" in said and "HOST:PORT" in said

    def test_a_port_that_none_is(self, head, machine):
        said = self.refused(head, machine(), address="127.0.0.1:99999")
        assert "HOST:PORT" in said

    def test_the_port_of_a_node(self, head, machine):
        address = head.record()["node_address"]
        assert address in self.refused(head, machine(), address=address)

    @pytest.mark.slow
    def test_the_port_of_a_program_that_says_nothing(self, head, machine):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = "{}:{}".format(*silent.getsockname())
            said = self.refused(head, machine(), address=address)
        assert address in said and "did not answer" in said

    def test_a_port_of_the_node_s_own_that_is_in_use(self, head, machine):
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = one.getsockname()[1]
            node = machine()
            arguments = (f"--node-manager-port={port}", "--node-ip-address=127.0.0.1")
            said = self.refused(head, node, *arguments)
        assert str(port) in said and "in use" in said.lower()

    def test_another_version_of_python(self, head, machine, tmp_path):
        # As an interpreter that says so.
        other = tmp_path / "python3"
        other.write_text("#!/bin/sh\necho 3.8\n")
        other.chmod(0o755)
        said = self.refused(head, machine(), OXIRAY_PYTHON=str(other), OXIRAY_PYTHON_VERSION="")
        version = "{}.{}".format(*sys.version_info)
        assert (
            "this node has Python 3.8" in said and f"Start the node with Python {version}" in said
        )

    def test_a_python_that_cannot_be_used(self, head, machine, tmp_path):
        empty = tmp_path / "python3"
        empty.write_text('#!/bin/sh\necho "ModuleNotFoundError: oxiray" >&2; exit 1\n')
        empty.chmod(0o755)
        for python, why in (
            (str(empty), "ModuleNotFoundError: oxiray"),
            ("/no/such/python3", "No such file"),
        ):
            env = {"OXIRAY_PYTHON": python, "OXIRAY_PYTHON_VERSION": ""}
            said = self.refused(head, machine(), **env)
            assert python in said and why in said and "set OXIRAY_PYTHON to a Python" in said

    def test_a_status_of_another_cluster(self, head):
        said = head("status", "--address=127.0.0.1:1", code=NOTHING_RUNS).stderr
        assert "no session or node of a cluster at 127.0.0.1:1" in said


def test_another_version_of_oxiray(machine):
    """As it would introduce itself."""
    head = machine().start_head(*SMALL, "--insecure")
    ip, _, port = head.address.rpartition(":")
    with socket.create_connection((ip, int(port)), 10) as connection:
        # A frame: its length, the field `version`, and for what it comes.
        connection.sendall(b"oxiray/1" + b"\x04\0\0\0\x08\x63\x10\x01")
        said = b""
        while data := connection.recv(4096):
            said += data
    assert b"99" in said and b"version" in said and b"same" in said, said
    assert head("status").stdout.count("\nNode ") == 1


SHIFTED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t which, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(which, at);
    if (which == CLOCK_REALTIME) at->tv_sec += SHIFT;
    return done;
}
"""


@pytest.mark.parametrize("years", [-20, 30])
def test_clocks_that_do_not_agree(machine, tmp_path, years):
    if not shutil.which("cc"):
        pytest.skip("a C compiler makes the wrong clock")
    shift = years * 365 * 24 * 3600
    (tmp_path / "shifted.c").write_text(SHIFTED)
    library = str(tmp_path / "shifted.so")
    compiler = ["cc", "-shared", "-fPIC", f"-DSHIFT=({shift}LL)", "-o", library]
    subprocess.run([*compiler, str(tmp_path / "shifted.c"), "-ldl"], check=True)
    head = machine().start_head(*SMALL)
    node = machine()
    token = head("token").stdout.strip()
    node.environment["LD_PRELOAD"] = library
    node.join(head, *SMALL, '--resources={"there": 1}', OXIRAY_TOKEN=token)
    said = head.run_program(
        """
        import sys, time
        import oxiray as ray

        ray.init(address=sys.argv[1], logging_level="error")
        there = ray.remote(resources={"there": 1})(time.time)
        print(round(ray.get(there.remote(), timeout=30) - time.time()))
        """,
        head.address,
    )
    assert abs(int(said) - shift) < 60, "the node's clock is not wrong"
    assert node("status").stdout.count("\nNode ") == 2
