"""What `put` and `get` cost, beside `pickle.dumps` and `pickle.loads`, for several kinds of values.

Numpy arrays are not copied when they are read: `get` returns a view of shared memory, and the time
does not depend on their size. Lists of Python objects are pickled like anywhere else.
"""

import pickle
import time

import numpy as np
import oxiray as ray

ROUNDS = 3


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


def values():
    """Names, and what makes the values: they are large, so only one is there at a time."""
    random = np.random.default_rng(0)
    return {
        "small dict": lambda: {"a": 1, "b": [1.5, "two"]},
        "list of 1,000,000 ints": lambda: list(range(1_000_000)),
        "list of 100,000 strings": lambda: [f"word {i}" for i in range(100_000)],
        "50,000 objects": lambda: [Point(i, -i) for i in range(50_000)],
        "bytes, 50 MB": lambda: bytes(50_000_000),
        "array of 1,000,000 floats": lambda: random.normal(size=1_000_000),
        "dict of 50 arrays, 40 MB": lambda: {
            f"variable{i}": random.normal(size=100_000) for i in range(50)
        },
        "array, 100 MB": lambda: random.integers(0, 255, 100_000_000, dtype=np.uint8),
    }


def best(function):
    """The shortest of some runs, and what the last one returned."""
    shortest = float("inf")
    for _ in range(ROUNDS):
        result = None  # gone before the next one is made
        begin = time.perf_counter()
        result = function()
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest, result


def main():
    ray.init(object_store_memory=1 << 30, logging_level="warning")
    titles = ("put", "dumps", "ratio", "get", "loads", "ratio")
    print(f"{'milliseconds':26}" + "".join(f"{title:>10}" for title in titles))
    faster = total = 0
    for name, make in values().items():
        value = make()
        put, ref = best(lambda value=value: ray.put(value))
        dumps, data = best(lambda value=value: pickle.dumps(value, protocol=5))
        get, read = best(lambda ref=ref: ray.get(ref))
        loads, _ = best(lambda data=data: pickle.loads(data))
        assert type(read) is type(value)
        cells = [1e3 * put, 1e3 * dumps, dumps / put, 1e3 * get, 1e3 * loads, loads / get]
        print(f"{name:26}" + "".join(f"{cell:10,.3g}" for cell in cells))
        total += 1
        faster += get < loads
        del value, ref, data, read
    print("ratio: how many times faster than pickle")
    print(f"get was faster than loads for {faster} of {total} kinds of values")


if __name__ == "__main__":
    main()
