"""Fibonacci numbers: the same work in one process and in all of them.

A task costs tens of microseconds. Work that is shorter is faster done here; the table shows from
what length on tasks pay.
"""

import os
import time

import oxiray as ray

NUMBERS = 24  # how many sequences to make
LENGTH = 20_000


def last_digits(length):
    """The last six digits of Fibonacci number `length`, by adding all those before it."""
    a, b = 0, 1
    for _ in range(length):
        a, b = b, a + b
    return a % 1_000_000


@ray.remote
def last_digits_remote(length):
    return last_digits(length)


def timed(function):
    begin = time.perf_counter()
    result = function()
    return result, time.perf_counter() - begin


def main():
    ray.init(logging_level="warning")
    ray.get([last_digits_remote.remote(1) for _ in range(100)])  # workers get the function first
    cores = os.cpu_count()
    print(f"{'length':>8} {'here':>10} {'tasks':>10}   faster by   ({cores} cores)")
    for length in (100, 2_000, LENGTH):
        here, serial = timed(lambda n=length: [last_digits(n) for _ in range(NUMBERS)])
        there, parallel = timed(
            lambda n=length: ray.get([last_digits_remote.remote(n) for _ in range(NUMBERS)])
        )
        assert here == there
        ratio = serial / parallel
        print(
            f"{length:8} {1e3 * serial:7.2f} ms {1e3 * parallel:7.2f} ms   "
            f"{ratio:5.2f} x  {'█' * round(10 * ratio / cores)}"
        )
    print(f"Fibonacci number {LENGTH} ends in {here[0]:06d}")


if __name__ == "__main__":
    main()
