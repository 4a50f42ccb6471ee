"""What is told of the tasks, actors and programs of a node that is gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.cluster_utils import Cluster
from oxiray.util import state

PROGRAM = os.path.join(sysconfig.get_path("scripts"), "oxiray")


@ray.remote(resources={"there": 0.1}, max_retries=0)
def away(fails=False):
    if fails:
        raise ValueError("not today")


@ray.remote(resources={"there": 0.1})
class Away:
    def call(self):
        return os.getpid()

    def end(self):
        print("last words", flush=True)
        os._exit(3)


@pytest.fixture
def two():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.other = cluster.add_node(num_cpus=2, resources={"there": 1})
    cluster.connect()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def lose(cluster):
    cluster.remove_node(cluster.other, allow_graceful=False)
    lost = cluster.other.node_id

    def is_gone():
        # The control service hears of it before the other nodes do.
        alive = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
        return state.get_node(lost).state == "DEAD" and lost not in alive

    wait_until(is_gone, message="the node is gone")


def told(*arguments):
    """What the command line prints, and what it says is missing."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.filterwarnings("ignore:Some of it is missing")
def test_tasks_end_as_their_owner_saw_it(two):
    actor = Away.remote()
    call = actor.call.remote()
    ray.get(call, timeout=60)
    done, failed = away.remote(), away.remote(fails=True)
    ray.get(done, timeout=60)
    with pytest.raises(ValueError):
        ray.get(failed, timeout=60)
    lose(two)
    wait_until(lambda: state.get_actor(actor._actor_id).state == "DEAD", message="it is dead")
    rows = {row.name: row for row in state.list_tasks(limit=None) if row.name.startswith("Away")}
    assert {name: row.state for name, row in rows.items()} == {
        "Away.__init__": "FINISHED",
        "Away.call": "FINISHED",
    }
    assert state.get_task(done).state == "FINISHED"
    row = state.get_task(failed)
    assert (row.state, row.error_type) == ("FAILED", "TASK_EXECUTION_EXCEPTION")
    assert row.end_time_ms > 1.7e12


def test_what_went_with_a_node_is_said(two):
    actor = Away.remote()
    ray.get(actor.call.remote(), timeout=60)
    # By then the others have heard that anything runs there.
    wait_until(lambda: ray.available_resources()["there"] < 1, message="it is told")
    idle = two.add_node(num_cpus=1)
    two.remove_node(idle)
    lose(two)
    for command in (["list", "tasks"], ["summary", "tasks"], ["timeline", "-o", "-"]):
        _, notes = told(*command)
        assert notes.count("left the cluster") == 1, notes
        assert two.other.node_id[:12] in notes and "went with it" in notes
    with pytest.warns(match="left the cluster"):
        state.list_tasks()


@pytest.mark.filterwarnings("ignore:Some of it is missing")
def test_a_program_that_was_lost_with_its_node_leaves_tasks_of_unknown_end(two, driver):
    # A program that looks for a cluster finds only the other node's part of it.
    folder = os.path.join(os.environ["OXIRAY_TMPDIR"], "started")
    files = [name for name in os.listdir(folder) if name not in two.other.session_dir]
    for file in files:
        os.rename(os.path.join(folder, file), os.path.join(driver.base, file))
    process = driver.start(
        """
        import oxiray as ray
        ray.init(address="auto", logging_level="error")
        left = ray.remote(resources={"nowhere": 1})(lambda: 1).options(name="left").remote()
        print(ray.get_runtime_context().get_job_id(), flush=True)
        input()
        """,
        stdin=subprocess.PIPE,
        env={"OXIRAY_TMPDIR": os.environ["OXIRAY_TMPDIR"]},
    )
    try:
        job_id = process.stdout.readline().strip()
        for file in files:
            os.rename(os.path.join(driver.base, file), os.path.join(folder, file))
        wait_until(lambda: state.get_job(job_id), message="the job is known")
        assert state.get_job(job_id).driver_node_id == two.other.node_id
        left = [("name", "=", "left")]
        wait_until(lambda: state.list_tasks(filters=left), message="its task is known")
        lose(two)
        # Who has seen its task does not know what came of it since.
        (task,) = state.list_tasks(filters=left)
        assert (task.state, task.error_type, task.end_time_ms) == ("UNKNOWN", None, None)
        row = wait_until(
            lambda: (row := state.get_job(job_id)).end_time_ms and row, message="it ended"
        )
        assert row.status == "FAILED"
        assert row.message.startswith("its node left the cluster: ")
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(driver.base)


@pytest.mark.filterwarnings("ignore:Some of it is missing")
def test_what_a_program_that_ended_ran_on_a_lost_node_has_not_failed(two, driver):
    program = f"""
        import oxiray as ray

        ray.init({two.address!r}, logging_level="error")
        ray.get([ray.remote(resources={{"there": 0.1}})(abs).remote(-1) for _ in range(3)])
        """
    assert driver(program, env={"OXIRAY_TMPDIR": os.environ["OXIRAY_TMPDIR"]}).returncode == 0
    here = [("state", "!=", "PENDING_NODE_ASSIGNMENT"), ("name", "=", "abs")]

    def states():
        return [task.state for task in state.list_tasks(filters=here)]

    assert states() == ["FINISHED"] * 3
    lose(two)
    # Who looked before has seen how they ended; who looks now for the first time has not.
    assert states() == ["FINISHED"] * 3
    rows, _ = told("list", "tasks", "--filter", "state=UNKNOWN", "--format", "json")
    assert [row["name"] for row in json.loads(rows)] == ["abs"] * 3
    summary, _ = told("summary", "tasks", "--format", "json")
    states_told = {row["name"]: row["states"] for row in json.loads(summary)["rows"]}
    assert states_told["abs"] == {"UNKNOWN": 3}
    why, _ = told("why", "abs")
    assert "0 FINISHED, 0 FAILED, 3 UNKNOWN" in why and "is UNKNOWN" in why


def test_the_death_of_an_actor_on_another_node_says_where_it_was(two):
    actors = [Away.remote(), Away.remote()]
    pids = ray.get([actor.call.remote() for actor in actors], timeout=60)
    there = f"node {two.other.node_id[:12]} ("
    with pytest.raises(ray.exceptions.ActorDiedError) as caught:
        ray.get(actors[0].end.remote(), timeout=60)
    text = str(caught.value)
    assert text.startswith(f"The actor Away ({actors[0]._actor_id.hex()}) died during end: its ")
    assert f"process {pids[0]} on {there}" in text and "exit code 3" in text
    assert "    last words" in text
    lose(two)
    with pytest.raises(ray.exceptions.ActorDiedError) as caught:
        ray.get(actors[1].call.remote(), timeout=60)
    text = str(caught.value)
    assert f"The actor Away ({actors[1]._actor_id.hex()})" in text
    assert f"its {there}" in text and f"process {pids[1]}, left the cluster" in text
