"""`oxiray why`: tasks, actors and classes; chains to their end; deadlocks."""

from __future__ import annotations

import os
import subprocess
import sysconfig

import oxiray as ray
import pytest
from conftest import wait_until

PROGRAM = os.path.join(sysconfig.get_path("scripts"), "oxiray")


@pytest.fixture(scope="module", autouse=True)
def session():
    ray.shutdown()
    ray.init(num_cpus=4, resources={"tool": 1}, namespace="tests", logging_level="error")
    yield
    ray.shutdown()


def why(about, code=0):
    done = subprocess.run([PROGRAM, "why", about], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


def wait_for_why(about, *parts):
    def told():
        text = why(about)
        return all(part in text for part in parts) and text

    return wait_until(told, message=f"{parts} of {about}")


@ray.remote
def held_up(gate):
    gate.wait()


@ray.remote
def after(value):
    return value


@ray.remote
class Waiter:
    def __init__(self, value=None):
        self.other = None

    def meet(self, other):
        self.other = other

    def ask(self, gate):
        gate.wait()
        return ray.get(self.other.answer.remote())

    def answer(self):
        return ray.get(self.other.rest.remote())

    def rest(self):
        return 1

    def hold(self, gate):
        gate.wait()


def test_a_chain_is_followed_to_its_end(gate):
    last = after.options(name="last").remote(
        after.options(name="middle").remote(held_up.remote(gate))
    )
    text = wait_for_why("last", "held_up", "runs in process")
    assert text.startswith("last (") and text.index("middle (") < text.index("held_up (")
    assert "deadlock" not in text
    gate.open()
    ray.get(last)
    assert "has FINISHED" in why("last")


def test_actors_by_name_id_and_class(gate):
    actor = Waiter.options(name="the waiter").remote()
    ray.get(actor.rest.remote())
    for about in ("the waiter", "Waiter", actor._actor_id.hex(), actor._actor_id.hex()[:12]):
        text = why(about)
        assert f'The actor Waiter "the waiter" ({actor._actor_id.hex()}) is ALIVE' in text, about
    call = actor.hold.remote(gate)
    wait_for_why("the waiter", "its Waiter.hold runs in process")
    gate.open()
    ray.get(call)
    wait_for_why("the waiter", "is ALIVE and idle")
    waiting = Waiter.options(name="another", num_cpus=50).remote()
    text = wait_for_why("another", "is not there yet", "needs CPU: 50")
    assert "deadlock" not in text
    del waiting
    ray.kill(actor)
    wait_for_why(actor._actor_id.hex(), "is DEAD: it was killed by ray.kill")
    assert "there is no task or actor nobody" in why("nobody", code=1)


def test_a_child_that_needs_what_its_parent_holds():
    @ray.remote(resources={"tool": 1})
    def child():
        return 1

    @ray.remote(resources={"tool": 1})
    def parent():
        return ray.get(child.remote())

    stuck = parent.remote()
    text = wait_for_why("child", "This is a deadlock: ")
    assert "child waits for parent waits for child" in text and "held by parent (" in text
    assert "This is a deadlock" in why("parent")
    del stuck


def test_two_actors_that_wait_for_each_other(gate):
    one, two = Waiter.remote(), Waiter.remote()
    ray.get([one.meet.remote(two), two.meet.remote(one)])
    stuck = one.ask.remote(gate)
    gate.open()
    text = wait_for_why(one._actor_id.hex(), "This is a deadlock: ")
    for name in ("Waiter.ask", "Waiter.answer", "Waiter.rest"):
        assert name in text, text
    ray.kill(one)
    ray.kill(two)
    del stuck
