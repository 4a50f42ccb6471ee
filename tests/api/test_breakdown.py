"""A fault of the engine ends the session with an error that says so, and not the program."""

from __future__ import annotations

import pytest
from oxiray import _native

pytestmark = pytest.mark.skipif(
    not _native.unwinds, reason="this module was built as the programs are, to end at a panic"
)

PROGRAM = """
import threading, time
import oxiray as ray
from oxiray import _native
from oxiray.exceptions import RaySystemError

ray.init(num_cpus=2, logging_level="error")

@ray.remote
def task(seconds=0):
    time.sleep(seconds)
    return 1

@ray.remote
class Actor:
    def call(self):
        return 2

actor, ref = Actor.remote(), task.remote()
assert ray.get([ref, actor.call.remote()]) == [1, 2]
waited = []

def wait_for_ever():
    try:
        ray.get(task.remote(1000))
    except RaySystemError as error:
        waited.append(error)

thread = threading.Thread(target=wait_for_ever)
thread.start()
while not ray.available_resources().get("CPU", 0) < 2:
    time.sleep(0.01)
"""

AFTERWARDS = """
thread.join(timeout=30)
assert len(waited) == 1 and words in str(waited[0]), waited
for use in (
    lambda: ray.get(ref),
    lambda: ray.put(1),
    lambda: task.remote(),
    lambda: actor.call.remote(),
    lambda: Actor.remote(),
    lambda: ray.wait([ref]),
    lambda: ray.nodes(),
):
    try:
        use()
    except RaySystemError as error:
        assert words in str(error) and "report it" in str(error), error
        assert "crates/" in str(error) and ".rs:" in str(error), error
    else:
        raise SystemExit("it went on")
del ref, actor
ray.shutdown()
ray.init(num_cpus=1, logging_level="error")
assert ray.get(task.remote()) == 1
print("lives")
"""


@pytest.mark.parametrize("place", ["call", "threads"])
def test_in_the_driver(driver, place):
    fault = {
        "call": """
words = "a fault for a test (crates/python/src/guard.rs:"
try:
    _native.fail_for_test("call")
except RaySystemError as error:
    assert words in str(error), error
else:
    raise SystemExit("it went on")
""",
        # Seen by whichever thread looks next: the one that waits, or one of the engine's. If that
        # one does not wait yet, nobody asks for what is said to be ready: it is said again.
        "threads": """
words = "invalid key"
while thread.is_alive():
    try:
        _native.fail_for_test("threads")
    except RaySystemError:
        break
    thread.join(timeout=0.2)
""",
    }[place]
    done = driver(PROGRAM + fault + AFTERWARDS)
    assert done.stdout.split() == ["lives"]


def test_in_a_worker(driver):
    done = driver(
        """
        import time
        import oxiray as ray
        from oxiray import _native

        ray.init(num_cpus=1, logging_level="error", log_to_driver=False)

        @ray.remote(max_retries=0)
        def breaks(place):
            _native.fail_for_test(place)
            time.sleep(60)

        for place in ("call", "threads"):
            try:
                ray.get(breaks.remote(place))
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.RaySystemError) as error:
                assert "the engine failed" in str(error), error
            else:
                raise SystemExit("it went on")
        print(ray.get(ray.remote(lambda: "lives").remote()))
        """
    )
    assert done.stdout.split() == ["lives"]
