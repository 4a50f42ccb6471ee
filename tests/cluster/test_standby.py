"""A standby head takes over: the head's machine is lost, and nobody else's work is.

Heads keep their state in a real Redis (redis_server.py). Machines are directories of one machine,
or hosts with a network of their own where a cable is pulled.
"""

from __future__ import annotations

import os

import namespaces
import pytest
import redis_server
from conftest import is_alive, processes_under, wait_until
from machines import Machine, finish
from redis_server import free_port

redis, network = redis_server.redis, namespaces.network

SMALL = ("--num-gpus=0", f"--object-store-memory={80 * 2**20}")
# Nothing of a user's runs at the head.
HEAD = (*SMALL, "--num-cpus=0", "--include-dashboard=false")
NODE = (*SMALL, "--num-cpus=2")
STANDBY = (*NODE, "--include-dashboard=false")
# What is promised is two seconds, on a machine that has the time.
TAKES_OVER_S = 20

# A driver with tasks and calls under way all the time, which does what its standard input says:
# `make NAME`, `find NAME`, `look`.
DRIVER = """
import os, sys, threading, time, traceback
import oxiray as ray
from oxiray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

ray.init(address="auto", namespace="standby", logging_level="error")
here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)


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


stop, errors, worked = threading.Event(), [], [time.monotonic()]
counter = Counter.options(scheduling_strategy=here).remote()


def work():
    try:
        number = 0
        while not stop.is_set():
            number += 1
            squares = ray.get([square.remote(i) for i in range(10)], timeout=60)
            assert squares == [i * i for i in range(10)], squares
            assert ray.get(counter.add.remote(), timeout=60) == number
            worked.append(time.monotonic())
            time.sleep(0.01)
    except BaseException:
        errors.append(traceback.format_exc())


thread = threading.Thread(target=work)
thread.start()
for line in sys.stdin:
    what, _, name = line.strip().partition(" ")
    begun = time.monotonic()
    if what == "make":
        made = Counter.options(name=name, lifetime="detached", scheduling_strategy=here).remote()
        pid = ray.get(made.pid.remote(), timeout=60)
        print("made", name, pid, f"{time.monotonic() - begun:.2f}")
    elif what == "find":
        print("found", name, ray.get(ray.get_actor(name).pid.remote(), timeout=60))
    elif what == "look":
        gap = max(b - a for a, b in zip(worked, [*worked[1:], time.monotonic()]))
        print("looked", len(worked), f"{gap:.2f}", *errors)
stop.set()
thread.join()
assert not errors, errors
"""


