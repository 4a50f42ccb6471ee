"""Tasks in `oxiray.util.state`: every one of them, how far it is, and why."""

from __future__ import annotations

import os
import signal

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.cluster_utils import Cluster
from oxiray.util import state

NASTY = "<script>alert('1')</script>\"\n\x1b[31m"


@ray.remote
def double(x):
    return 2 * x


@ray.remote(max_retries=0)
def broken():
    raise ValueError(f"it is broken {NASTY}")


@ray.remote
class Counter:
    def pid(self):
        return os.getpid()


@pytest.fixture(scope="module")
def alone():
    ray.shutdown()
    ray.init(num_cpus=2, resources={"tool": 1}, logging_level="error")
    yield
    ray.shutdown()


def test_tasks_of_all_kinds(alone):
    total = ray.get([double.options(name=NASTY).remote(i) for i in range(3)])
    assert total == [0, 2, 4]
    actor = Counter.remote()
    ref = actor.pid.remote()
    pid = ray.get(ref)
    rows = wait_until(
        lambda: [r for r in state.list_tasks(limit=None) if r.name == NASTY and r.end_time_ms]
    )
    assert len(rows) == 3
    for row in rows:
        assert (row.state, row.type, row.error_type) == ("FINISHED", "NORMAL_TASK", None)
        assert row.job_id == ray.get_runtime_context().get_job_id()
        assert row.creation_time_ms <= row.start_time_ms <= row.end_time_ms
    call = wait_until(lambda: state.get_task(ref), message="the call is known")
    assert (call.type, call.worker_pid) == ("ACTOR_TASK", pid)
    assert call.actor_id == actor._actor_id.hex()
    made = state.list_tasks(filters=[("type", "=", "ACTOR_CREATION_TASK")], limit=None)
    assert any(row.actor_id == actor._actor_id.hex() for row in made)


def test_a_failed_task_has_its_traceback(alone):
    ref = broken.remote()
    with pytest.raises(ValueError, match="it is broken"):
        ray.get(ref)
    row = wait_until(lambda: state.get_task(ref), message="it is known")
    assert (row.state, row.error_type) == ("FAILED", "TASK_EXECUTION_EXCEPTION")
    assert "ValueError" in row.error_message and "it is broken" in row.error_message
    failed = state.list_tasks(filters=[("state", "=", "failed"), ("name", "=", "broken")])
    assert ref.hex().startswith(failed[0].task_id)


def test_a_task_that_waits_says_why(alone):
    ref = double.options(resources={"nowhere": 1}).remote(1)
    row = wait_until(lambda: state.get_task(ref), message="it is known")
    assert row.state == "PENDING_NODE_ASSIGNMENT" and "nowhere" in row.why


def test_a_task_that_runs(alone, gate):
    @ray.remote
    def wait():
        gate.wait()

    ref = wait.remote()
    running = lambda: getattr(state.get_task(ref), "state", None) == "RUNNING"  # noqa: E731
    wait_until(running, message="it runs")
    assert state.get_task(ref).worker_pid > 0
    gate.open()
    ray.get(ref)


def test_an_actor_that_is_started_again(alone, tmp_path):
    mark = tmp_path / "mark"

    @ray.remote(max_restarts=1, max_task_retries=1)
    class Fragile:
        def die_once(self):
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return "survived"

    def attempts(row):
        return [(one["attempt_number"], one["state"], one["error_type"]) for one in row.attempts]

    actor = Fragile.remote()
    ref = actor.die_once.remote()
    assert ray.get(ref) == "survived"
    call = wait_until(lambda: state.get_task(ref), message="the call is known")
    assert attempts(call) == [(0, "FAILED", "ACTOR_UNAVAILABLE"), (1, "FINISHED", None)]
    ray.kill(actor)
    its = [("actor_id", "=", actor._actor_id.hex()), ("type", "=", "ACTOR_CREATION_TASK")]
    wait_until(lambda: state.get_actor(actor._actor_id.hex()).state == "DEAD", message="it is dead")
    [made] = state.list_tasks(filters=its, detail=True)
    # Its death is no failure of the runs of its constructor, of which there were two.
    assert attempts(made) == [(0, "FINISHED", None), (1, "FINISHED", None)]
    assert made.error_message is None


