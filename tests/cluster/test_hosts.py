"""Several hosts, each with a network of its own, joined by a switch; and what happens when a cable
is pulled."""

from __future__ import annotations

import json
import os
import signal
import time

import namespaces
import pytest
from conftest import processes_under, wait_until
from machines import Machine, finish

pytestmark = pytest.mark.slow

network, hosts = namespaces.network, namespaces.hosts

# How long it may take until everybody knows that a node is gone.
CUT_OFF_S = 5.0
KILLED_S = 1.0
STOPPED_S = 1.0

# What driver programs begin with.
PRELUDE = """
import hashlib, json, os, subprocess, sys, time
import numpy as np
import oxiray as ray
from oxiray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

given = json.loads(sys.argv[1])
ray.init(address="auto", namespace=given.get("namespace"), logging_level="error")

def at(host, soft=False):
    return NodeAffinitySchedulingStrategy(given["nodes"][host], soft=soft)

def here():
    return ray.get_runtime_context().get_node_id()

def until(condition, timeout=30):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.005)

def is_gone(node_id):
    return not any(n["Alive"] for n in ray.nodes() if n["NodeID"] == node_id)

def error_of(ref, timeout=30):
    "The names of the error's classes."
    try:
        return ["no error", repr(ray.get(ref, timeout=timeout))]
    except Exception as error:
        return [c.__name__ for c in type(error).__mro__] + [str(error)[:300]]
"""


def given(hosts, **more):
    """What a driver program is told."""
    return json.dumps({"nodes": {n: host.node_id for n, host in hosts.items()}, **more})


def alive(host):
    """How many nodes the cluster has, as this host sees it."""
    return host("status").stdout.partition("Left lately")[0].count("\nNode ")


@pytest.mark.parametrize("number", [1, 2])
def test_work_spreads_and_a_gigabyte_travels(network, hosts, number, tmp_path):
    """One for a driver at the head, one for a driver at another host."""
    before = network.carried()
    rounds, size = 6, 32 * 10**6
    out = hosts[number].run_program(
        PRELUDE
        + """
def digest(data):
    return hashlib.sha1(data).hexdigest()

@ray.remote
def make(seed, size):
    data = np.random.default_rng(seed).integers(0, 2**63, size // 8, dtype=np.int64)
    return data, (here(), digest(data))

@ray.remote
def check(data):
    return here(), digest(data)

@ray.remote
class Counter:
    def __init__(self):
        self.count = 0

    def add(self, data):
        self.count += 1
        return here(), self.count, len(data)

ids = list(given["nodes"].values())
@ray.remote(scheduling_strategy="SPREAD")
def meet(name, count):
    open(f"{given['folder']}/{name}", "w").close()
    until(lambda: len(os.listdir(given["folder"])) == count)
    return here()

# As many as there are CPUs, at the same time.
assert set(ray.get([meet.remote(i, 12) for i in range(12)], timeout=60)) == set(ids)
counters = [Counter.options(scheduling_strategy=at(host)).remote() for host in given["nodes"]]
found = ray.get([c.add.remote(b"x" * n) for c in counters for n in range(100)], timeout=60)
assert found == [(ids[i // 100], i % 100 + 1, i % 100) for i in range(300)], found

# Each host makes an object in each round, and all have all of them.
for turn in range(given["rounds"]):
    made = [
        make.options(scheduling_strategy=at(host), num_returns=2).remote((turn, i), given["size"])
        for i, host in enumerate(given["nodes"])
    ]
    read = [
        check.options(scheduling_strategy=at(host)).remote(data)
        for data, _ in made
        for host in given["nodes"]
    ]
    expected = ray.get([says for _, says in made], timeout=60)
    assert [node for node, _ in expected] == ids
    assert len({says for _, says in expected}) == len(ids)
    for i, (node, says) in enumerate(ray.get(read, timeout=60)):
        assert (node, says) == (ids[i % 3], expected[i // 3][1]), (turn, i)
    for (data, _), (_, says) in zip(made, expected):
        assert digest(ray.get(data, timeout=60)) == says
    del made, read, data
print("done")
""",
        given(hosts, rounds=rounds, size=size, folder=str(tmp_path)),
        timeout=90,
    )
    assert out == "done\n"
    # To two hosts from the one that has made it.
    assert network.carried() - before > rounds * 3 * 2 * size > 10**9


