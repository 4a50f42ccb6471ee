"""Tutorial 5, handles: many tasks report to one actor while they run.

An actor's handle is a value like any other: it may be an argument. Here twenty tasks send lines to
a log as they go, and the driver reads it before they are done.
"""

import time

import oxiray as ray

TASKS, STEPS = 4, 5


@ray.remote
class Board:
    """What each task said last, and how much was said in all."""

    def __init__(self):
        self.steps = {}
        self.messages = 0

    def report(self, task, step):
        self.steps[task] = step
        self.messages += 1

    def read(self):
        return dict(self.steps), self.messages


@ray.remote
def work(task, board):
    for step in range(1, STEPS + 1):
        time.sleep(0.05 * (task + 1))
        # No get: the report is on its way while the work goes on.
        board.report.remote(task, step)
    return task


def main():
    ray.init(num_cpus=TASKS, logging_level="warning")
    board = Board.remote()
    running = [work.remote(task, board) for task in range(TASKS)]

    while running:
        # Looks in every quarter of a second, or when a task is done.
        _, running = ray.wait(running, timeout=0.25)
        steps, messages = ray.get(board.read.remote())
        bars = "  ".join(f"{'█' * steps.get(t, 0):░<{STEPS}}" for t in range(TASKS))
        print(f"{bars}  {messages:2d} reports")

    # The calls of a task come in their order, and before the task is done they were sent.
    steps, messages = ray.get(board.read.remote())
    assert steps == dict.fromkeys(range(TASKS), STEPS)
    print(f"{messages} reports from {len(steps)} tasks")


if __name__ == "__main__":
    main()
