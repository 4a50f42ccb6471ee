"""What an actor may do as it ends in good order, and where it may say that it ends."""

from __future__ import annotations

import asyncio
import atexit
import os

import oxiray as ray
import pytest
from conftest import is_alive, wait_until
from oxiray.actor import exit_actor
from oxiray.exceptions import RayActorError

pytestmark = pytest.mark.usefixtures("cluster")


def note(path, word):
    with open(path, "a") as file:
        file.write(f"{word}\n")


def noted(path):
    return path.read_text().split() if path.exists() else []


class Plain:
    """Notes in a file how it ends."""

    def __init__(self, path, fails=False):
        self.path, self.fails = path, fails
        atexit.register(note, path, "atexit")

    def __ray_shutdown__(self):
        note(self.path, "shutdown")
        if self.fails:
            raise ValueError("half cleaned up")

    def pid(self):
        return os.getpid()

    def leave(self):
        exit_actor()


class Async(Plain):
    async def pid(self):
        return os.getpid()


KINDS = {"plain": ray.remote(Plain), "async": ray.remote(Async)}
KINDS["threads"] = KINDS["plain"].options(max_concurrency=2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["last handle", "terminate", "exit"])
def test_it_cleans_up_before_its_process_does(kind, how, tmp_path):
    path = tmp_path / "noted"
    actor = KINDS[kind].remote(str(path))
    pid = ray.get(actor.pid.remote())
    if how == "terminate":
        actor.__ray_terminate__.remote()
    elif how == "exit":
        with pytest.raises(RayActorError, match="exit_actor"):
            ray.get(actor.leave.remote())
    del actor
    wait_until(lambda: not is_alive(pid))
    assert noted(path) == ["shutdown", "atexit"]


def test_one_that_is_killed_does_not(tmp_path):
    path = tmp_path / "noted"
    actor = KINDS["plain"].remote(str(path))
    pid = ray.get(actor.pid.remote())
    ray.kill(actor)
    wait_until(lambda: not is_alive(pid))
    assert noted(path) == []


def test_an_error_as_it_cleans_up_is_told_and_it_ends(tmp_path, capfd):
    path = tmp_path / "noted"
    actor = KINDS["plain"].remote(str(path), fails=True)
    pid = ray.get(actor.pid.remote())
    del actor
    wait_until(lambda: not is_alive(pid))
    assert noted(path) == ["shutdown", "atexit"]
    told = []

    def is_told():
        told.append(capfd.readouterr().err)
        return "half cleaned up" in "".join(told)

    wait_until(is_told)
    assert "__ray_shutdown__ raised an exception" in "".join(told)


@ray.remote
class Spawner:
    async def pid(self):
        return os.getpid()

    async def spawn(self):
        self.task = asyncio.ensure_future(self.leave())

    async def leave(self):
        await asyncio.sleep(0)
        exit_actor()


def test_a_task_that_the_user_spawned_ends_the_actor():
    """Of what such a task raises asyncio tells nobody: the actor lived on."""
    actor = Spawner.remote()
    pid = ray.get(actor.pid.remote())
    ray.get(actor.spawn.remote())
    wait_until(lambda: not is_alive(pid))
    with pytest.raises(RayActorError, match="exit_actor"):
        ray.get(actor.pid.remote())
