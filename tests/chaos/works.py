"""What the load has done: tasks and actors whose results can be known without them.

Those that must not run twice note each run where no fault reaches: a line in a file outside the
hosts' disks, by one write.
"""

from __future__ import annotations

import json
import os
import time
import uuid

import numpy as np
import oxiray as ray


def note(path, call, rule, life="", actor=""):
    line = json.dumps(
        {"call": call, "rule": rule, "life": life, "actor": actor, "at": time.monotonic()}
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode() + b"\n")
    finally:
        os.close(descriptor)


def noted(path):
    try:
        with open(path) as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def block(seed, size):
    """An array that follows from a number."""
    return np.arange(size, dtype=np.int64) * (seed % 1000 + 1) + seed


@ray.remote(max_retries=-1)
def square(x):
    return x * x


@ray.remote(max_retries=-1, num_cpus=0)
def sum_of_squares(xs):
    return sum(ray.get([square.remote(x) for x in xs]))


@ray.remote(max_retries=-1)
def add_to(array, x):
    return array + x


@ray.remote(max_retries=-1)
def make_block(seed, size):
    return block(seed, size)


@ray.remote(max_retries=-1)
def checksum(array):
    return int(array.sum())


@ray.remote(max_retries=-1)
def split(seed, size, parts):
    array = block(seed, size)
    return [array[part::parts] for part in range(parts)]


@ray.remote(max_retries=-1)
def merge(*arrays):
    return int(sum(int(array.sum()) for array in arrays))


@ray.remote(max_retries=-1)
def items(seed, count, size):
    for number in range(count):
        yield block(seed + number, size)


@ray.remote(max_retries=0)
def sleep(seconds):
    time.sleep(seconds)
    return seconds


class Body:
    """Notes its calls, and says which incarnation of it ran them, and as which of its calls."""

    def __init__(self, path, rule, name):
        self.path, self.rule, self.name = path, rule, name
        self.life = uuid.uuid4().hex
        self.count = 0
        self.seen = set()

    def call(self, call, x):
        note(self.path, call, self.rule, self.life, self.name)
        again = call in self.seen
        self.seen.add(call)
        self.count += 1
        return {"life": self.life, "count": self.count, "again": again, "value": x * x}


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Restartable(Body):
    pass


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=0)
class Unretried(Body):
    pass


@ray.remote(num_cpus=0, max_restarts=0)
class Fragile(Body):
    pass
