"""A driver whose tasks can never go on is told so, once, without asking."""

from __future__ import annotations

SOON = {"OXIRAY_WARN_STUCK_AFTER_S": "0.3"}
MARK = "A part of this program cannot go on."

BEGIN = """
    import sys, time
    import oxiray as ray
    from oxiray.exceptions import GetTimeoutError

    ray.init(num_cpus=2, resources={"tool": 1}, logging_level="error")

    class Ear:
        # What is said, for this program to hear.
        def __init__(self, stream):
            self.stream, self.heard = stream, ""
        def write(self, text):
            self.heard += text
            return self.stream.write(text)
        def __getattr__(self, name):
            return getattr(self.stream, name)

    sys.stderr = ear = Ear(sys.stderr)

    def wait_to_be_told(ref):
        ends = time.monotonic() + 60
        while "cannot go on" not in ear.heard:
            assert time.monotonic() < ends, "nobody said anything"
            try:
                ray.get(ref, timeout=0.2)
            except GetTimeoutError:
                pass
"""


def told(driver, program):
    """What the driver was told, which must be one line."""
    said = driver(BEGIN + program, env=SOON).stderr
    (line,) = [line for line in said.splitlines() if MARK in line]
    return line


def test_two_actors_that_wait_for_each_other(driver):
    line = told(
        driver,
        """
    @ray.remote(num_cpus=0)
    class One:
        def meet(self, other):
            self.other = other
        def ask(self):
            return ray.get(self.other.answer.remote())
        def answer(self):
            return ray.get(self.other.ask.remote())

    one, two = One.remote(), One.remote()
    ray.get([one.meet.remote(two), two.meet.remote(one)])
    wait_to_be_told(one.ask.remote())
    time.sleep(1.5)
    """,
    )
    assert "This is a deadlock: " in line and "One.ask" in line and "One.answer" in line, line


def test_a_task_that_holds_what_its_own_task_needs(driver):
    line = told(
        driver,
        """
    @ray.remote(resources={"tool": 1})
    def child():
        return 1

    @ray.remote(resources={"tool": 1})
    def parent():
        return ray.get(child.remote())

    wait_to_be_told(parent.remote())
    time.sleep(1.5)
    """,
    )
    assert "child waits for parent waits for child" in line or (
        "parent waits for child waits for parent" in line
    ), line


def test_a_task_that_waits_for_what_idle_actors_hold(driver):
    line = told(
        driver,
        """
    @ray.remote(num_cpus=1)
    class Holder:
        def ready(self):
            return True

    holders = [Holder.remote() for _ in range(2)]
    ray.get([holder.ready.remote() for holder in holders])

    @ray.remote
    def starved():
        return 1

    wait_to_be_told(starved.remote())
    time.sleep(1.5)
    """,
    )
    assert "starved (" in line and "held by actors that have nothing to do: Holder" in line, line


def test_nothing_is_said_of_what_runs(driver):
    done = driver(
        BEGIN
        + """
    @ray.remote
    def slow():
        time.sleep(3)
        return 1

    @ray.remote
    def after(value):
        return value

    assert ray.get([after.remote(slow.remote()) for _ in range(4)]) == [1] * 4
    """,
        env=SOON,
    )
    assert MARK not in done.stderr, done.stderr