def test_two_programs_on_two_hosts(hosts):
    """Names of actors are apart, and yet either finds what the other has, if it says where."""
    source = (
        PRELUDE
        + """
@ray.remote
class Place:
    def __init__(self, text):
        self.text = text

    def get(self):
        return self.text, here()

me, other = given["namespace"], given["other"]
place = Place.options(name="same", scheduling_strategy=at(given["host"])).remote(me)
ray.get(place.get.remote(), timeout=30)
print("there", flush=True)
sys.stdin.readline()
mine, node = ray.get(ray.get_actor("same").get.remote(), timeout=30)
theirs, _ = ray.get(ray.get_actor("same", namespace=other).get.remote(), timeout=30)
names = sorted(n["namespace"] for n in ray.util.list_named_actors(all_namespaces=True))
print(json.dumps([mine, theirs, node, ray.util.list_named_actors(), names]), flush=True)
sys.stdin.readline()
"""
    )
    # Either has its actor on the other's host.
    programs = {
        number: hosts[number].start_program(
            source,
            given(hosts, namespace=f"of{number}", other=f"of{5 - number}", host=f"{5 - number}"),
        )
        for number in (2, 3)
    }
    try:
        for program in programs.values():
            assert program.stdout.readline() == "there\n", program.communicate()
        for program in programs.values():
            print(file=program.stdin, flush=True)
        for number, program in programs.items():
            mine, theirs, node, names, all_names = json.loads(program.stdout.readline())
            assert (mine, theirs) == (f"of{number}", f"of{5 - number}")
            assert node == hosts[5 - number].node_id
            assert names == ["same"] and all_names == ["of2", "of3"]
        for program in programs.values():
            finish(program)
    finally:
        for program in programs.values():
            program.kill()
            program.wait()


@pytest.mark.parametrize("number", [1, 2])
def test_a_cable_is_pulled(network, hosts, number, tmp_path):
    """While tasks, actors and objects are at the third host; the driver is at host `number`."""
    lost_node = hosts[3].node_id
    out = hosts[number].run_program(
        PRELUDE
        + """
def touch(name):
    open(os.path.join(given["folder"], name), "w").close()

def is_there(name):
    return os.path.exists(os.path.join(given["folder"], name))

@ray.remote
def work(name):
    touch(f"{name}-{here()}")
    until(lambda: is_there("gate"), 60)
    return name, here()

@ray.remote
class Place:
    def work(self, name):
        touch(f"{name}-{here()}")
        until(lambda: is_there("gate"), 60)
        return name, here()

    def where(self):
        return here()

there, rest = given["nodes"]["3"], {given["nodes"]["1"], given["nodes"]["2"]}
soft = at("3", soft=True)
make = ray.remote(lambda: np.ones(1_000_000)).options(scheduling_strategy=soft)
object_lost, object_again = make.options(max_retries=0).remote(), make.remote()
ray.wait([object_lost, object_again], num_returns=2, fetch_local=False, timeout=30)
mortal = Place.options(scheduling_strategy=soft).remote()
moving = Place.options(scheduling_strategy=soft, max_restarts=1, max_task_retries=-1).remote()
assert ray.get([mortal.where.remote(), moving.where.remote()], timeout=30) == [there] * 2
retried = [work.options(scheduling_strategy=soft, max_retries=2).remote(f"r{i}") for i in range(3)]
once = work.options(scheduling_strategy=soft, max_retries=0).remote("once")
call_lost, call_again = mortal.work.remote("mortal"), moving.work.remote("moving")
begun = [f"{name}-{there}" for name in ("r0", "r1", "r2", "once", "mortal", "moving")]
until(lambda: all(map(is_there, begun)))

subprocess.run(given["pull"], check=True)
began = time.monotonic()
# What is asked of the host while nobody knows.
late = work.options(scheduling_strategy=soft).remote("late")
until(lambda: is_gone(there))
noticed = time.monotonic() - began
touch("gate")
right = [[f"r{i}", node] for i, (_, node) in enumerate(ray.get(retried, timeout=30))]
right += [list(ray.get(late, timeout=30)), list(ray.get(call_again, timeout=30))]
assert all(node in rest for _, node in right), right
errors = {
    "once": error_of(once),
    "call": error_of(call_lost),
    "next call": error_of(mortal.where.remote()),
    "object": error_of(object_lost),
}
moved = ray.get(moving.where.remote(), timeout=30)
try:
    again = float(ray.get(object_again, timeout=30).sum())
except ray.exceptions.ObjectLostError:
    again = "lost"
print(json.dumps({
    "noticed": noticed,
    "took": time.monotonic() - began,
    "right": [name for name, _ in right],
    "errors": errors,
    "moved": moved in rest,
    "again": again,
}))
""",
        given(hosts, pull=network.pull(3), folder=str(tmp_path)),
        timeout=90,
    )
    result = json.loads(out)
    print(result)
    assert result["noticed"] < CUT_OFF_S
    assert result["took"] < 30
    assert result["right"] == ["r0", "r1", "r2", "late", "moving"]
    # Made again, if the engine can; never a hang.
    assert result["moved"] and result["again"] in (1e6, "lost")
    errors = result["errors"]
    assert "RayError" in errors["once"], errors
    assert "ActorDiedError" in errors["call"] and "ActorDiedError" in errors["next call"], errors
    assert "ObjectLostError" in errors["object"], errors

    # The cable is back: the node that was there is none any more, and comes back as a new one.
    pid = hosts[3].pid()
    network.plug()
    wait_until(lambda: alive(hosts[1]) == 3, 20, "the node that was cut off is back")
    wait_until(lambda: hosts[3].node_id != lost_node, 5, "as another one")
    assert alive(hosts[3]) == 3
    assert hosts[3].pid() == pid


