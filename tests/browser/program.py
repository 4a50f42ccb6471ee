"""A session for a browser to look at: tasks, some that fail, actors, objects, output.

Prints the dashboard's address and the log that grows, does `--tasks` tasks at once and then a few
all the time, until its input ends. With `--nodes` it is a cluster, and with `--pause` the tasks are
long enough for a picture.
"""

import argparse
import os
import random
import select
import sys
import time

import oxiray as ray
from oxiray.cluster_utils import Cluster
from oxiray.util import placement_group

CPUS = 4
MERGED = 3


def rest(pause):
    if pause:
        time.sleep(random.uniform(0.4, 1.6) * pause)


@ray.remote
def load_tile(number, pause=0):
    rest(pause)
    return bytes(200 + number % 100)


@ray.remote
def detect_edges(tile, pause=0):
    rest(2 * pause)
    return sum(value * len(tile) for value in range(2000))


@ray.remote
def merge(pause, *parts):
    rest(3 * pause)
    return sum(parts)


@ray.remote
def evaluate(total):
    print(f"evaluating {total}")
    time.sleep(0.005)
    if total % 7 == 0:
        return criterion(9)
    return criterion(10)


def criterion(scores):
    if scores != 10:
        raise ValueError(f"expected 10 classes, got {scores}")
    return scores


@ray.remote
def tick(n):
    time.sleep(random.uniform(0.02, 0.2))
    return n


@ray.remote(num_cpus=0)
class Learner:
    def __init__(self):
        self.step = 0

    def pid(self):
        return os.getpid()

    def learn(self):
        self.step += 1
        print(f"\x1b[32mINFO\x1b[0m  step {self.step} loss \x1b[36m{2 / self.step:.4f}\x1b[0m")
        return self.step


@ray.remote(num_cpus=0)
class Buffer:
    def add(self, item):
        return len(item)


@ray.remote(num_cpus=1000)
def never():
    pass


@ray.remote(max_retries=2, retry_exceptions=True)
def retried(tries):
    number = ray.get(tries.next.remote())
    if number < 2:
        raise ValueError(f"try {number}")


@ray.remote(num_cpus=0)
class Tries:
    number = -1

    def next(self):
        self.number += 1
        return self.number


def batch(tasks, pause):
    """Tiles that are loaded, looked at, and put together by threes: each kind feeds the next."""
    done = []
    while len(done) < tasks:
        tiles = [load_tile.remote(i, pause) for i in range(MERGED)]
        edges = [detect_edges.remote(tile, pause) for tile in tiles]
        done += [*tiles, *edges, merge.remote(pause, *edges)]
        if pause and len(done) % 16 == 0:
            done.append(evaluate.remote(len(done)))
    ray.wait(done, num_returns=len(done))


def start(nodes):
    if nodes == 1:
        return ray.init("local", num_cpus=CPUS, dashboard_port=0, log_to_driver=False)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": CPUS, "dashboard_port": 0})
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=CPUS)
    return ray.init(address=cluster.address, log_to_driver=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0, help="seconds, about, of a short task")
    arguments = parser.parse_args()
    context = start(arguments.nodes)
    learner, buffer = Learner.remote(), Buffer.remote()
    log = f"worker-{ray.get(learner.pid.remote())}.out"
    batch(arguments.tasks, arguments.pause)
    ray.wait([evaluate.remote(n) for n in range(40)], num_returns=40)
    ray.get(tick.options(name='odd "<script>alert(1)</script>"').remote(0))
    tries = Tries.remote()
    ray.get(retried.remote(tries))
    kept = [ray.put(bytes(2_000_000 + i)) for i in range(5)]
    kept.append(never.remote())
    groups = [placement_group([{"CPU": 0.01}] * 3, strategy="SPREAD", name="trainers")]
    groups.append(placement_group([{"CPU": 1000}], name="far too large"))
    groups[0].wait()
    print(f"http://{context.dashboard_url} {log}", flush=True)
    n = 0
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        n += 1
        if arguments.pause:
            batch(400, arguments.pause)
        ray.get([tick.remote(n), learner.learn.remote(), buffer.add.remote(kept[n % 5])])
        ray.wait([evaluate.remote(n)])
    ray.shutdown()


if __name__ == "__main__":
    main()
