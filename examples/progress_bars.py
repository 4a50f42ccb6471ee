"""Bars of tasks that run at the same time, drawn together by the driver.

Lines that tasks print go above the bars; the same line from several of them is shown once and
then counted.
"""

import random
import time

import oxiray as ray
from oxiray.experimental import tqdm_ray

JOBS = 4
STEPS = 60


@ray.remote
def job(number):
    pace = random.Random(number).uniform(0.005, 0.02)
    for step in tqdm_ray.tqdm(range(STEPS), desc=f"job {number}"):
        time.sleep(pace)
        if step == STEPS // 2:
            print("half of my steps are done")
    return STEPS


def main():
    ray.init(num_cpus=JOBS, logging_level="warning")
    steps = ray.get([job.remote(number) for number in range(JOBS)])
    # The last bars and lines of workers are there before the driver's own.
    ray.shutdown()
    print(f"{len(steps)} jobs, {sum(steps)} steps")


if __name__ == "__main__":
    main()
