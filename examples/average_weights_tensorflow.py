"""Two nets learn from different data and meet half-way: averaged weights, with TensorFlow.

Each actor has one half of a curve. After every round their weights are averaged and handed back,
so that both nets know the whole curve, though neither saw it. Nets are never pickled: each actor
builds its own, and `TensorFlowVariables` turns weights into numpy arrays and back.
"""

import os

import numpy as np
import oxiray as ray

ROUNDS = 40

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # workers inherit it


def curve(x):
    return np.sin(3 * x)


@ray.remote
class Net:
    def __init__(self, low, high):
        # In the actor, not at the top: the driver needs no TensorFlow.
        import tensorflow as tf

        tf.keras.utils.set_random_seed(0)  # all start from the same weights
        self.model = tf.keras.Sequential(
            [
                tf.keras.Input((1,)),
                tf.keras.layers.Dense(32, activation="tanh"),
                tf.keras.layers.Dense(1),
            ]
        )
        self.model.compile(optimizer=tf.keras.optimizers.Adam(0.03), loss="mse")
        self.variables = ray.experimental.TensorFlowVariables(self.model)
        self.x = np.linspace(low, high, 64)[:, None]

    def train(self, weights):
        """A round on the data of this actor, from the weights given."""
        if weights is not None:
            self.variables.set_weights(weights)
        for _ in range(8):
            self.model.train_on_batch(self.x, curve(self.x))
        return self.variables.get_weights()

    def error(self, weights):
        """The error on the whole curve."""
        self.variables.set_weights(weights)
        x = np.linspace(-1, 1, 101)[:, None]
        return float(np.mean((self.model(x).numpy() - curve(x)) ** 2))


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
