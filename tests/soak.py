"""A day of a program's habits in minutes: puts, borrowed and nested refs, drops in any order.

    python tests/soak.py --full    a million small objects and 20,000 of 1 MB
    python tests/soak.py --small 50000 --large 1000 --seed 7

Afterwards the store and every process's tables must be empty, and memory no more than half-way.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import tempfile
import time

import oxiray as ray
from rendezvous import Meeting
from storehouse import MB, children, is_empty, own_memory, shown, view, workers

# Live at one time in the driver's hands, of each kind.
MOST_SMALL, MOST_LARGE, MOST_NESTS = 200, 40, 60
# What a process may grow by in the second half, beyond noise: allocators keep some.
SLACK = 6 * MB


def small_value(rng):
    return rng.choice([rng.random(), "x" * rng.randrange(2000), {"a": [1, 2]}, b"y" * 500])


def put_some(small, large, seed):
    """Refs to `small` small objects and `large` of 1 MB, put by this process."""
    rng = random.Random(seed)
    refs = [ray.put(small_value(rng)) for _ in range(small)]
    return refs + [ray.put(bytes(MB)) for _ in range(large)]


@ray.remote
def mix(given, small, large, seed):
    """Puts, looks at some of what it was given, hands on some, forgets the rest."""
    rng = random.Random(seed)
    mine = put_some(small, large, seed)
    ray.get(rng.sample(mine, 3))
    if given:
        ray.get(rng.choice(given))
    rng.shuffle(mine)
    del mine[20:]
    ring = [mine[0]]
    ring.append(ring)  # only the garbage collector ends this
    handed = rng.sample(given, len(given) // 2) + mine[:6]
    return {"refs": handed, "nest": ray.put([mine[6], [mine[7]]]), "plain": seed}


@ray.remote
def relay(refs, depth, seed):
    """Passes refs on to tasks of its own."""
    if depth == 0:
        return refs[:2]
    return ray.get(relay.remote([ray.put(refs), *refs[1:]], depth - 1, seed))


@ray.remote
class Keeper:
    """Keeps what it is given and what it puts, and drops it later, in any order."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.kept = []

    def keep(self, refs, small, large):
        self.kept.append((refs, put_some(small, large, self.rng.random())))
        if len(self.kept) > 8:
            del self.kept[self.rng.randrange(len(self.kept))]

    def hand_out(self):
        refs = [ref for refs, mine in self.kept for ref in (*refs[:1], *mine[:1])]
        return self.rng.sample(refs, min(4, len(refs)))

    def clear(self):
        self.kept.clear()
        gc.collect()

    def counts(self):
        return ray._native.counts()


@ray.remote(num_cpus=0)
def look_around(meeting, name):
    """This worker's counts; it stays until the others are asked, too."""
    gc.collect()
    meeting.attend(name, timeout=5)
    return os.getpid(), ray._native.counts()


