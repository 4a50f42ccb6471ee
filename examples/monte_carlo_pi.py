"""Pi by throwing darts: sampling tasks, an actor that counts, and a bar that moves."""

import math
import random

import oxiray as ray
from oxiray.experimental import tqdm_ray

TASKS = 8
SAMPLES = 500_000  # for each task
REPORTS = 10  # by each task


@ray.remote
class Progress:
    def __init__(self):
        self.samples = self.inside = 0

    def report(self, samples, inside):
        self.samples += samples
        self.inside += inside

    def read(self):
        return self.samples, self.inside


@ray.remote
def sample(seed, progress):
    """How many random points of the unit square lie within the quarter circle."""
    draw = random.Random(seed).random
    total = 0
    for _ in range(REPORTS):
        count = SAMPLES // REPORTS
        inside = sum(draw() ** 2 + draw() ** 2 <= 1 for _ in range(count))
        progress.report.remote(count, inside)
        total += inside
    return total


def main():
    ray.init(logging_level="warning")
    total = TASKS * SAMPLES
    progress = Progress.remote()
    refs = running = [sample.remote(seed, progress) for seed in range(TASKS)]
    with tqdm_ray.tqdm(total=total, unit=" samples") as bar:
        while running:
            _, running = ray.wait(running, num_returns=len(running), timeout=0.1)
            samples, inside = ray.get(progress.read.remote())
            bar.set_description(f"pi is about {4 * inside / max(samples, 1):.4f}")
            bar.update(samples - bar.n)
    pi = 4 * sum(ray.get(refs)) / total
    assert abs(pi - math.pi) < 0.005
    # Each task has its own seed: the same digits at every run, on any number of cores.
    print(f"pi is about {pi:.6f}")


if __name__ == "__main__":
    main()
