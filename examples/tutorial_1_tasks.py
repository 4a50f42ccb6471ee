"""Tutorial 1, tasks: four slow calls at the same time.

`@ray.remote` makes a function whose calls run in other processes. `f.remote(x)` returns at once
with a reference to the result to come; `ray.get` waits for it.
"""

import time

import oxiray as ray

SECONDS = 0.3


@ray.remote
def slow_square(x):
    time.sleep(SECONDS)  # stands for work that takes a while
    return x * x


def main():
    # Four CPUs, whatever the machine has: these tasks only sleep.
    ray.init(num_cpus=4, logging_level="warning")

    # One after another: asking for each result before the next task is started.
    begin = time.perf_counter()
    serial = [ray.get(slow_square.remote(i)) for i in range(4)]
    serial_took = time.perf_counter() - begin

    # All at once: start them all, then ask. Most first programs that are not faster get too early.
    begin = time.perf_counter()
    refs = [slow_square.remote(i) for i in range(4)]
    parallel = ray.get(refs)
    parallel_took = time.perf_counter() - begin

    assert serial == parallel
    assert parallel_took < serial_took
    print(f"get after each task    {serial_took:5.2f} s")
    print(f"get after all tasks    {parallel_took:5.2f} s")
    print(f"squares: {parallel}")


if __name__ == "__main__":
    main()