class Driver:
    """The driver above."""

    def __init__(self, machine):
        self.process = machine.start_program(DRIVER)
        self.worked = 0

    def ask(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return line.split()

    def make(self, name):
        """The process of a new actor, and how long it took."""
        _, made, pid, seconds = self.ask(f"make {name}")
        assert made == name
        return pid, float(seconds)

    def find(self, name):
        return self.ask(f"find {name}")[2]

    def goes_on(self):
        """Work was done since the last time. The longest while without, so far."""

        def has_worked():
            _, count, gap, *errors = self.ask("look")
            assert not errors, errors
            return int(count) > self.worked + 3 and (int(count), float(gap))

        self.worked, gap = wait_until(has_worked, 60, "work is done")
        return gap

    def end(self):
        assert finish(self.process) == ""


@pytest.fixture
def machine():
    """Makes machines, which are all at 127.0.0.1, unless they are said to be elsewhere."""
    machines = []

    def make(*where):
        machines.append(Machine(*where))
        return machines[-1]

    yield make
    trouble = []
    for one in reversed(machines):
        try:
            one.end()
        except BaseException as error:
            trouble.append(error)
    assert not trouble, trouble


@pytest.fixture
def store(redis):
    return redis()


@pytest.fixture
def head(machine, store):
    return machine().start_head(*HEAD, f"--store={store.url}", port=free_port())


def own_address(machine):
    return machine.record()["address"]


def reigns(machine):
    """Whether the control service of this machine is the one, as it says itself."""
    return f"Cluster {own_address(machine)}\n" in machine("status").stdout


def waits(machine, address):
    """Whether the status of the cluster names this one among those that wait."""
    said = machine("status").stdout
    return any(line.startswith("  standby ") and address in line for line in said.splitlines())


def test_it_takes_over_when_the_head_is_lost(head, machine, store):
    standby = machine().stand_by(head, store.url, *STANDBY)
    node = machine().join(head, *NODE)
    wait_until(lambda: waits(node, own_address(standby)), 10, "all know of it")
    assert reigns(head) and not reigns(standby)
    driver = Driver(node)
    try:
        before, _ = driver.make("before")
        driver.goes_on()
        head.kill()
        made, seconds = driver.make("after")
        print(f"\nkilled; the next actor after {seconds:.2f} s, ", end="")
        assert seconds < TAKES_OVER_S
        assert driver.find("before") == before and driver.find("after") == made != before
        print(f"longest without work {driver.goes_on():.2f} s")
        assert reigns(standby)
        # Everybody finds it: commands, programs by the old address, and nodes.
        address = node.address
        assert "Cluster" in node("status", f"--address={address}").stdout
        node.run_program("import sys, oxiray; oxiray.init(address=sys.argv[1])", address)
        late = machine().join(standby, *NODE)
        assert late.node_id in node("list", "nodes").stdout
    finally:
        driver.end()


def test_a_head_that_stood_still_waits_in_its_turn(head, machine, store):
    standby = machine().stand_by(head, store.url, *STANDBY)
    node = machine().join(head, *NODE)
    wait_until(lambda: waits(node, own_address(standby)), 10, "all know of it")
    driver = Driver(node)
    control = head.pid("control_pid")
    try:
        before, _ = driver.make("before")
        head.pause()
        try:
            made, seconds = driver.make("meanwhile")
            print(f"\nstopped; the next actor after {seconds:.2f} s")
            assert seconds < TAKES_OVER_S
            wait_until(lambda: reigns(standby), 10, "the standby reigns")
        finally:
            head.resume()
        # It is not the head any more, and says so; its node went on as a member.
        wait_until(lambda: waits(node, own_address(head)), 30, "the first head waits")
        assert reigns(standby) and is_alive(control)
        assert head.node_id in node("list", "nodes", "--filter", "state=ALIVE").stdout
        # It takes over from the one that took over.
        standby.kill()
        driver.make("after")
        assert reigns(head)
        assert driver.find("before") == before and driver.find("meanwhile") == made
        driver.goes_on()
    finally:
        driver.end()


def test_one_after_the_other(head, machine, store):
    first = machine().stand_by(head, store.url, *STANDBY)
    second = machine().stand_by(head, store.url, *STANDBY)
    node = machine().join(first, *NODE)
    for one in (first, second):
        wait_until(lambda one=one: waits(node, own_address(one)), 10, "all know of them")
    driver = Driver(node)
    try:
        pids = {"a": driver.make("a")[0]}
        # A head that is stopped lets go.
        head("stop")
        pids["b"], _ = driver.make("b")
        winner, loser = (first, second) if reigns(first) else (second, first)
        assert reigns(winner) and not reigns(loser)
        winner.kill()
        pids["c"], _ = driver.make("c")
        assert reigns(loser)
        assert {name: driver.find(name) for name in pids} == pids
        driver.goes_on()
    finally:
        driver.end()


def test_nothing_happens_when_it_is_lost_itself(head, machine, store):
    standby = machine().stand_by(head, store.url, *STANDBY)
    address = own_address(standby)
    node = machine().join(head, *NODE)
    wait_until(lambda: waits(node, address), 10, "all know of it")
    driver = Driver(node)
    try:
        standby.kill()
        driver.make("a")
        driver.goes_on()
        wait_until(lambda: not waits(node, address), 30, "it is forgotten")
        assert reigns(head)
    finally:
        driver.end()


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_redis_is_away_for_a_while(head, machine, store, how):
    """Nobody can know who reigns: what the control service is asked waits, and nothing is lost.
    Not even if Redis has lost everything."""
    standby = machine().stand_by(head, store.url, *STANDBY)
    node = machine().join(head, *NODE)
    wait_until(lambda: waits(node, own_address(standby)), 10, "all know of it")
    driver = Driver(node)
    try:
        before, _ = driver.make("before")
        store.pause() if how == "stopped" else store.kill()
        try:
            said = lambda: node("status", code=None).stderr  # noqa: E731
            wait_until(lambda: "waits to take over" in said(), 30, "nobody reigns")
            driver.goes_on()
        finally:
            store.resume() if how == "stopped" else store.start()
        assert driver.find("before") == before
        driver.make("after")
        driver.goes_on()
        ids = {one.node_id for one in (head, standby, node)}
        listed = node("list", "nodes", "--filter", "state=ALIVE").stdout
        assert all(one in listed for one in ids)
    finally:
        driver.end()


def test_the_token_was_changed_before(head, machine, store):
    standby = machine().stand_by(head, store.url, *STANDBY)
    node = machine().join(head, *NODE)
    wait_until(lambda: waits(node, own_address(standby)), 10, "all know of it")
    token = head("token", "--rotate").stdout.strip()
    wait_until(lambda: standby("token").stdout.strip() == token, 10, "the standby has it")
    head.kill()
    wait_until(lambda: node("status", code=None).returncode == 0, 30, "it has taken over")
    late = machine()
    late("start", f"--address={own_address(standby)}", *NODE, OXIRAY_TOKEN=token)
    assert late.node_id in node("list", "nodes").stdout


class TestOneSentence:
    """What cannot be is said in one sentence, and nothing is left behind."""

    def refused(self, machine, *arguments, code=1, **env):
        start = ("start", "--head", "--standby", "--node-ip-address=127.0.0.1", "--port=0")
        said = machine(*start, *STANDBY, *arguments, code=code, **env).stderr
        assert not processes_under(machine.base) and set(os.listdir(machine.base)) <= {"clusters"}
        return said

    def one_sentence(self, said):
        assert said.startswith("oxiray: ") and said.count("\n") == 1, said
        return said

    def test_without_redis(self, machine, tmp_path):
        for store in ((), (f"--store={tmp_path}",), ("--store=memory:",)):
            said = self.one_sentence(self.refused(machine(), *store))
            assert "--store=redis://HOST:PORT" in said and "no standby without Redis" in said

    def test_redis_is_not_there(self, head, machine):
        store = f"--store=redis://127.0.0.1:{free_port()}"
        token = head("token").stdout.strip()
        said = self.one_sentence(self.refused(machine(), store, OXIRAY_TOKEN=token))
        assert "cannot reach Redis at 127.0.0.1:" in said and "Does it run there" in said

    def test_without_a_cluster(self, head, machine, store):
        token = head("token").stdout.strip()
        other = f"--store={store.url}?cluster=other"
        said = self.one_sentence(self.refused(machine(), other, OXIRAY_TOKEN=token))
        assert "no cluster that could be taken over" in said and "start the head first" in said

    def test_without_and_with_another_token(self, head, machine, store):
        said = self.one_sentence(self.refused(machine(), f"--store={store.url}"))
        assert "a token is needed to join" in said
        other = machine().start_head(*HEAD)("token").stdout.strip()
        stored = f"--store={store.url}"
        said = self.one_sentence(self.refused(machine(), stored, OXIRAY_TOKEN=other))
        assert f"the control service at {head.address}" in said and "token" in said

    def test_of_another_version(self, head, machine, store):
        token = head("token").stdout.strip()
        key = "oxiray:{default}:reigning"
        wait_until(lambda: store.command("get", key).strip(), 10, "the head has said where it is")
        # As a head of another version would say it; this one says it every second.
        head.pause()
        try:
            store.command("set", key, f"1 {head.address}")
            stored = f"--store={store.url}"
            said = self.one_sentence(self.refused(machine(), stored, OXIRAY_TOKEN=token))
        finally:
            head.resume()
        assert "version 1 of the protocol" in said and "install the same version" in said

    def test_a_second_head_is_told_of_it(self, head, machine, store):
        one = machine()
        start = ("start", "--head", "--node-ip-address=127.0.0.1", "--port=0")
        said = one(*start, *HEAD, f"--store={store.url}", code=1).stderr
        assert "wait to take over from it (--standby)" in said

    def test_it_is_for_heads(self, machine):
        said = machine()("start", "--standby", "--address=127.0.0.1:1", code=1).stderr
        assert "--standby is for --head" in self.one_sentence(said)


@pytest.mark.slow
def test_the_cable_of_the_head_is_pulled(network, redis, machine):
    """Nothing of the head is heard any more, and nothing refuses: as if it had burned."""
    hosts = {n: machine(network.address(n), network.prefix[n]) for n in network.prefix}
    outside = network.outside()
    try:
        store = redis(ip=outside.ip, prefix=outside.prefix)
    finally:
        outside.end()
    head, standby, node = hosts.values()
    head.start_head(*HEAD, f"--store={store.url}")
    standby.stand_by(head, store.url, *STANDBY)
    node.join(head, *NODE)
    wait_until(lambda: waits(node, own_address(standby)), 10, "all know of it")
    driver = Driver(node)
    try:
        before, _ = driver.make("before")
        driver.goes_on()
        namespaces.ip(*network.pull(1)[1:])
        made, seconds = driver.make("after")
        print(f"\npulled; the next actor after {seconds:.2f} s, ", end="")
        assert seconds < TAKES_OVER_S
        assert driver.find("before") == before and driver.find("after") == made
        print(f"longest without work {driver.goes_on():.2f} s")
        network.plug()
        # The first head is none any more, and its node a member as any.
        wait_until(lambda: waits(node, own_address(head)), 60, "the first head waits")
        there = lambda: node("list", "nodes", "--filter", "state=ALIVE").stdout  # noqa: E731
        wait_until(lambda: head.node_id in there(), 60, "its node is a member")
        assert reigns(standby)
        driver.goes_on()
    finally:
        network.plug()
        driver.end()
