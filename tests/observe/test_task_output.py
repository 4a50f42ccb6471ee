"""What one task printed, told from what others printed in the same worker."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import oxiray as ray
import pytest
from conftest import wait_until
from dashboard_client import Dashboard
from oxiray.cluster_utils import Cluster
from oxiray.util import state

PROGRAM = os.path.join(os.path.dirname(sys.executable), "oxiray")


@ray.remote
def speak(number):
    print("first", number)
    print("second", number, end="")
    print("error", number, file=sys.stderr)


@ray.remote
def start_program():
    subprocess.run(["echo", "of a program"], check=True)


@ray.remote
class Dots:
    def dot(self):
        print(".", end="")

    def end(self):
        print("end")


@pytest.fixture(scope="module")
def dashboard():
    ray.shutdown()
    # One processor: all tasks are run by one worker.
    context = ray.init(num_cpus=1, logging_level="error", log_to_driver=False, dashboard_port=0)
    yield Dashboard(context.dashboard_url)
    ray.shutdown()


def printed(ref, **how):
    return "".join(state.get_log(task_id=ref.task_id().hex(), **how))


def comes(ref, text, **how):
    wait_until(lambda: printed(ref, **how) == text, message=f"{text[:40]!r} is all it printed")


def logs(*arguments):
    done = subprocess.run([PROGRAM, "logs", *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_tasks_of_one_worker_are_told_apart(dashboard):
    refs = [speak.remote(i) for i in range(4)]
    ray.get(refs)
    for i, ref in enumerate(refs):
        comes(ref, f"first {i}\nsecond {i}\n")
        comes(ref, f"error {i}\n", suffix="err")
        assert printed(ref, tail=1) == f"second {i}\n" and printed(ref, tail=0) == ""
    task = refs[2].task_id().hex()
    assert logs("--task-id", task) == (0, "first 2\nsecond 2\n", "")
    assert logs("--task-id", task, "--tail=1", "--err") == (0, "error 2\n", "")
    seen = dashboard.json(f"/api/tasks/{task}/log")
    assert seen["out"] == {"text": "first 2\nsecond 2\n", "truncated": False}
    assert seen["err"] == {"text": "error 2\n", "truncated": False}
    files = state.get_task(task).task_log_info
    assert files["stdout_file"] in state.list_logs()["worker_out"], "the whole log"
    assert ".tasks" not in str(state.list_logs())


def test_what_a_program_prints_is_not_the_task_befores(dashboard):
    before, program = speak.remote(7), start_program.remote()
    ray.get([before, program])
    task = program.task_id().hex()
    worker_log = state.get_task(task).task_log_info["stdout_file"]
    whole = lambda: "".join(state.get_log(filename=worker_log))  # noqa: E731
    wait_until(lambda: "of a program" in whole(), message="it is in the worker's log")
    assert printed(before) == "first 7\nsecond 7\n"
    assert printed(program) == ""
    code, out, err = logs("--task-id", task)
    assert (code, out) == (0, "") and worker_log in err


def test_a_line_of_several_calls_is_of_the_one_that_began_it(dashboard):
    actor = Dots.options(num_cpus=0).remote()
    calls = [actor.dot.remote(), actor.dot.remote(), actor.end.remote(), actor.end.remote()]
    ray.get(calls)
    comes(calls[0], "..end\n")
    assert printed(calls[1]) == printed(calls[2]) == ""
    comes(calls[3], "end\n")


def test_of_very_much_the_end_is_shown(dashboard):
    @ray.remote
    def chatter():
        for i in range(40_000):
            print(f"line {i}")

    ref = chatter.remote()
    ray.get(ref)
    comes(ref, "".join(f"line {i}\n" for i in range(40_000)))
    seen = dashboard.json(f"/api/tasks/{ref.task_id().hex()}/log")["out"]
    assert seen["truncated"] and len(seen["text"]) == 256 * 1024
    assert seen["text"].endswith("line 39998\nline 39999\n")


def test_a_task_is_followed_while_it_runs(dashboard, tmp_path):
    @ray.remote
    def steps(folder):
        for i in range(3):
            while not os.path.exists(f"{folder}/{i}"):
                time.sleep(0.01)
            print("step", i)

    ref = steps.remote(str(tmp_path))
    runs = lambda: state.get_task(ref.task_id().hex()).state == "RUNNING"  # noqa: E731
    wait_until(runs, message="it runs")
    lines = state.get_log(task_id=ref.task_id().hex(), follow=True)
    command = [PROGRAM, "logs", "--task-id", ref.task_id().hex(), "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
        for i in range(3):
            (tmp_path / str(i)).touch()
            assert next(lines) == f"step {i}\n"
            assert follower.stdout.readline() == f"step {i}\n"
        follower.terminate()
    ray.get(ref)


def test_a_task_is_followed_from_before_it_begins_through_another_try(dashboard, tmp_path):
    @ray.remote(max_retries=1)
    def dies_once(folder):
        print("try", os.path.exists(f"{folder}/died"))
        if not os.path.exists(f"{folder}/died"):
            open(f"{folder}/died", "w").close()
            # Until the one who follows has seen it.
            while not os.path.exists(f"{folder}/seen"):
                time.sleep(0.01)
            os._exit(1)

    ref = dies_once.remote(str(tmp_path))
    lines = state.get_log(task_id=ref.task_id().hex(), follow=True)
    assert next(lines) == "try False\n"
    (tmp_path / "seen").touch()
    assert next(lines) == "try True\n"
    ray.get(ref)


def test_mistakes_are_told(dashboard):
    code, _, err = logs("--task-id", "zz")
    assert code == 1 and "none with the id zz among the tasks" in err
    code, _, err = logs("--task-id", "zz", "--pid", "1")
    assert code == 2 and "cannot be used with" in err
    with pytest.raises(ValueError, match="one of filename=, actor_id=, task_id=, pid= or"):
        state.get_log(task_id="zz", pid=1)
    waits = speak.options(resources={"nowhere": 1}).remote(0)
    wait_until(lambda: state.get_task(waits.task_id().hex()), message="it is known")
    with pytest.raises(ValueError, match="no worker has run it yet"):
        printed(waits)
    nothing = {"text": "", "truncated": False}
    seen = dashboard.json(f"/api/tasks/{waits.task_id().hex()}/log")
    assert seen == {"out": nothing, "err": nothing}


def test_it_goes_on_over_older_parts_of_the_log(driver):
    driver(
        """
        import time
        import oxiray as ray
        from oxiray.util import state
        ray.init(num_cpus=1, logging_level="error", log_to_driver=False)

        @ray.remote
        def chatter(name, lines):
            for i in range(lines):
                print(name, i)

        refs = [chatter.remote("few", 3), chatter.remote("many", 2000), chatter.remote("more", 3)]
        ray.get(refs)

        def comes(ref, text):
            printed = None
            while printed != text:
                time.sleep(0.01)
                printed = "".join(state.get_log(task_id=ref.task_id().hex()))

        comes(refs[2], "".join(f"more {i}\\n" for i in range(3)))
        comes(refs[1], "".join(f"many {i}\\n" for i in range(2000)))
        comes(refs[0], "".join(f"few {i}\\n" for i in range(3)))
        """,
        env={"RAY_ROTATION_MAX_BYTES": "2000", "RAY_ROTATION_BACKUP_COUNT": "100"},
    )


def test_a_task_of_another_node():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        other = cluster.add_node(num_cpus=1, resources={"there": 1})
        ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
        refs = [speak.options(resources={"there": 1}).remote(i) for i in range(2)]
        ray.get(refs)
        comes(refs[1], "first 1\nsecond 1\n")
        assert state.get_task(refs[1].task_id().hex()).node_id == other.node_id
    finally:
        ray.shutdown()
        cluster.shutdown()
