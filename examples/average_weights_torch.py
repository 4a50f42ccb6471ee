"""Two nets learn from different data and meet half-way: averaged weights, with PyTorch.

The same as `average_weights_tensorflow.py`, by `TorchVariables`: each actor has one half of a
curve, and the average of their weights knows the whole.
"""

import numpy as np
import oxiray as ray

ROUNDS = 30


def curve(x):
    return np.sin(3 * x)


@ray.remote
class Net:
    def __init__(self, low, high):
        # In the actor, not at the top: the driver needs no PyTorch.
        import torch

        torch.manual_seed(0)  # all start from the same weights
        torch.set_num_threads(1)  # an actor has one CPU
        self.torch = torch
        self.net = torch.nn.Sequential(
            torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
        )
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.02)
        self.variables = ray.experimental.TorchVariables(self.net)
        self.x = np.linspace(low, high, 64, dtype=np.float32)[:, None]

    def _loss(self, x):
        x = self.torch.tensor(x)
        y = self.torch.tensor(curve(x.numpy()))
        return self.torch.nn.functional.mse_loss(self.net(x), y)

    def train(self, weights):
        """A round on the data of this actor, from the weights given."""
        if weights is not None:
            self.variables.set_weights(weights)
        for _ in range(8):
            self.optimizer.zero_grad()
            self._loss(self.x).backward()
            self.optimizer.step()
        return self.variables.get_weights()

    def error(self, weights):
        """The error on the whole curve."""
        self.variables.set_weights(weights)
        with self.torch.no_grad():
            return float(self._loss(np.linspace(-1, 1, 101, dtype=np.float32)[:, None]))


def main():
    ray.init(num_cpus=2, logging_level="warning")
    nets = [Net.remote(-1, 0), Net.remote(0, 1)]
    weights, first, error = None, None, None
    for turn in range(1, ROUNDS + 1):
        trained = ray.get([net.train.remote(weights) for net in nets])
        mean = {name: sum(each[name] for each in trained) / len(trained) for name in trained[0]}
        weights = ray.put(mean)  # stored once for all actors
        if turn % 5 == 0 or turn == 1:
            error = ray.get(nets[0].error.remote(weights))
            first = first or error
            print(f"round {turn:2}  error {error:.4f}  {'█' * round(40 * error / first)}")
    print(f"the averaged net is {'better' if error < first / 3 else 'no better'} than at first")


if __name__ == "__main__":
    main()
