"""Cancels and kills at random points, under load: every `get` ends, and nothing is left."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import time

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.exceptions import RayActorError, TaskCancelledError, WorkerCrashedError
from oxiray.util.state import list_objects

LONG = os.environ.get("OXIRAY_TEST_LONG") == "1"
ROUNDS = 200 if LONG else 12
CALLS = 60
LARGE = 200_000  # goes through the store


@ray.remote(max_retries=2)
def work(x):
    time.sleep(0.001 * (x % 5))
    return x, os.getpid(), bytes(LARGE if x % 7 == 0 else 10)


@ray.remote(max_retries=2, num_cpus=0)
def parent(x):
    return x, os.getpid(), ray.get([work.remote(x + i) for i in range(3)])


class Body:
    def call(self, x):
        time.sleep(0.001 * (x % 5))
        return x, os.getpid(), bytes(LARGE if x % 7 == 0 else 10)


@ray.remote
class Plain(Body):
    pass


@ray.remote(max_concurrency=8)
class Threaded(Body):
    pass


@ray.remote
class OnALoop:
    async def call(self, x):
        await asyncio.sleep(0.001 * (x % 5))
        return x, os.getpid(), bytes(LARGE if x % 7 == 0 else 10)


def kill_one(dice, pids):
    """A worker that answered before; it may have gone meanwhile."""
    if pids:
        try:
            os.kill(dice.choice(sorted(pids)), signal.SIGKILL)
        except ProcessLookupError:
            pass


@pytest.mark.timeout(1800 if LONG else 240)
def test_each_get_ends_and_nothing_is_left(fresh):
    fresh(num_cpus=4)
    dice = random.Random(20261117)
    kinds = [
        kind.options(max_restarts=-1, max_task_retries=retries, num_cpus=0)
        for kind in (Plain, Threaded, OnALoop)
        for retries in (0, -1)
    ]
    actors = [kind.remote() for kind in kinds]
    pids, ends = set(), {"value": 0, "cancelled": 0, "died": 0}
    for _ in range(ROUNDS):
        submit = [work.remote, parent.remote, *(actor.call.remote for actor in actors)]
        refs = {}
        for x in range(CALLS):
            refs[dice.choice(submit)(x)] = x
            if dice.random() < 0.3:
                ray.cancel(dice.choice(list(refs)), recursive=dice.random() < 0.5)
            if dice.random() < 0.02:
                kill_one(dice, pids)
        for ref in dice.sample(list(refs), CALLS // 5):
            ray.cancel(ref)
        kill_one(dice, pids)
        for ref, x in refs.items():
            try:
                value, pid, _ = ray.get(ref, timeout=120)
                assert value == x
                pids.add(pid)
                ends["value"] += 1
            except TaskCancelledError:
                ends["cancelled"] += 1
            except (RayActorError, WorkerCrashedError):
                ends["died"] += 1
        pids = set(dice.sample(sorted(pids), min(len(pids), 8)))
        del ref, refs
    assert all(ends.values()), f"each way to end was taken: {ends}"
    for actor in actors:
        ray.kill(actor)
    del actor, actors, submit
    gc.collect()
    wait_until(lambda: ray.available_resources().get("CPU") == 4, timeout=60)
    wait_until(lambda: not list_objects(limit=1000), timeout=60)
