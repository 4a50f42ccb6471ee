"""The driver's program: a mixed load in a few threads, each operation recorded with how it ended.

    python -m chaos.load '{"seed": 1, "records": PATH, "runs": PATH, "begin": MONOTONIC}'

It prints `ready`, goes on until its standard input ends, lets go of everything, and prints what it
then finds left in the cluster.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import random
import re
import subprocess
import sys
import threading
import time

import numpy as np
import oxiray as ray
from oxiray.exceptions import GetTimeoutError, TaskCancelledError
from oxiray.util.placement_group import placement_group, remove_placement_group
from oxiray.util.scheduling_strategies import (
    NodeAffinitySchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)
from oxiray.util.state import list_objects

from . import works

THREADS = 6
# A `get` that takes longer is given up: it hangs.
PATIENCE_S = 60.0
SETTLE_S = 60.0
LARGE = 8 * 2**20
STORE_TIMES = 4


class Wrong(Exception):
    """Another value than the serial one."""


def expect(found, wanted, what):
    if found != wanted:
        raise Wrong(f"{what}: {found!r} instead of {wanted!r}"[:500])


def why(text):
    """What the command line knows of the task that a text names."""
    named = re.search(r"\(([0-9a-f]{48})\)", text)
    if not named:
        return ""
    program = os.path.join(os.path.dirname(ray.__file__), "_bin", "oxiray")
    try:
        asked = subprocess.run(
            [program, "why", named[1]], capture_output=True, text=True, timeout=20
        )
    except subprocess.TimeoutExpired:
        return "`oxiray why` did not answer within 20 s"
    return asked.stdout + asked.stderr


class Load:
    def __init__(self, seed, records, runs, begin, store, only):
        self.seed, self.runs, self.begin, self.store = seed, runs, begin, store
        self.records = open(records, "a", buffering=1)
        self.stopped = threading.Event()
        self.numbers = itertools.count()
        self.lock = threading.Lock()
        self.actors = {}
        # Beside each, how often it is drawn.
        self.kinds = [
            (self.tasks, 6),
            (self.nested, 4),
            (self.chain, 4),
            (self.shuffle, 3),
            (self.stream, 3),
            (self.large, 1),
            (self.restartable, 4),
            (self.unretried, 3),
            (self.fragile, 3),
            (self.named, 3),
            (self.group, 2),
            (self.cancelled, 2),
        ]
        if only:
            self.kinds = [(kind, weight) for kind, weight in self.kinds if kind.__name__ in only]

    def run(self, thread):
        dice = random.Random(f"load {self.seed} {thread}")
        operations, weights = zip(*self.kinds, strict=True)
        while not self.stopped.is_set():
            self.once(dice.choices(operations, weights)[0], dice)

    def once(self, operation, dice):
        begin, tasks, outcome, error, text = self.now(), 0, "value", "", ""
        try:
            tasks = operation(dice)
        except Wrong as caught:
            outcome, text = "wrong", str(caught)
        except GetTimeoutError as caught:
            outcome, error, text = "late", "GetTimeoutError", f"{caught} {why(str(caught))}"
        except Exception as caught:
            outcome, error, text = "error", type(caught).__name__, str(caught)
            if not ray.is_initialized() or "no longer in the cluster" in text:
                self.stopped.set()  # the session is over: one such record of a thread says it
        record = {"kind": operation.__name__, "begin": begin, "end": self.now(), "tasks": tasks}
        record |= {"outcome": outcome, "error": error, "text": text[:3000]}
        self.records.write(json.dumps(record) + "\n")
        return outcome

    def now(self):
        return round(time.monotonic() - self.begin, 3)

    def get(self, refs):
        return ray.get(refs, timeout=PATIENCE_S)

    # What is done, each returning how many tasks or calls that was.

    def tasks(self, dice):
        xs = [dice.randrange(10**6) for _ in range(20)]
        spread = works.square.options(scheduling_strategy="SPREAD")
        found = self.get([spread.remote(x) for x in xs])
        expect(found, [x * x for x in xs], "squares")
        return len(xs)

    def nested(self, dice):
        groups = [[dice.randrange(10**6) for _ in range(4)] for _ in range(4)]
        spread = works.sum_of_squares.options(scheduling_strategy="SPREAD")
        found = self.get([spread.remote(xs) for xs in groups])
        expect(found, [sum(x * x for x in xs) for xs in groups], "sums of squares")
        return 5 * len(groups)

    def chain(self, dice):
        size = dice.choice([10, 40_000])
        array = works.block(dice.randrange(1000), size)
        # Held to the end: what was put is not made again once it was let go.
        ref = first = ray.put(array)
        xs = [dice.randrange(1000) for _ in range(8)]
        for x in xs:
            ref = works.add_to.options(scheduling_strategy="SPREAD").remote(ref, x)
        expect(int(self.get(ref).sum()), int((array + sum(xs)).sum()), "the end of a chain")
        del first
        return len(xs)

    def shuffle(self, dice):
        size, parts = 40_000, 4
        seeds = [dice.randrange(1000) for _ in range(parts)]
        spread = works.split.options(num_returns=parts, scheduling_strategy="SPREAD")
        split = [spread.remote(seed, size, parts) for seed in seeds]
        merged = [works.merge.remote(*column) for column in zip(*split, strict=True)]
        blocks = [works.block(seed, size) for seed in seeds]
        wanted = [int(sum(int(b[part::parts].sum()) for b in blocks)) for part in range(parts)]
        expect(self.get(merged), wanted, "a shuffle")
        return 2 * parts

    def stream(self, dice):
        seed, count, size = dice.randrange(1000), dice.randrange(1, 12), dice.choice([5, 30_000])
        stream = works.items.options(scheduling_strategy="SPREAD").remote(seed, count, size)
        got = 0
        for ref in stream:
            same = np.array_equal(self.get(ref), works.block(seed + got, size))
            expect(same, True, f"item {got} of {count}")
            got += 1
        expect(got, count, "the number of items")
        return count

    def large(self, dice):
        count = STORE_TIMES * self.store // LARGE
        seeds = [dice.randrange(1000) for _ in range(count)]
        # All at one node, if it lives: four times what its store has.
        nodes = sorted(node["NodeID"] for node in ray.nodes() if node["Alive"])
        there = NodeAffinitySchedulingStrategy(dice.choice(nodes), soft=True)
        make = works.make_block.options(scheduling_strategy=there)
        blocks = [make.remote(seed, LARGE // 8) for seed in seeds]
        sums = [works.checksum.remote(block) for block in blocks]
        ones = np.arange(LARGE // 8, dtype=np.int64)
        wanted = [(seed + 1) * int(ones.sum()) + seed * len(ones) for seed in seeds]
        expect(self.get(sums), wanted, "sums of large objects")
        return 2 * count

    def restartable(self, dice):
        actor = self.actor(works.Restartable, "once-a-life", dice.randrange(3))
        return self.calls(actor, dice)

    def unretried(self, dice):
        return self.calls(self.actor(works.Unretried, "once", dice.randrange(3)), dice)

    def fragile(self, dice):
        number = dice.randrange(3)
        try:
            return self.calls(self.actor(works.Fragile, "once", number), dice)
        except ray.exceptions.ActorDiedError:
            self.actors.pop((works.Fragile, number), None)
            raise

    def actor(self, kind, rule, number):
        with self.lock:
            if (kind, number) not in self.actors:
                name = f"{rule}-{number}-{next(self.numbers)}"
                make = kind.options(scheduling_strategy="SPREAD")
                self.actors[kind, number] = make.remote(self.runs, rule, name)
            return self.actors[kind, number]

    def calls(self, actor, dice):
        xs = [dice.randrange(10**6) for _ in range(8)]
        answers = self.get([actor.call.remote(f"call-{next(self.numbers)}", x) for x in xs])
        expect([one["value"] for one in answers], [x * x for x in xs], "answers of an actor")
        expect(any(one["again"] for one in answers), False, "a call ran twice in one life")
        for before, after in itertools.pairwise(answers):
            if before["life"] == after["life"] and before["count"] >= after["count"]:
                raise Wrong(f"calls of one caller ran out of order: {answers}")
        return len(xs)

    def named(self, dice):
        number = dice.randrange(3)
        name = f"named-{number}"
        make = works.Restartable.options(name=name, get_if_exists=True, lifetime="detached")
        done = self.calls(make.remote(self.runs, "once-a-life", name), dice)
        try:
            found = ray.get_actor(name)
        except ValueError as error:
            raise Wrong(f"{name} lives, and is not found: {error}") from None
        answer = self.get(found.call.remote(f"call-{next(self.numbers)}", 3))
        expect(answer["value"], 9, "an answer of an actor that was looked up")
        return done + 1

    def group(self, dice):
        strategy = dice.choice(["SPREAD", "PACK", "STRICT_SPREAD", "STRICT_PACK"])
        group = placement_group([{"slot": 1, "CPU": 1}] * 2, strategy=strategy)
        try:
            if not group.wait(PATIENCE_S):
                raise GetTimeoutError(f"no {strategy} group of two within {PATIENCE_S} s")
            refs = []
            for bundle, x in enumerate((3, 4)):
                place = PlacementGroupSchedulingStrategy(group, bundle)
                refs.append(works.square.options(scheduling_strategy=place).remote(x))
            expect(self.get(refs), [9, 16], "squares in a group")
        finally:
            remove_placement_group(group)
        return 2

    def cancelled(self, dice):
        refs = [works.sleep.options(num_cpus=0).remote(30 + number) for number in range(4)]
        time.sleep(dice.uniform(0, 0.1))
        for ref in refs:
            ray.cancel(ref)
        for ref in refs:
            try:
                raise Wrong(f"a task of 30 s was cancelled and returned {self.get(ref)}")
            except (TaskCancelledError, ray.exceptions.WorkerCrashedError):
                continue
        return len(refs)

    # Afterwards.

    def each_once_more(self):
        """Everything works again, at the second try where the first may meet a dead actor."""
        dice = random.Random(self.seed)
        works = lambda kind: self.once(kind, dice) == "value"  # noqa: E731
        names = [k.__name__ for k, _ in self.kinds if not (works(k) or works(k))]
        return [f"{name} does not work when all is over" for name in names]

    def settle(self):
        """Lets go of everything; what is left in the cluster then, in words."""
        while self.actors:
            ray.kill(self.actors.popitem()[1])
        for number in range(3):
            try:
                ray.kill(ray.get_actor(f"named-{number}"))
            except ValueError:
                continue
        deadline = time.monotonic() + SETTLE_S
        while True:
            gc.collect()
            left = []
            total, free = ray.cluster_resources(), ray.available_resources()
            for name in ("CPU", "slot"):
                if free.get(name, 0) != total.get(name):
                    left.append(f"{name}: {free.get(name, 0)} of {total.get(name)} are free")
            if objects := list_objects(limit=1000, raise_on_missing_output=False):
                left.append(f"{len(objects)} objects, as {objects[0]}")
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.1)


def main(given):
    begin = given.pop("begin")
    ray.init(address="auto", logging_level="error", log_to_driver=False)
    load = Load(begin=begin, **given)
    threads = [threading.Thread(target=load.run, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.read()
    load.stopped.set()
    deadline = time.monotonic() + PATIENCE_S + 10
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    left = [f"thread {n} waits still" for n, thread in enumerate(threads) if thread.is_alive()]
    left = left or load.each_once_more()
    print(json.dumps(left or load.settle()), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
