"""A hyperparameter sweep: many small nets trained at once, the best kept.

Random search over step size, width and momentum; results are taken as they come, so that the table
grows while the sweep runs. The net is a few lines of numpy.
"""

import numpy as np
import oxiray as ray

TRIALS, STEPS = 16, 400


def make_data(seed, rows=400):
    """Two spirals: no straight line parts them."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 2, rows)
    turn = random.uniform(0.5, 2.5, rows)
    angle = np.pi * (turn + label)
    x = (turn * np.stack([np.cos(angle), np.sin(angle)])).T
    return x + random.normal(scale=0.08, size=x.shape), label


@ray.remote
def train(config, data, test):
    """One hidden layer, gradient descent with momentum; returns the accuracy on `test`."""
    x, y = data
    random = np.random.default_rng(config["seed"])
    width = config["width"]
    weights = [
        random.normal(size=(2, width)),
        random.normal(size=width),
        random.normal(size=width) / width**0.5,
    ]
    velocity = [np.zeros_like(w) for w in weights]
    for _ in range(STEPS):
        w, b, out = weights
        hidden = np.tanh(x @ w + b)
        error = (1 / (1 + np.exp(-hidden @ out)) - y) / len(y)
        back = np.outer(error, out) * (1 - hidden**2)
        gradients = [x.T @ back, back.sum(0), hidden.T @ error]
        for v, g, each in zip(velocity, gradients, weights, strict=True):
            v *= config["momentum"]
            v -= config["rate"] * g
            each += v
    w, b, out = weights
    x, y = test
    return float(np.mean((np.tanh(x @ w + b) @ out > 0) == y))


def main():
    ray.init(logging_level="warning")
    random = np.random.default_rng(7)
    data, test = ray.put(make_data(0)), ray.put(make_data(1))
    configs = {}
    for seed in range(TRIALS):
        config = {
            "seed": seed,
            "rate": round(10 ** random.uniform(-2, 0.3), 3),
            "width": int(random.choice([4, 16, 48])),
            "momentum": float(random.choice([0.0, 0.9])),
        }
        configs[train.remote(config, data, test)] = config

    best, running = (0.0, {"seed": TRIALS}), list(configs)
    while running:
        [ready], running = ray.wait(running)
        share, config = ray.get(ready), configs[ready]
        # Of equals the first: the answer does not depend on which task was faster.
        best = max(best, (share, config), key=lambda pair: (pair[0], -pair[1]["seed"]))
        shown = "  ".join(f"{name} {value:<5}" for name, value in config.items())
        print(f"{shown}  accuracy {share:.3f}  {'█' * round(30 * share)}")
    share, config = best
    print(f"best of {TRIALS}: width {config['width']}, accuracy {share:.3f}")


if __name__ == "__main__":
    main()
