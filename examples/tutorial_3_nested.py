"""Tutorial 3, nested tasks: tasks that start tasks.

Three experiments run at once, and each runs its folds at once. While a task waits for others in
`ray.get`, it lends its CPU to them: however deep the nesting, nothing waits for ever.
"""

import time

import numpy as np
import oxiray as ray

DEGREES = (1, 3, 9)
FOLDS = 4


@ray.remote
def fold_error(x, y, degree, fold):
    """The error of a polynomial on the part of the data that it was not fitted to."""
    time.sleep(0.1)
    held_out = np.arange(len(x)) % FOLDS == fold
    fit = np.polynomial.Polynomial.fit(x[~held_out], y[~held_out], degree)
    return float(np.mean((fit(x[held_out]) - y[held_out]) ** 2))


@ray.remote
def experiment(x, y, degree):
    """Cross-validation: a task that is four tasks."""
    return float(np.mean(ray.get([fold_error.remote(x, y, degree, f) for f in range(FOLDS)])))


def main():
    # Only two CPUs for three experiments and their folds: the waiting ones need none.
    ray.init(num_cpus=2, logging_level="warning")
    random = np.random.default_rng(0)
    x = np.sort(random.uniform(-1, 1, 60))
    y = x**3 - x / 2 + random.normal(scale=0.05, size=60)

    x, y = ray.put(x), ray.put(y)  # stored once, read by twelve tasks
    ray.get([fold_error.remote(x, y, 1, 0) for _ in range(4)])  # workers import numpy; not timed
    begin = time.perf_counter()
    errors = ray.get([experiment.remote(x, y, degree) for degree in DEGREES])
    took = time.perf_counter() - begin

    print(f"3 experiments of {FOLDS} folds in {took:.2f} s on 2 CPUs")
    worst = max(errors)
    for degree, error in zip(DEGREES, errors, strict=True):
        print(f"degree {degree}  error {error:.4f}  {'█' * round(40 * error / worst)}")
    print(f"best degree: {DEGREES[int(np.argmin(errors))]}")


if __name__ == "__main__":
    main()
