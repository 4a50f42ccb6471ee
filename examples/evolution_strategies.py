"""Evolution strategies: a controller learns to balance a pole by trial and error.

Each generation tries many small changes of the controller, and moves towards those that did well.
Tasks get seeds and return scores; the changes themselves are made anew from the seeds, so what
travels is a few numbers however large the controller (Salimans et al., 2017).
"""

import math

import numpy as np
import oxiray as ray

STEPS = 250  # of 20 ms: an episode
GENERATIONS, PAIRS, TASKS = 10, 12, 4
NOISE, RATE = 0.3, 0.08


def balance(controller, seed):
    """For how many steps the pole stays up on its cart; the cart must stay near the middle."""
    x, angle, speed, turn = np.random.default_rng(seed).uniform(-0.05, 0.05, 4).tolist()
    a, b, c, d = controller.tolist()
    for step in range(STEPS):
        push = 10 * math.tanh(a * x + b * speed + c * angle + d * turn)
        sine, cosine = math.sin(angle), math.cos(angle)
        # A pole of 1 m and 0.1 kg, hinged on a cart of 1 kg.
        drive = (push + 0.05 * turn**2 * sine) / 1.1
        bend = (9.8 * sine - cosine * drive) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        speed += 0.02 * (drive - 0.05 * bend * cosine / 1.1)
        turn += 0.02 * bend
        x += 0.02 * speed
        angle += 0.02 * turn
        if abs(angle) > 0.3 or abs(x) > 2:
            return step
    return STEPS


def change(seed):
    return np.random.default_rng(seed).normal(size=4)


@ray.remote
def try_changes(controller, seeds):
    """For each seed: the score with the change, and with its opposite."""
    return [
        [balance(controller + sign * NOISE * change(seed), seed) for sign in (1, -1)]
        for seed in seeds
    ]


def main():
    ray.init(logging_level="warning")
    controller = np.zeros(4)
    for generation in range(GENERATIONS):
        seeds = [generation * PAIRS + i for i in range(PAIRS)]
        shared = ray.put(controller)
        refs = [try_changes.remote(shared, seeds[part::TASKS]) for part in range(TASKS)]
        order = [seed for part in range(TASKS) for seed in seeds[part::TASKS]]
        scores = np.array([pair for part in ray.get(refs) for pair in part], dtype=float)
        # Ranks instead of scores: one lucky try does not decide alone.
        ranks = scores.ravel().argsort().argsort().reshape(scores.shape) / scores.size - 0.5
        step = sum((up - down) * change(s) for (up, down), s in zip(ranks, order, strict=True))
        controller = controller + RATE * step / (NOISE * math.sqrt(PAIRS))
        mean = np.mean([balance(controller, 10_000 + i) for i in range(8)])
        print(f"generation {generation + 1:2}  {mean:5.0f} steps  {'█' * round(mean / 6)}")
    lasted = [balance(controller, 20_000 + i) for i in range(20)]
    print(f"balanced to the end in {sum(n == STEPS for n in lasted)} of 20 new episodes")


if __name__ == "__main__":
    main()
