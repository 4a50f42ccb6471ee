"""A short tour: tasks in parallel, an actor that collects, and how long each thing takes."""

import math
import random
import time

import oxiray as ray

SAMPLES = 4_000_000
TASKS = 16


@ray.remote
class Progress:
    """Counts what the tasks report; callers see one consistent state."""

    def __init__(self, total):
        self.total = total
        self.done = 0

    def report(self, samples):
        self.done += samples
        return self.done

    def share(self):
        return self.done / self.total


@ray.remote
def sample(count, seed, progress):
    """How many of `count` random points of the square fall into the circle."""
    draw = random.Random(seed).random
    inside = sum(draw() ** 2 + draw() ** 2 <= 1 for _ in range(count))
    progress.report.remote(count)
    return inside


@ray.remote
def nothing():
    pass


def main():
    begin = time.perf_counter()
    with ray.init(logging_level="warning"):
        ray.get(nothing.remote())
        print(f"started, first result        {1e3 * (time.perf_counter() - begin):8.0f} ms")

        begin = time.perf_counter()
        progress = Progress.remote(SAMPLES)
        refs = [sample.remote(SAMPLES // TASKS, seed, progress) for seed in range(TASKS)]
        pi = 4 * sum(ray.get(refs)) / SAMPLES
        took = time.perf_counter() - begin
        print(f"pi is about {pi:.4f}           {1e3 * took:8.0f} ms  ({TASKS} tasks)")
        print(f"the actor saw                {100 * ray.get(progress.share.remote()):8.0f} %")
        assert abs(pi - math.pi) < 0.01

        begin = time.perf_counter()
        for _ in range(2_000):
            ray.get(nothing.remote())
        took = (time.perf_counter() - begin) / 2_000
        print(f"a task, there and back       {1e6 * took:8.0f} µs")

        begin = time.perf_counter()
        ray.get([nothing.remote() for _ in range(100_000)])
        rate = 100_000 / (time.perf_counter() - begin)
        print(f"tasks, many at once          {rate:8.0f} /s")


if __name__ == "__main__":
    main()