def test_a_cable_is_loose_for_a_moment(network, hosts):
    """What is lost on the way is sent again by TCP: nobody notices."""
    before = {number: host.node_id for number, host in hosts.items()}
    program = hosts[2].start_program(
        PRELUDE
        + """
@ray.remote(max_retries=0, scheduling_strategy=at("3"))
def add(i, data):
    return i + len(data)

@ray.remote(scheduling_strategy=at("3"))
class Counter:
    count = 0

    def add(self):
        self.count += 1
        return self.count

counter = Counter.remote()
print("there", flush=True)
began = time.monotonic()
calls = []
while time.monotonic() - began < 2:
    refs = [add.remote(i, bytes(200_000)) for i in range(10)]
    calls += [counter.add.remote() for _ in range(10)]
    assert ray.get(refs, timeout=30) == [200_000 + i for i in range(10)]
assert ray.get(calls, timeout=30) == list(range(1, len(calls) + 1))
assert all(node["Alive"] for node in ray.nodes())
print(len(calls))
""",
        given(hosts),
    )
    try:
        assert program.stdout.readline() == "there\n", program.communicate()
        time.sleep(0.5)
        namespaces.ip(*network.pull(3)[1:])
        time.sleep(0.7)
        network.plug()
        assert int(finish(program)) >= 20
        assert alive(hosts[1]) == 3
        assert before == {number: host.node_id for number, host in hosts.items()}
    finally:
        program.kill()
        program.wait()


def test_a_cable_is_pulled_while_an_object_travels(network, hosts):
    """Half of it has come: it is made again, or lost; nobody waits for ever."""
    program = hosts[2].start_program(
        PRELUDE
        + """
size = 400_000_000
make = ray.remote(lambda: np.ones(size, np.uint8)).options(scheduling_strategy=at("3", soft=True))
lost, again = make.options(max_retries=0).remote(), make.options(max_retries=1)
ray.wait([lost], fetch_local=False, timeout=60)
print("made", flush=True)
sys.stdin.readline()
error = error_of(lost, 60)
print(json.dumps(error), flush=True)
assert is_gone(given["nodes"]["3"])
assert ray.get(again.remote(), timeout=60).sum(dtype=int) == size
""",
        given(hosts),
    )
    try:
        with network.slow(3):
            assert program.stdout.readline() == "made\n", program.communicate()
            before = network.carried()
            print(file=program.stdin, flush=True)
            wait_until(lambda: network.carried() - before > 30_000_000, message="it is on its way")
            namespaces.ip(*network.pull(3)[1:])
            began = time.monotonic()
            assert network.carried() - before < 390_000_000, "all of it has come before the cut"
        error = json.loads(program.stdout.readline())
        print(time.monotonic() - began, error)
        assert time.monotonic() - began < CUT_OFF_S + 2
        assert "ObjectLostError" in error
        finish(program)
    finally:
        program.kill()
        program.wait()


def test_killed_and_stopped_nodes(hosts):
    """That is known at once: the kernel says good-bye for who cannot."""
    program = hosts[1].start_program(
        PRELUDE
        + """
print("there", flush=True)
for host in ("2", "3"):
    sys.stdin.readline()
    until(lambda: is_gone(given["nodes"][host]))
    print(time.monotonic(), flush=True)
spread = ray.remote(scheduling_strategy="SPREAD")(here)
assert set(ray.get([spread.remote() for _ in range(10)], timeout=30)) == {given["nodes"]["1"]}
""",
        given(hosts),
    )
    try:
        assert program.stdout.readline() == "there\n", program.communicate()

        def seconds_until_noticed(end):
            print(file=program.stdin, flush=True)
            # One clock for all processes.
            began = time.monotonic()
            end()
            return float(program.stdout.readline()) - began

        node = hosts[2].pid()
        killed = seconds_until_noticed(lambda: os.kill(node, signal.SIGKILL))
        stopped = seconds_until_noticed(lambda: hosts[3]("stop"))
        print(f"noticed: killed {killed:.3f} s, stopped {stopped:.3f} s")
        assert killed < KILLED_S and stopped < STOPPED_S
        finish(program)
        wait_until(lambda: not processes_under(hosts[2].base), 20, "its workers end with it")
    finally:
        program.kill()
        program.wait()


