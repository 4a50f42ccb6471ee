"""A parameter server: workers compute gradients, one actor applies them as they come.

No worker waits for another: whoever is done gets the newest weights and goes on. The weights are a
numpy array that travels through shared memory. The model is logistic regression on made-up data.
"""

import numpy as np
import oxiray as ray

FEATURES, ROWS, WORKERS, UPDATES = 200, 4_000, 3, 150


def make_data(seed, rows):
    """Points on both sides of a plane that is the same for every seed."""
    normal = np.random.default_rng(12345).normal(size=FEATURES)
    x = np.random.default_rng(seed).normal(size=(rows, FEATURES))
    return x, (x @ normal > 0).astype(float)


@ray.remote
class Server:
    def __init__(self, rate):
        self.rate = rate
        self.weights = np.zeros(FEATURES)

    def apply(self, gradient):
        """One step downhill; the answer is the newest weights."""
        self.weights -= self.rate * gradient
        return self.weights

    def read(self):
        return self.weights


@ray.remote
class Worker:
    """Has its own data, which never leaves it."""

    def __init__(self, seed):
        self.x, self.y = make_data(seed, ROWS)
        self.random = np.random.default_rng(seed)

    def gradient(self, weights):
        rows = self.random.integers(0, ROWS, 256)
        x, y = self.x[rows], self.y[rows]
        return x.T @ (1 / (1 + np.exp(-x @ weights)) - y) / len(rows)


def accuracy(weights, x, y):
    return np.mean((x @ weights > 0) == y)


def main():
    ray.init(num_cpus=WORKERS + 1, logging_level="warning")
    server = Server.remote(rate=1.0)
    workers = [Worker.remote(seed) for seed in range(WORKERS)]
    x_test, y_test = make_data(99, 2_000)

    # The weights go from the server to the worker as a reference: the driver never holds them.
    newest = server.read.remote()
    busy = {worker.gradient.remote(newest): worker for worker in workers}
    for update in range(1, UPDATES + 1):
        [ready], _ = ray.wait(list(busy))
        worker = busy.pop(ready)
        newest = server.apply.remote(ready)
        busy[worker.gradient.remote(newest)] = worker
        if update % 25 == 0:
            share = accuracy(ray.get(newest), x_test, y_test)
            print(f"update {update:4}  accuracy {share:.3f}  {'█' * round(40 * share)}")

    final = accuracy(ray.get(server.read.remote()), x_test, y_test)
    print(f"accuracy on new data after {UPDATES} updates: {final:.2f}")


if __name__ == "__main__":
    main()
