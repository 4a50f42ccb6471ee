"""Errors of the engine name what they are about: the task and its attempt, the actor and where it
was, what a timeout waited for."""

from __future__ import annotations

import os
import signal
import socket

import oxiray as ray
import pytest
from conftest import is_alive, wait_until
from oxiray import _native
from oxiray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    GetTimeoutError,
    WorkerCrashedError,
)

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
class Counter:
    def pid(self):
        return os.getpid()

    def end(self, way):
        print("these are", flush=True)
        print("its last words", flush=True)
        way()


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def exited():
    os._exit(7)


def this_node():
    return f"node {ray.get_runtime_context().get_node_id()[:12]} ({socket.gethostname()})"


@pytest.mark.parametrize(
    "way, how", [(killed, "killed by signal 9 (SIGKILL)"), (exited, "exit code 7")]
)
def test_the_death_of_an_actor(way, how):
    actor = Counter.remote()
    pid = ray.get(actor.pid.remote())
    during, behind = actor.end.remote(way), actor.pid.remote()
    with pytest.raises(ActorDiedError) as caught:
        ray.get(during)
    text, about = str(caught.value), f"The actor Counter ({actor._actor_id.hex()})"
    assert text.startswith(f"{about} died during end: its process {pid} on {this_node()} ended:")
    assert how in text and "    these are\n    its last words" in text
    assert caught.value.actor_id == actor._actor_id.hex()
    with pytest.raises(ActorDiedError) as caught:
        ray.get(behind)
    assert str(caught.value).startswith(f"{about} died before pid, during or after end: its")
    with pytest.raises(ActorDiedError) as caught:
        ray.get(actor.pid.remote())
    assert str(caught.value).startswith(f"{about} died during end, and pid was not begun: its")
    assert how in str(caught.value)


def test_the_death_of_an_actor_that_was_killed():
    actor = Counter.remote()
    pid = ray.get(actor.pid.remote())
    ray.kill(actor)
    wait_until(lambda: not is_alive(pid))
    with pytest.raises(ActorDiedError) as caught:
        ray.get(actor.pid.remote())
    text = str(caught.value)
    assert f"Counter ({actor._actor_id.hex()})" in text
    assert f"it was killed by ray.kill (it was process {pid} on {this_node()})" in text


def test_a_call_that_was_lost_when_its_actor_was_started_again():
    actor = Counter.options(max_restarts=1).remote()
    with pytest.raises(ActorUnavailableError) as caught:
        ray.get(actor.end.remote(exited))
    text = str(caught.value)
    assert f"the actor {actor._actor_id.hex()} is being started again, and end was lost" in text
    assert "exit code 7" in text and "its last words" in text
    assert caught.value.actor_id == actor._actor_id.hex()


def test_an_argument_of_a_constructor_that_was_lost():
    @ray.remote
    class Holder:
        def __init__(self, value):
            self.value = value

        def get(self):
            return self.value

    holder = Holder.remote(dies.options(max_retries=0).remote())
    with pytest.raises(ActorDiedError) as caught:
        ray.get(holder.get.remote())
    text = str(caught.value)
    assert "an argument of its constructor could not be computed: dies was lost" in text


@ray.remote
def dies():
    print("going", flush=True)
    os._exit(9)


def test_a_crash_names_its_task_and_attempt():
    for retries in (0, 2):
        task = dies.options(max_retries=retries)
        with pytest.raises(WorkerCrashedError) as caught:
            ray.get(task.remote())
        attempt = retries + 1
        text = str(caught.value)
        assert text.startswith(f"dies was lost in attempt {attempt} of {attempt}: the worker")
        assert "exit code 9" in text and "    going" in text
    with pytest.raises(WorkerCrashedError, match=r"^my_task was lost in attempt 1 of 1"):
        ray.get(dies.options(name="my_task", max_retries=0).remote())


def test_bytes_are_told_in_units():
    with pytest.raises(ValueError, match=r"is 1024.0 TiB, more than this machine's memory, .*GiB$"):
        ray.init(object_store_memory=1 << 50)
    never = ray.remote(lambda: None).options(memory=1 << 49).remote()
    wait_until(lambda: "memory: 512.0 TiB" in str(_native.cluster_view()["waiting"]))
    del never


@ray.remote
def held_up(gate):
    gate.wait()


@ray.remote
def after(value):
    return value


def test_a_timeout_says_what_it_waited_for(gate):
    running = held_up.remote(gate)
    later = after.remote(running)
    never = after.options(name="never", num_cpus=99).remote(1)
    with pytest.raises(GetTimeoutError) as caught:
        ray.get(later, timeout=0.2)
    text = str(caught.value)
    assert f"ObjectRef({later.hex()}) is not there" in text
    assert (
        f"after ({later.task_id().hex()}) waits for its argument, to be returned by held_up" in text
    )
    assert "held_up, which runs" in text or "held_up, which is" in text
    with pytest.raises(GetTimeoutError) as caught:
        ray.get([ray.put(1), never, later, after.remote(later)], timeout=0.2)
    text = str(caught.value)
    assert "3 of 4 values are not there in time, of never and after (2)" in text
    assert "The first: never (" in text and "waits for a worker: no node is large enough" in text
    gate.open()
    assert ray.get(later) is None


def test_what_waits_is_told_by_name():
    never = after.options(name="too_large", num_cpus=97).remote(1)

    def told():
        return "\n".join(_native.cluster_view()["waiting"])

    whose = f"too_large (of the driver, pid {os.getpid()}) for 1 worker: no node is large enough"
    wait_until(lambda: whose in told())
    assert "worker(s)" not in told()
    del never