class Soak:
    """One run, in a session of its own."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.keepers = [Keeper.remote(seed + i) for i in range(2)]
        ray.get([keeper.counts.remote() for keeper in self.keepers])
        self.small, self.large, self.nests, self.running = [], [], [], []
        self.made = {"small": 0, "large": 0}

    def run(self, small, large):
        """Makes that many objects in all processes together, and drops them all."""
        goal = {"small": self.made["small"] + small, "large": self.made["large"] + large}
        each = max(1, small // max(1, large))
        actions = [self.put, self.put, self.nest, self.mix, self.relay, self.keep, self.take]
        while self.made["small"] < goal["small"] or self.made["large"] < goal["large"]:
            behind = self.made["large"] * each < self.made["small"]
            more = int(behind and self.made["large"] < goal["large"])
            self.rng.choice(actions)(more)
            self.drop()
        self.settle()

    def count(self, small, large):
        self.made["small"] += small
        self.made["large"] += large

    def put(self, more):
        self.small += put_some(50, 0, self.rng.random())
        self.large += [ray.put(bytes(MB)) for _ in range(3 * more)]
        self.count(50, 3 * more)

    def some(self, count):
        return (
            [self.rng.choice(self.small + self.large) for _ in range(count)] if self.small else []
        )

    def nest(self, more):
        refs = self.some(4)
        inner = ray.put(refs)
        self.nests.append(self.rng.choice([inner, ray.put({"r": [inner]}), ray.put((inner, refs))]))
        ring = [inner]
        ring.append(ring)
        self.count(2, 0)

    def mix(self, more):
        self.running.append(mix.remote(self.some(6), 60, 3 * more, self.rng.random()))
        self.count(61, 3 * more)

    def relay(self, more):
        if self.small:
            self.running.append(relay.remote(self.some(3), self.rng.randrange(3), 0))
            self.count(1, 0)

    def keep(self, more):
        keeper = self.rng.choice(self.keepers)
        self.running.append(keeper.keep.remote(self.some(4), 40, 2 * more))
        self.count(40, 2 * more)

    def take(self, more):
        self.running.append(self.rng.choice(self.keepers).hand_out.remote())

    def drop(self):
        rng = self.rng
        for pool, most in [
            (self.small, MOST_SMALL),
            (self.large, MOST_LARGE),
            (self.nests, MOST_NESTS),
        ]:
            rng.shuffle(pool)
            del pool[most:]
        while len(self.running) > 12:
            ref = self.running.pop(rng.randrange(len(self.running)))
            kind = rng.randrange(4)
            if kind == 0:
                continue  # nobody ever asks
            value = ray.get(ref)
            if kind == 1 and isinstance(value, dict):
                self.nests.append(value["nest"])
                self.small += value["refs"]
            elif kind == 2 and isinstance(value, list):
                ray.get([ref for ref in value if isinstance(ref, ray.ObjectRef)])

    def settle(self):
        for pool in (self.small, self.large, self.nests):
            pool.clear()
        ray.get(self.running)
        self.running.clear()
        ray.get([keeper.clear.remote() for keeper in self.keepers])
        gc.collect()

    def left(self):
        """What is left anywhere that should not be, in words; empty when all is well."""
        with tempfile.TemporaryDirectory(prefix="soak-") as directory:
            count = view()["workers"] - len(self.keepers)
            meeting = Meeting(directory, count)
            asked = dict(ray.get([look_around.remote(meeting, i) for i in range(count)]))
        asked.update(
            (f"keeper {i}", ray.get(keeper.counts.remote()))
            for i, keeper in enumerate(self.keepers)
        )
        left = {name: counts for name, counts in asked.items() if counts != (0, 0)}
        objects, tasks = ray._native.counts()
        # The handles of the keepers are references, too.
        if (objects, tasks) != (len(self.keepers), 0):
            left["driver"] = (objects, tasks)
        if not is_empty():
            left["store"] = shown()
        # Those that are sent away must go.
        if len(workers()) > view()["workers"]:
            left["workers"] = len(workers())
        return left

    def wait_until_nothing_is_left(self, timeout=20.0):
        deadline = time.monotonic() + timeout
        while left := self.left():
            if time.monotonic() > deadline:
                raise AssertionError(f"left after {timeout} s: {left}")


def memory():
    """Bytes that each process has for itself."""
    service = view()["pid"]
    pids = [os.getpid(), service, *children(service), *workers()]
    return {pid: own_memory(pid) for pid in pids}


def grown(before, after):
    """Processes that have clearly more than before."""
    return {
        pid: (before[pid], now)
        for pid, now in after.items()
        if pid in before and now > before[pid] + max(SLACK, before[pid] // 10)
    }


def soak(small, large, seed, store, say=print):
    """Runs in two halves; raises if anything is left or memory grows."""
    ray.init(num_cpus=2, object_store_memory=store, logging_level="error")
    try:
        run = Soak(seed)
        run.run(small // 10, large // 10)  # what is imported and mapped at first
        seen = []
        for half in (1, 2):
            begin = time.monotonic()
            run.run(small // 2, large // 2)
            run.wait_until_nothing_is_left()
            seen.append(memory())
            say(f"half {half}: {time.monotonic() - begin:.0f} s, made {run.made}, {shown()}")
            say("  memory in kB:", {pid: size >> 10 for pid, size in seen[-1].items()})
        more = grown(*seen)
        assert not more, f"memory grew, bytes by process: {more}; service {view()['pid']}"
    finally:
        ray.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=int, default=50_000)
    parser.add_argument("--large", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", type=int, default=300, help="MB; with 80 much is spilled")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    sizes = (1_000_000, 20_000) if options.full else (options.small, options.large)
    soak(*sizes, options.seed, options.store * MB)
    print("nothing is left, and memory is flat")
