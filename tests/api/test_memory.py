"""Memory that runs out: who is ended, who is not, what is tried again, and what everybody is told.

What the machine is said to use comes from a tree of files (`OXIRAY_CGROUP_ROOT`), so that no test
needs to fill a machine.
"""

import pytest
from control_groups import PRELUDE, FakeGroup, real_group

QUICK = {"RAY_task_oom_retry_delay_base_ms": "50", "RAY_memory_monitor_refresh_ms": "50"}

# `hog` notes the process of each of its tries, and returns in that many.
HOG = """
import oxiray as ray

def hog(notes, returns_in):
    held = bytearray(b"x" * (80 << 20))
    with open(notes, "a") as file:
        file.write(f"{os.getpid()}\\n")
    with open(notes) as file:
        tries = len(file.readlines())
    while tries < returns_in:
        time.sleep(0.01)
    return tries

def process_of_try(number):
    while True:
        if os.path.exists("notes"):
            pids = open("notes").read().split("\\n")[:-1]
            if len(pids) >= number:
                return int(pids[number - 1])
        time.sleep(0.01)

def run_short_until_it_falls(number):
    pid = process_of_try(number)
    be_short_while_there_is(pid)
    while os.path.exists(f"/proc/{pid}"):
        time.sleep(0.01)

notes = os.path.abspath("notes")
"""


@pytest.fixture
def short(driver, tmp_path):
    """Runs a program whose machine has and uses the memory that it says."""
    group = FakeGroup(tmp_path / "groups")

    def run(source, env=None, **options):
        return driver(PRELUDE + HOG + source, env={**group.env, **QUICK, **(env or {})}, **options)

    return run


def test_a_task_that_may_run_again_goes_before_an_actor_that_may_not(short):
    """By a count of its own: it falls more often than `max_retries` allows, and is run again."""
    done = short("""
ray.init(num_cpus=4)

@ray.remote
class Innocent:
    def __init__(self):
        self.held = bytearray(b"x" * (200 << 20))
    def pid(self):
        return os.getpid()

actor = Innocent.remote()
beside = Innocent.options(max_restarts=-1, name="Beside").remote()  # more of the same owner
pid, _ = ray.get([actor.pid.remote(), beside.pid.remote()])
got = ray.remote(max_retries=1)(hog).remote(notes, 5)
for tries in range(1, 5):
    run_short_until_it_falls(tries)
assert ray.get(got, timeout=30) == 5
assert ray.get(actor.pid.remote()) == pid, "the actor was ended"
""")
    text = done.stdout + done.stderr
    assert "the machine's memory is nearly used up" in text, text
    assert "500 B of 515 B" in text and "97.1 %" in text and "actor Innocent 2" in text, text


def test_a_task_that_falls_alone_is_given_up_after_a_few_tries(short):
    done = short("""
ray.init(num_cpus=1)
got = ray.remote(max_retries=100)(hog).remote(notes, 1000)
for tries in range(1, 4):
    run_short_until_it_falls(tries)
try:
    ray.get(got, timeout=30)
except ray.exceptions.OutOfMemoryError as error:
    print(error)
else:
    raise SystemExit("it was let do")
assert len(open("notes").read().split()) == 3
assert ray.get(ray.remote(lambda: 5).remote()) == 5
""")
    assert "RAY_memory_usage_threshold" in done.stdout and "hog" in done.stdout, done.stdout


@pytest.mark.parametrize("how", ["max_retries", "task_oom_retries"])
def test_what_may_not_run_again_is_not(short, how):
    env = {"RAY_task_oom_retries": "0"} if how == "task_oom_retries" else {}
    retries = 0 if how == "max_retries" else 3
    done = short(
        f"""
ray.init(num_cpus=2)
got = ray.remote(max_retries={retries})(hog).remote(notes, 2)
run_short_until_it_falls(1)
try:
    ray.get(got, timeout=30)
except ray.exceptions.OutOfMemoryError as error:
    print(error)
else:
    raise SystemExit("it was let do")
""",
        env=env,
    )
    assert "97.1 %" in done.stdout and "The largest workers" in done.stdout, done.stdout


def test_what_waits_for_another_try_says_so(short):
    short(
        """
ray.init(num_cpus=1)
got = ray.remote(hog).remote(notes, 2)
run_short_until_it_falls(1)
said = ""
while "memory ran out" not in said:
    try:
        ray.get(got, timeout=0.05)
    except ray.exceptions.GetTimeoutError as error:
        said = str(error)
ray.cancel(got)
try:
    ray.get(got, timeout=30)
except ray.exceptions.TaskCancelledError:
    pass
""",
        env={"RAY_task_oom_retry_delay_base_ms": "60000"},
    )


def test_no_monitor_and_wrong_settings(short):
    done = short(
        """
ray.init(num_cpus=1)
say("MEMORY_LIMIT", "515")
say("MEMORY_USED", "510")
assert ray.get(ray.remote(hog).remote(notes, 1)) == 1
time.sleep(0.5)
assert ray.get(ray.remote(hog).remote(notes, 2)) == 2
for name, value in [("RAY_memory_monitor_refresh_ms", "often"), ("RAY_task_oom_retries", "-2")]:
    ray.shutdown()
    os.environ[name] = value
    try:
        ray.init()
    except ValueError as error:
        print(error)
    del os.environ[name]
""",
        env={"RAY_memory_monitor_refresh_ms": "0"},
    )
    assert "RAY_memory_monitor_refresh_ms must be a number" in done.stdout
    assert "RAY_task_oom_retries must be a number from -1" in done.stdout


IN_GROUP = """
import os
with open(os.path.join({folder!r}, "cgroup.procs"), "w") as file:
    file.write(str(os.getpid()))
import oxiray as ray
ray.init(num_cpus=2, object_store_memory=80 << 20)

@ray.remote(max_retries=0)
def hog():
    held = []
    while True:
        held.append(bytearray(b"x" * (8 << 20)))

try:
    ray.get(hog.remote(), timeout=50)
except ray.exceptions.OutOfMemoryError as error:
    print(error)
assert ray.get(ray.remote(lambda: 5).remote()) == 5
"""


def test_a_kill_of_the_kernel_is_called_one(driver):
    with real_group(400 << 20) as folder:
        source = IN_GROUP.format(folder=folder)
        done = driver(source, env={"RAY_memory_monitor_refresh_ms": "0"})
    assert "killed by the kernel" in done.stdout and "400.0 MiB" in done.stdout, done.stdout


def test_a_fast_hog_is_met_within_the_memory_of_its_container(driver):
    """The limit of a control group is the machine's memory."""
    with real_group(600 << 20) as folder:
        source = IN_GROUP.format(folder=folder)
        done = driver(source, env={"RAY_memory_usage_threshold": "0.6"})
    assert "600.0 MiB" in done.stdout, done.stdout
    assert "nearly used up" in done.stdout or "killed by the kernel" in done.stdout, done.stdout
