"""Rows of what stands on tasks and actors: pools, joblib, queues and collectives.

All end in `*`: Ray's own benchmark has none of them. `pool_rows` has the standard library's.
"""

import importlib
import os
from typing import Any

import numpy
from registry import Call, Skip, row

MODULE = os.environ["BENCH_MODULE"]
ray: Any = importlib.import_module(MODULE)

PROCESSES = 2
MEMBERS = 4


def square(x: int) -> int:
    return x * x


def make_pool() -> Any:
    return importlib.import_module(f"{MODULE}.util.multiprocessing").Pool(PROCESSES)


@row("Pool.map of 1,000 *", "items/s", items=1000)
def pool_map(items: int) -> Call:
    pool = make_pool()
    return lambda: pool.map(square, range(items))


@row("Pool.imap of 1,000 in chunks of 20 *", "items/s", items=1000)
def pool_imap(items: int) -> Call:
    pool = make_pool()
    return lambda: sum(1 for _ in pool.imap(square, range(items), chunksize=20))


@row("joblib, 200 calls *", "calls/s", items=200)
def joblib_calls(items: int) -> Call:
    try:
        import joblib
    except ImportError:
        raise Skip("joblib is not installed") from None
    importlib.import_module(f"{MODULE}.util.joblib").register_ray()

    def call() -> None:
        with joblib.parallel_backend("ray", n_jobs=PROCESSES):
            joblib.Parallel()(joblib.delayed(square)(x) for x in range(items))

    return call


@row("Queue, put and get in turn *", "items/s", items=100)
def queue_in_turn(items: int) -> Call:
    queue = importlib.import_module(f"{MODULE}.util.queue").Queue()

    def call() -> None:
        for item in range(items):
            queue.put(item)
            queue.get()

    return call


class Member:
    def join(self, rank: int, group: str) -> None:
        self.collective = importlib.import_module(f"{MODULE}.util.collective")
        self.collective.init_collective_group(MEMBERS, rank, "gloo", group)
        self.group = group

    def sum_up(self, size: int, times: int) -> None:
        array = numpy.ones(size, dtype=numpy.float32)
        for _ in range(times):
            self.collective.allreduce(array, self.group)


def allreduce(size: int, times: int) -> Call:
    members = [ray.remote(num_cpus=0)(Member).remote() for _ in range(MEMBERS)]
    try:
        ray.get([m.join.remote(rank, f"of {size}") for rank, m in enumerate(members)], timeout=30)
    except Exception as error:  # Ray's needs PyTorch
        raise Skip(f"no group can be made: {str(error).splitlines()[-1]}") from None
    return lambda: ray.get([m.sum_up.remote(size, times) for m in members])


@row("allreduce of 1 kB among 4 *", "calls/s", items=100)
def allreduce_small(items: int) -> Call:
    return allreduce(256, items)


@row("allreduce of 1 MB among 4 *", "calls/s", items=20)
def allreduce_large(items: int) -> Call:
    return allreduce(1 << 18, items)


@row("allreduce of 100 MB among 4 *", "calls/s")
def allreduce_huge(items: int) -> Call:
    return allreduce(25 * (1 << 20), items)
