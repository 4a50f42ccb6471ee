"""What is kept of the dead: actors and workers that come and go leave the memory of the driver and
of the node service, and the record of events, about as they were.

The short form shows what one actor leaves; OXIRAY_TEST_LONG=1 makes so many that all that is kept
of the last thousands is full, and shows that nothing grows any more.
"""

from __future__ import annotations

import os

LONG = os.environ.get("OXIRAY_TEST_LONG") == "1"
# How many actors a round has, and kilobytes that it may add: by now, and once all bounds are met.
ROUND, DRIVER_KB, SERVICE_KB = (12_000, 1_000, 2_000) if LONG else (600, 400, 1_200)

PROGRAM = f"""
import gc, os, signal
import oxiray as ray

context = ray.init(num_cpus=2, logging_level="error", log_to_driver=False)
directory = os.path.join(context.address_info["session_dir"], "events")
(service,) = (
    int(pid)
    for pid in open(f"/proc/self/task/{{os.getpid()}}/children").read().split()
    if "oxirayd" in open(f"/proc/{{pid}}/comm").read()
)

@ray.remote
class Actor:
    def call(self):
        return 1

@ray.remote(max_retries=0)
def die():
    os.kill(os.getpid(), signal.SIGKILL)

def private(pid):
    "Kilobytes that are a process's own."
    with open(f"/proc/{{pid}}/smaps_rollup") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))

def one_round():
    for number in range({ROUND}):
        actor = Actor.remote()
        ray.get(actor.call.remote())
        if number % 2:
            ray.kill(actor)
        del actor
        if number % 20 == 0:
            try:
                ray.get(die.remote())
            except ray.exceptions.WorkerCrashedError:
                pass
    gc.collect()
    return private(os.getpid()), private(service), len(os.listdir(directory))

first, second = one_round(), one_round()
print(first, second)
driver, node, files = (after - before for before, after in zip(first, second))
assert driver < {DRIVER_KB}, (first, second)
assert node < {SERVICE_KB}, (first, second)
# Two files an actor before; now as many as there were processes at once, and their chunks.
assert second[2] < 300, second
"""


def test_actors_that_come_and_go_leave_nothing_to_speak_of(driver):
    print(driver(PROGRAM, timeout=1800 if LONG else 120).stdout)
