"""Streams under load while workers are killed, calls cancelled and readers dropped, at random."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import numpy as np
import oxiray as ray
from conftest import wait_until
from oxiray import _native
from oxiray.exceptions import RayActorError, TaskCancelledError

SECONDS = 12
READERS = 6


@ray.remote(max_retries=-1)
def items(path, until, size, pause):
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")
    for number in range(until):
        if pause:
            time.sleep(pause)
        yield np.full(size, number)


@ray.remote(max_restarts=-1, max_task_retries=-1)
class Maker:
    def items(self, path, until, size, pause):
        with open(path, "a") as file:
            file.write(f"{os.getpid()}\n")
        for number in range(until):
            if pause:
                time.sleep(pause)
            yield np.full(size, number)


def read_streams(path, seed, until, failures):
    """Reads streams of every kind; each must come whole, or as far as it was read."""
    choose = random.Random(seed)
    actor = Maker.remote() if seed % 2 else None
    try:
        while time.monotonic() < until:
            make = items if actor is None else actor.items
            count, size = choose.randrange(40), choose.choice([1, 20, 30_000])
            ahead = choose.choice([-1, 1, 3])
            stream = make.options(_generator_backpressure_num_objects=ahead)
            generator = stream.remote(path, count, size, choose.choice([0, 0.002]))
            stop = choose.randrange(40) if choose.random() < 0.5 else count + 1
            cancels = choose.random() < 0.2
            got = 0
            for ref in generator:
                if got == stop:
                    break
                try:
                    value = ray.get(ref, timeout=60)
                except (TaskCancelledError, RayActorError):
                    assert cancels
                    break
                assert value[0] == got, f"{value[0]} at {got}"
                got += 1
                if cancels and got == stop // 2:
                    ray.cancel(generator)
            else:
                assert cancels or got == count, f"{got} of {count}"
    except BaseException as error:
        failures.append(error)


def test_streams_come_whole_and_leave_nothing(fresh, tmp_path):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    fresh(num_cpus=4)
    path, failures = str(tmp_path / "workers"), []
    until = time.monotonic() + SECONDS
    readers = [
        threading.Thread(target=read_streams, args=(path, seed + number, until, failures))
        for number in range(READERS)
    ]
    for reader in readers:
        reader.start()
    choose = random.Random(seed)
    kills = 0
    while time.monotonic() < until and not failures:
        time.sleep(choose.uniform(0.05, 0.3))
        pids = open(path).read().split()[-6:] if os.path.exists(path) else []
        if pids:
            try:
                os.kill(int(choose.choice(pids)), signal.SIGKILL)
                kills += 1
            except OSError:
                continue
    for reader in readers:
        reader.join(120)
        assert not reader.is_alive(), "a reader waits for ever"
    assert not failures, failures
    assert kills > 5
    wait_until(lambda: _native.counts() == (0, 0), 30, "nothing is left")
    wait_until(lambda: _native.cluster_view()["store_used"] == 0, 30, "the store is empty")
