"""Writes the timeline of a small program on two nodes to the file that it is given.

In it is what a viewer may trip over: tasks that need others, that start others, fail, never begin,
are retried, lose their worker, still run; an actor; spans within spans and of several threads;
names with quotes, and one that ends with a backslash; and tasks of about a microsecond, one close
after the other.
"""

import os
import sys
import tempfile
import threading
import time

import oxiray as ray
from oxiray.cluster_utils import Cluster

SHORT_TASKS = 1000


@ray.remote(scheduling_strategy="SPREAD")
def load(number):
    with ray.profile("read", extra_data={"rows": number, "said": 'a "quote" ✓'}):
        time.sleep(0.01)
        with ray.profile("parse"):
            time.sleep(0.005)
    return bytes(3_000_000)


@ray.remote(scheduling_strategy="SPREAD")
def train(data):
    time.sleep(0.02)
    return len(data)


@ray.remote(scheduling_strategy="SPREAD")
def merge(*parts):
    time.sleep(0.01)
    return sum(parts)


@ray.remote
def inner(number):
    time.sleep(0.005)
    return number


@ray.remote
def outer():
    return sum(ray.get([inner.remote(number) for number in range(3)]))


@ray.remote(max_retries=0)
def broken():
    time.sleep(0.003)
    raise ValueError("no 'luck'\n<b>é</b>")


@ray.remote(max_retries=3, retry_exceptions=True)
def third_time(path):
    with open(path, "a") as file:
        file.write("x")
    time.sleep(0.004)
    if os.path.getsize(path) < 3:
        raise OSError("not yet")


@ray.remote(max_retries=1)
def dies_once(path):
    if not os.path.exists(path):
        open(path, "w").close()
        os._exit(3)


@ray.remote
def threaded():
    """Three spans that begin and end in the same order, so that each overlaps the others."""
    all_begun = threading.Barrier(3)
    begun, ended = ([threading.Event() for _ in range(3)] for _ in range(2))

    def mark(number):
        with ray.profile(f"of thread {number}"):
            begun[number].set()
            all_begun.wait()
            if number > 0:
                ended[number - 1].wait()
        ended[number].set()

    threads = [threading.Thread(target=mark, args=[number]) for number in range(3)]
    for thread, has_begun in zip(threads, begun, strict=True):
        thread.start()
        has_begun.wait()
    for thread in threads:
        thread.join()


@ray.remote
def short():
    pass


@ray.remote(num_cpus=0)
def running():
    time.sleep(600)


@ray.remote
class Counter:
    def __init__(self):
        self.total = 0

    def add(self, amount):
        time.sleep(0.002)
        self.total += amount
        return self.total


def work(directory):
    loaded = [load.remote(number) for number in range(4)]
    trained = [train.remote(data) for data in loaded]
    merged = merge.options(name='merge "ünïcode" <b>✓</b> \\').remote(*trained)
    counter = Counter.remote()
    with ray.profile("wait for the merge"):
        ray.get([counter.add.remote(merged) for _ in range(3)])
    ray.get(outer.remote())
    ray.wait([train.options(name="never begun").remote(broken.remote())])
    ray.get(third_time.remote(f"{directory}/tries"))
    ray.get(dies_once.remote(f"{directory}/died"))
    ray.get(threaded.remote())
    ray.get([short.remote() for _ in range(SHORT_TASKS)])


def main():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.add_node(num_cpus=2)
    ray.init(address=cluster.address, log_to_driver=False)
    kept = running.remote()
    with tempfile.TemporaryDirectory() as directory, ray.profile("the whole program"):
        work(directory)
    ray.timeline(sys.argv[1])
    del kept
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
