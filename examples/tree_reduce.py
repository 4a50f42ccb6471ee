"""Tree reduce: eight vectors multiplied in three rounds instead of seven.

Adding results up one by one is a chain: each step waits for the one before. If the order does not
matter, pairs can be combined at once, then pairs of pairs. In code the difference is one line.
"""

import time

import numpy as np
import oxiray as ray

SECONDS = 0.2


@ray.remote
def create(i):
    return np.full(10_000, i, dtype=np.int64)


@ray.remote
def combine(a, b):
    time.sleep(SECONDS)  # stands for a merge that takes a while
    return a * b


def chain(refs):
    """The next with the result so far: the new one goes to the front."""
    refs = list(refs)
    while len(refs) > 1:
        refs = [combine.remote(refs[0], refs[1]), *refs[2:]]
    return refs[0]


def tree(refs):
    """The same, but the new one goes to the end, behind all that were there before."""
    refs = list(refs)
    while len(refs) > 1:
        refs = [*refs[2:], combine.remote(refs[0], refs[1])]
    return refs[0]


def main():
    ray.init(num_cpus=4, logging_level="warning")
    vectors = [create.remote(i + 1) for i in range(8)]
    ray.wait(vectors, num_returns=8)
    results = []
    for reduce in (chain, tree):
        begin = time.perf_counter()
        results.append(ray.get(reduce(vectors)))
        took = time.perf_counter() - begin
        bar = "█" * round(20 * took)
        print(f"{reduce.__name__:6} {took:5.2f} s, {took / SECONDS:3.1f} rounds  {bar}")
    assert np.array_equal(*results)
    print(f"8! = {results[1][0]}")


if __name__ == "__main__":
    main()
