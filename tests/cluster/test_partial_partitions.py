"""Two hosts that do not reach each other, though both reach the head: nobody is dead, so nothing is
lost. What one says to the other goes through the third, and straight again when it can."""

from __future__ import annotations

import json
import os
import signal
import time

import namespaces
import pytest
from conftest import wait_until
from machines import finish

pytestmark = pytest.mark.slow

network, hosts = namespaces.network, namespaces.hosts

# Until it is known that a connection carries nothing any more, and another way is found. 2 s of it
# are the engine's; the rest is for busy machines.
UNTIL_FOUND_S = 8.0

BOTH, THERE, BACK = [(2, 3), (3, 2)], [(2, 3)], [(3, 2)]

PRELUDE = """
import json, os, subprocess, sys, time
import numpy as np
import oxiray as ray
from oxiray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

given = json.loads(sys.argv[1])
ray.init(address="auto", logging_level="error")
there = given["nodes"]["3"]

def at(host, soft=False):
    return NodeAffinitySchedulingStrategy(given["nodes"][host], soft=soft)

@ray.remote
def where():
    return ray.get_runtime_context().get_node_id()

@ray.remote(max_restarts=-1)
class Counter:
    count = 0

    def add(self):
        self.count += 1
        return self.count

def timed(refs, timeout=60):
    began = time.monotonic()
    return ray.get(refs, timeout=timeout), time.monotonic() - began

def is_alive(node):
    return any(n["Alive"] for n in ray.nodes() if n["NodeID"] == node)

def cut():
    for command in given["cut"]:
        subprocess.run(command, check=True)
"""


def given(network, hosts, cut, **more):
    """What a driver program is told."""
    commands = [network.part(sender, receiver) for sender, receiver in cut]
    return json.dumps({"nodes": {n: h.node_id for n, h in hosts.items()}, "cut": commands, **more})


@pytest.mark.parametrize("cut", [BOTH, THERE, BACK], ids=["both ways", "there", "back"])
def test_two_hosts_do_not_reach_each_other(network, hosts, cut, tmp_path):
    """The driver is at one of them, and an actor and an object at the other."""
    before = {number: host.node_id for number, host in hosts.items()}
    program = hosts[2].start_program(
        PRELUDE
        + """
@ray.remote(scheduling_strategy=at("3", soft=True))
def make(name):
    open(os.path.join(given["folder"], f"{name}-{os.getpid()}"), "w").close()
    return np.ones(4_000_000)

def times_made(name):
    return len([file for file in os.listdir(given["folder"]) if file.startswith(name)])

spread = where.options(scheduling_strategy="SPREAD", max_retries=0)
counter = Counter.options(scheduling_strategy=at("3", soft=True)).remote()
assert ray.get(counter.add.remote(), timeout=30) == 1
assert len(set(ray.get([spread.remote() for _ in range(12)], timeout=30))) == 3
made = make.remote("before")
ray.wait([made], fetch_local=False, timeout=30)

cut()
found = timed([spread.remote() for _ in range(12)])[1]
times = {
    "spread": timed([spread.remote() for _ in range(12)])[1],
    "call": timed(counter.add.remote())[1],
    "object": timed(made)[1],
    "soft": timed(where.options(scheduling_strategy=at("3", soft=True)).remote())[1],
}
node, times["hard"] = timed(where.options(scheduling_strategy=at("3")).remote())
assert node == there, "it is reached"
assert timed(made)[0].sum() == 4_000_000
assert times_made("before") == 1, "it was read, not made again"
assert timed(make.remote("after"))[0].sum() == 4_000_000
for number in range(3, 50):
    assert timed(counter.add.remote())[0] == number, "the same actor, and every call once"
assert is_alive(there)
print(json.dumps({"found": found, "times": times}), flush=True)

sys.stdin.readline()
assert timed(counter.add.remote())[0] == 50
made = make.remote("healed")
ray.wait([made], fetch_local=False, timeout=30)
print("made", flush=True)
while sys.stdin.readline() == "again\\n":
    ray.get(made, timeout=30)
    made = make.remote("again")
    ray.wait([made], fetch_local=False, timeout=30)
    print("got", flush=True)
""",
        given(network, hosts, cut, folder=str(tmp_path)),
    )
    try:
        line = program.stdout.readline()
        assert line, program.communicate()
        result = json.loads(line)
        print(result)
        assert result["found"] < UNTIL_FOUND_S
        assert all(took < UNTIL_FOUND_S for took in result["times"].values()), result

        network.unite()
        print(file=program.stdin, flush=True)
        assert program.stdout.readline() == "made\n", program.communicate()

        def head_is_out_of_it():
            """32 MB come, and not through the head."""
            passed = network.carried("port1")
            print("again", file=program.stdin, flush=True)
            assert program.stdout.readline() == "got\n", program.communicate()
            return network.carried("port1") - passed < 10_000_000

        wait_until(head_is_out_of_it, 30, "the way is straight again")
        print(file=program.stdin, flush=True)
        finish(program)
        assert before == {number: host.node_id for number, host in hosts.items()}
    finally:
        program.kill()
        program.wait()


