"""What multiprocessing.Pool has to set against the rows: plain calls in other processes."""

import multiprocessing
from multiprocessing.pool import Pool

from registry import Call, Skip, row

BATCH = 1000

pool: Pool


def start() -> None:
    global pool
    pool = multiprocessing.Pool()


def stop() -> None:
    pool.terminate()


def small_value() -> bytes:
    return b"ok"


def square(x: int) -> int:
    return x * x


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


@row("Pool.map of 1,000 *", "items/s", items=1000)
def pool_map(items: int) -> Call:
    return lambda: pool.map(square, range(items))


@row("Pool.imap of 1,000 in chunks of 20 *", "items/s", items=1000)
def pool_imap(items: int) -> Call:
    return lambda: sum(1 for _ in pool.imap(square, range(items), chunksize=20))


@row("joblib, 200 calls *", "calls/s", items=200)
def joblib_calls(items: int) -> Call:
    """By joblib's own backend for processes."""
    try:
        import joblib
    except ImportError:
        raise Skip("joblib is not installed") from None
    calls = joblib.Parallel(n_jobs=2, backend="multiprocessing")
    return lambda: calls(joblib.delayed(square)(x) for x in range(items))


@row("Queue, put and get in turn *", "items/s", items=100)
def queue_in_turn(items: int) -> Call:
    queue = multiprocessing.Manager().Queue()

    def call() -> None:
        for item in range(items):
            queue.put(item)
            queue.get()

    return call
