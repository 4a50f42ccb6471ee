"""What startup.py times: import, init, a first result; then one task on every CPU, then nothing."""

import os
import sys
import time


def nap(seconds: float) -> str:
    time.sleep(seconds)
    return "rested"


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def with_cluster(module_name: str) -> None:
    ray = __import__(module_name)
    ray.init(include_dashboard=False, log_to_driver=False)
    remote_nap = ray.remote(nap)
    ray.get(remote_nap.remote(0))
    say(FIRST_RESULT)
    ray.get([remote_nap.remote(0.5) for _ in range(os.cpu_count() or 1)])
    say(ALL_WORKERS_STARTED)
    sys.stdin.read()
    ray.shutdown()


def with_pool() -> None:
    import multiprocessing

    with multiprocessing.Pool() as pool:
        pool.apply(nap, (0,))
        say(FIRST_RESULT)
        pool.map(nap, [0.5] * (os.cpu_count() or 1), chunksize=1)
        say(ALL_WORKERS_STARTED)
        sys.stdin.read()


FIRST_RESULT = "first result"
ALL_WORKERS_STARTED = "all workers started"

if __name__ == "__main__":
    if os.environ["BENCH_MODULE"] == "multiprocessing":
        with_pool()
    else:
        with_cluster(os.environ["BENCH_MODULE"])
