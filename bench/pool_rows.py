"""What multiprocessing.Pool has to set against the rows: plain calls in other processes."""

import multiprocessing
from multiprocessing.pool import Pool

from registry import Call, row

BATCH = 1000

pool: Pool


def start() -> None:
    global pool
    pool = multiprocessing.Pool()


def stop() -> None:
    pool.terminate()


def small_value() -> bytes:
    return b"ok"


def run_batch(count: int) -> None:
    results = [pool.apply_async(small_value) for _ in range(count)]
    for result in results:
        result.get()


@row("single client tasks and get batch", "batches/s")
def tasks_and_get_batch(_: int) -> Call:
    return lambda: run_batch(BATCH)


@row("single client tasks sync", "tasks/s")
def tasks_sync(_: int) -> Call:
    return lambda: pool.apply(small_value)


@row("single client tasks async", "tasks/s", items=BATCH)
def tasks_async(items: int) -> Call:
    return lambda: run_batch(items)