def test_a_program_on_the_host_that_is_cut_off(network, hosts):
    """It gets an error, at the latest when the cable is back and its node has been refused."""
    program = hosts[3].start_program(
        PRELUDE
        + """
import time as clock
sleep = ray.remote(lambda: clock.sleep(1000)).options(scheduling_strategy=at("2"), max_retries=-1)
ref = sleep.remote()
print("there", flush=True)
print(json.dumps(error_of(ref, 60)), flush=True)
# What runs on its own host may work for a moment more.
until(lambda: "no error" not in error_of(ray.remote(here).remote()))
""",
        given(hosts),
    )
    try:
        assert program.stdout.readline() == "there\n", program.communicate()
        namespaces.ip(*network.pull(3)[1:])
        wait_until(lambda: alive(hosts[1]) == 2, CUT_OFF_S, "the others know")
        network.plug()
        error = json.loads(finish(program, 40))
        print(error)
        assert "RayError" in error and "GetTimeoutError" not in error
        wait_until(lambda: alive(hosts[1]) == 3, 20, "the node is back, as a new one")
    finally:
        program.kill()
        program.wait()


@pytest.mark.parametrize("how", ["its cable is out", "its service is stopped"])
def test_an_actor_ends_before_it_begins_elsewhere(network, hosts, how, tmp_path):
    """A host that is not heard ends it by itself, in time. Hosts share one clock, and files."""
    written = tmp_path / "lines"
    program = hosts[1].start_program(
        PRELUDE
        + """
import threading

@ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)
class Writer:
    def __init__(self):
        self.node = here()
        threading.Thread(target=self.write, daemon=True).start()

    def write(self):
        while True:
            with open(given["written"], "a") as file:
                file.write(f"{self.node} {time.monotonic()}\\n")
            time.sleep(0.001)

    def where(self):
        return self.node

writer = Writer.options(name="writer", scheduling_strategy=at("3", soft=True)).remote()
assert ray.get(writer.where.remote(), timeout=30) == given["nodes"]["3"]
print("there", flush=True)
until(lambda: ray.get(writer.where.remote(), timeout=60) != given["nodes"]["3"], 60)
sys.stdin.readline()
""",
        given(hosts, written=str(written)),
    )
    before, node = hosts[3].node_id, hosts[3].pid()

    def times():
        lines = [line.split() for line in written.read_text().splitlines()]
        old = [float(time) for node, time in lines if node == before]
        return old, [float(time) for node, time in lines if node != before]

    try:
        assert program.stdout.readline() == "there\n", program.communicate()
        wait_until(lambda: len(times()[0]) > 10, 20, "it writes")
        if how == "its cable is out":
            namespaces.ip(*network.pull(3)[1:])
        else:
            os.kill(node, signal.SIGSTOP)
        wait_until(lambda: len(times()[1]) > 10, 60, "it writes elsewhere")
        old, new = times()
        print(f"it ended {min(new) - max(old):.3f} s before it began elsewhere")
        assert max(old) < min(new)
        os.kill(node, signal.SIGCONT)
        network.plug()
        wait_until(lambda: alive(hosts[1]) == 3, 30, "the node is back, as a new one")
        assert max(times()[0]) == max(old)
        print(file=program.stdin, flush=True)
        finish(program)
    finally:
        os.kill(node, signal.SIGCONT)
        program.kill()
        program.wait()


def test_the_heads_cable_is_out_for_ten_seconds(network):
    """By the usual thresholds nobody is given up for that, and nobody's work notices."""
    machines = {n: Machine(network.address(n), network.prefix[n]) for n in (1, 2)}
    for machine in machines.values():
        for name in [name for name in machine.environment if "health_check" in name]:
            del machine.environment[name]
    program = None
    try:
        machines[1].start_head("--num-cpus=0")
        machines[2].join(machines[1], "--num-cpus=2")
        program = machines[2].start_program(
            PRELUDE
            + """
@ray.remote
class Counter:
    count = 0

    def add(self):
        self.count += 1
        return self.count

counter = Counter.remote()
assert ray.get(counter.add.remote(), timeout=30) == 1
print("there", flush=True)
for _ in range(20):
    assert ray.get(ray.remote(here).remote(), timeout=30) == given["nodes"]["2"]
    time.sleep(0.5)
sys.stdin.readline()
assert ray.get(counter.add.remote(), timeout=30) == 2
assert ray.get(Counter.remote().add.remote(), timeout=30) == 1
""",
            given(machines),
        )
        assert program.stdout.readline() == "there\n", program.communicate()
        namespaces.ip(*network.pull(1)[1:])
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 10, 20)
        network.plug()
        print(file=program.stdin, flush=True)
        finish(program, 60)
        assert alive(machines[2]) == 2
    finally:
        network.plug()
        if program is not None:
            program.kill()
            program.wait()
        for machine in machines.values():
            machine.end()
