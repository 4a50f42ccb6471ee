"""LeNet as an actor: a net that reads handwritten digits, trained in a process of its own.

The driver starts the training, asks for the accuracy between epochs, and lets the net read digits
that it never saw. Needs TensorFlow and scikit-learn, whose digits need no download.
"""

import os

import numpy as np
import oxiray as ray

EPOCHS = 5

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # workers inherit it


def load():
    """1797 digits of 8 x 8 points, in a fixed random order."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    return (digits.images[order] / 16).astype(np.float32)[..., None], digits.target[order]


@ray.remote
class LeNet:
    def __init__(self, images, labels):
        import tensorflow as tf

        tf.keras.utils.set_random_seed(0)
        layers = tf.keras.layers
        self.images, self.labels = images, labels
        self.model = tf.keras.Sequential(
            [
                tf.keras.Input((8, 8, 1)),
                layers.UpSampling2D(2),  # to 16 x 16: two rounds of pooling leave something
                layers.Conv2D(6, 5, padding="same", activation="relu"),
                layers.AveragePooling2D(2),
                layers.Conv2D(16, 5, padding="same", activation="relu"),
                layers.AveragePooling2D(2),
                layers.Flatten(),
                layers.Dense(120, activation="relu"),
                layers.Dense(84, activation="relu"),
                layers.Dense(10, activation="softmax"),
            ]
        )
        self.model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])

    def train(self):
        """One epoch; returns the accuracy in it."""
        history = self.model.fit(self.images, self.labels, batch_size=32, verbose=0)
        return history.history["accuracy"][0]

    def read(self, images):
        return self.model.predict(images, verbose=0).argmax(axis=1)


def draw(image):
    return ["".join(" ░▒▓█"[round(4 * float(p))] * 2 for p in row) for row in image[..., 0]]


def main():
    ray.init(num_cpus=2, logging_level="warning")
    images, labels = load()
    net = LeNet.remote(images[:1500], labels[:1500])
    # Calls to an actor run in their order: all epochs can be asked for at once.
    for epoch, ref in enumerate([net.train.remote() for _ in range(EPOCHS)], start=1):
        accuracy = ray.get(ref)
        print(f"epoch {epoch}  accuracy {accuracy:.3f}  {'█' * round(40 * accuracy)}")

    read = ray.get(net.read.remote(images[1500:]))
    print(*map("  ".join, zip(*map(draw, images[1500:1504]), strict=True)), sep="\n")
    print(f"read as: {', '.join(map(str, read[:4]))}")
    share = np.mean(read == labels[1500:])
    print(f"accuracy on {len(read)} new digits: {share:.2f}")


if __name__ == "__main__":
    main()