def test_attempts_come_in_order_each_with_its_error(alone, tmp_path):
    @ray.remote(max_retries=2, retry_exceptions=True)
    def flaky():
        number = len(list(tmp_path.iterdir()))
        (tmp_path / str(number)).touch()
        if number < 2:
            raise ValueError(f"try {number}")
        return number

    ref = flaky.remote()
    assert ray.get(ref) == 2
    row = wait_until(lambda: state.get_task(ref), message="it is known")
    assert [one["attempt_number"] for one in row.attempts] == [0, 1, 2]
    assert [one["state"] for one in row.attempts] == ["FAILED", "FAILED", "FINISHED"]
    for number, one in enumerate(row.attempts[:2]):
        assert one["error_type"] == "TASK_EXECUTION_EXCEPTION"
        assert f"ValueError: try {number}" in one["error_message"]
    assert row.attempts[2]["error_message"] is None
    # The time of the attempts before is not time that this one waited for arguments.
    assert "PENDING_ARGS_AVAIL" not in [event["state"] for event in row.events]


def test_a_given_name_does_not_hide_the_function(alone):
    actor = Counter.remote()
    ray.get([double.options(name=f"job-{i}").remote(i) for i in range(3)])
    ray.get(actor.pid.options(name="asked").remote())
    rows = {row.name: row for row in state.list_tasks(limit=None)}
    assert rows["job-2"].func_or_class_name == "double"
    assert rows["asked"].func_or_class_name == "Counter.pid"
    assert state.list_tasks(filters=[("func_or_class_name", "=", "Counter.pid")])
    groups = state.summarize_tasks()["cluster"]["summary"]
    assert "double" in groups and "job-2" not in groups and "asked" not in groups


def test_needs_and_feeds(alone):
    first = double.remote(1)
    second = double.remote(first)
    assert ray.get(second) == 4
    row = wait_until(lambda: state.get_task(second), message="it is known")
    assert row.needs == [state.get_task(first).task_id]
    assert state.get_task(first).feeds == [row.task_id]


def test_an_id_that_is_none_or_that_several_have(alone):
    assert state.get_task("0f" * 24) is None
    ray.get([double.remote(i) for i in range(40)])
    wait_until(lambda: len(state.list_tasks()) > 30)
    with pytest.raises(ValueError, match="several tasks"):
        [state.get_task(digit) for digit in "0123456789abcdef"]


def test_twenty_thousand_tasks_are_all_there(fresh):
    fresh(num_cpus=2)
    many = 20_000

    @ray.remote
    def small(i):
        return i

    assert ray.get([small.remote(i) for i in range(many)]) == list(range(many))
    done = lambda: state.list_tasks(filters=[("state", "=", "FINISHED")], limit=None)  # noqa: E731
    rows = wait_until(lambda: (found := done()) and len(found) == many and found)
    assert len({row.task_id for row in rows}) == many
    assert len(state.list_tasks()) == 100, "the default"
    with pytest.warns(UserWarning, match="100 of 20000"):
        state.list_tasks(_explain=True)
    summary = state.summarize_tasks()["cluster"]
    assert summary["total_tasks"] == many
    (group,) = summary["summary"].values()
    assert group["state_counts"] == {"FINISHED": many}


def test_tasks_of_another_node():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    other = cluster.add_node(num_cpus=1, resources={"there": 1})
    cluster.connect()
    try:
        there = {"resources": {"there": 0.1}}
        ref = double.options(**there).remote(2)
        assert ray.get(ref) == 4
        done = lambda: getattr(state.get_task(ref), "state", None) == "FINISHED"  # noqa: E731
        wait_until(done, message="its worker has said so")
        row = state.get_task(ref)
        assert row.node_id == other.node_id
        assert row.job_id == ray.get_runtime_context().get_job_id()
        failed = broken.options(**there).remote()
        with pytest.raises(ValueError, match="it is broken"):
            ray.get(failed)
        wait_until(lambda: (row := state.get_task(failed)) and row.error_message)
        assert "ValueError" in state.get_task(failed).error_message
    finally:
        ray.shutdown()
        cluster.shutdown()