def test_an_object_is_on_its_way(network, hosts):
    """Half of it has come: the rest comes through the third host."""
    program = hosts[2].start_program(
        PRELUDE
        + """
size = 400_000_000
make = ray.remote(max_retries=0)(lambda: np.ones(size, np.uint8))
made = make.options(scheduling_strategy=at("3")).remote()
ray.wait([made], fetch_local=False, timeout=60)
print("made", flush=True)
sys.stdin.readline()
value, took = timed(made, 60)
assert value.sum(dtype=int) == size and is_alive(there)
print(took)
""",
        given(network, hosts, BOTH),
    )
    try:
        with network.slow(3):
            assert program.stdout.readline() == "made\n", program.communicate()
            before = network.carried()
            print(file=program.stdin, flush=True)
            wait_until(lambda: network.carried() - before > 30_000_000, message="it is on its way")
            for sender, receiver in BOTH:
                namespaces.ip(*network.part(sender, receiver)[1:])
            assert network.carried() - before < 390_000_000, "all of it has come before the cut"
            print(finish(program))
    finally:
        program.kill()
        program.wait()


def test_no_third_host_leads_there(network, hosts):
    """Then what may go elsewhere does, calls end with an error, the actor lives on and can be
    called when the two reach each other again; and what insists on the host waits for that."""
    program = hosts[2].start_program(
        PRELUDE
        + """
counter = Counter.options(scheduling_strategy=at("3"), name="counter").remote()
assert ray.get(counter.add.remote(), timeout=30) == 1
slow = ray.remote(max_retries=1)(lambda: time.sleep(given["slow"]) or "done")
running = slow.options(scheduling_strategy=at("3", soft=True)).remote()
make = ray.remote(lambda: np.ones(4_000_000)).options(scheduling_strategy=at("3", soft=True))
made, made_once = make.remote(), make.options(max_retries=0).remote()
ray.wait([made, made_once], num_returns=2, fetch_local=False, timeout=30)
print("there", flush=True)
sys.stdin.readline()
cut()
began = time.monotonic()
try:
    print(ray.get(counter.add.remote(), timeout=60))
except ray.exceptions.ActorUnavailableError as error:
    print(json.dumps(["unavailable", time.monotonic() - began]), flush=True)
spread = where.options(scheduling_strategy="SPREAD")
(nodes, took) = timed([spread.remote() for _ in range(6)])
assert set(nodes) == {given["nodes"]["2"]}, nodes
soft = timed(where.options(scheduling_strategy=at("3", soft=True)).remote())
assert soft[0] == given["nodes"]["2"]
hard = where.options(scheduling_strategy=at("3")).remote()
assert ray.wait([hard], timeout=1)[0] == []
assert ray.get(running, timeout=60) == "done", "it was begun again, here"
assert timed(made)[0].sum() == 4_000_000, "it was made again, here"
try:
    raise AssertionError(ray.get(made_once, timeout=60))
except ray.exceptions.ObjectLostError:
    pass
assert is_alive(there)
print(json.dumps([took, soft[1]]), flush=True)
sys.stdin.readline()
assert timed(hard)[0] == there
again = timed(counter.add.remote())
assert again[0] in (2, 3), "the same actor; the call that nobody knows of ran or did not"
print(json.dumps(again), flush=True)
""",
        given(network, hosts, BOTH, slow=20),
    )
    try:
        assert program.stdout.readline() == "there\n", program.communicate()
        # The head's node goes, its control service stays.
        gone = hosts[1].node_id
        os.kill(hosts[1].pid(), signal.SIGKILL)
        wait_until(lambda: gone[:8] not in alive(hosts[2]), 20, "it has left")
        began = time.monotonic()
        print(file=program.stdin, flush=True)
        for _ in range(2):
            line = program.stdout.readline()
            assert line, program.communicate()
            print(f"{time.monotonic() - began:.1f} s: {line}")
        network.unite()
        print(file=program.stdin, flush=True)
        print(finish(program))
    finally:
        program.kill()
        program.wait()


def alive(host):
    """What is said of the nodes that there are."""
    return host("status").stdout.partition("Left lately")[0]
