"""Pi by throwing darts: sampling tasks, an actor that counts, and a bar that moves.

The bar is tqdm's where it is installed, else a plain line.
"""

import math
import random

import oxiray as ray

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


def make_bar(total):
    """A function that shows how far it is."""
    try:
        from tqdm import tqdm
    except ImportError:
        return lambda done, note: print(f"\r{done / total:4.0%} {note}", end="", flush=True)
    bar = tqdm(total=total, unit=" samples", unit_scale=True)

    def show(done, note):
        bar.set_postfix_str(note, refresh=False)
        bar.update(done - bar.n)
        if done == total:
            bar.close()

    return show


def main():
    ray.init(logging_level="warning")
    total = TASKS * SAMPLES
    show = make_bar(total)
    progress = Progress.remote()
    refs = running = [sample.remote(seed, progress) for seed in range(TASKS)]
    while running:
        _, running = ray.wait(running, num_returns=len(running), timeout=0.1)
        samples, inside = ray.get(progress.read.remote())
        show(samples, f"pi is about {4 * inside / max(samples, 1):.4f}")
    pi = 4 * sum(ray.get(refs)) / total
    assert abs(pi - math.pi) < 0.005
    # Each task has its own seed: the same digits at every run, on any number of cores.
    print(f"\npi is about {pi:.6f}")


if __name__ == "__main__":
    main()
