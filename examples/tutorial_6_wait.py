"""Tutorial 6, wait: take results as they come.

`ray.get` of a list waits for the slowest. `ray.wait` returns as soon as some are ready: go on with
those, leave stragglers behind, or keep a fixed number of tasks under way.
"""

import random
import time

import oxiray as ray


@ray.remote
def render(frame):
    """Most frames are quick, every fifth one is not."""
    time.sleep(0.6 if frame % 5 == 4 else random.Random(frame).uniform(0.05, 0.15))
    return frame


def main():
    ray.init(num_cpus=5, logging_level="warning")

    # The first four of five; the slow one would hold up a get of all.
    begin = time.perf_counter()
    ready, slow = ray.wait([render.remote(frame) for frame in range(5)], num_returns=4)
    took = time.perf_counter() - begin
    print(f"first four frames after {took:.2f} s: {sorted(ray.get(ready))}")
    done, slow = ray.wait(slow, timeout=0)  # only looks
    print(f"the fifth is {'there' if done else 'still under way'}")

    # Never more than five under way, the next one started as one ends: a list of any length takes
    # bounded memory.
    frames, running, finished = iter(range(5, 30)), set(), []
    for frame in frames:
        running.add(render.remote(frame))
        if len(running) == 5:
            ready, _ = ray.wait(list(running))
            running -= set(ready)
            finished += ray.get(ready)
    finished += ray.get(list(running))
    print(f"25 more, as they came: {' '.join(map(str, finished))}")
    assert sorted(finished) == list(range(5, 30))
    print(f"frames rendered: {len(finished) + 5}")


if __name__ == "__main__":
    main()
