"""Jobs whose clerk, supervisor or command goes wrong: they go on or fail, and no list lies."""

from __future__ import annotations

import os
import signal

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray import _native
from oxiray.cluster_utils import Cluster
from oxiray.job_submission import JobStatus, JobSubmissionClient, JobType
from oxiray.util.state import list_actors, list_jobs


@pytest.fixture(scope="module")
def head():
    ray.shutdown()
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": True}
    )
    ray.init(cluster.address, logging_level="error")
    yield next(node for node in _native.started_nodes() if node["is_head"])
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def client(head):
    return JobSubmissionClient(_native.dashboard_url(head["session_dir"]))


def processes(*words):
    """Those that have these among their arguments."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                arguments = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if set(words) <= set(arguments):
            found.append(int(pid))
    return found


def kill_clerk(head):
    (clerk,) = processes("oxiray._job_clerk", head["session_dir"])
    os.kill(clerk, signal.SIGKILL)
    wait_until(lambda: clerk not in processes("oxiray._job_clerk"), 20, "the clerk ends")


def finish(client, job):
    wait_until(lambda: client.get_job_status(job).is_terminal(), 60, f"{job} goes on")
    return client.get_job_info(job)


def listed(job):
    (row,) = [row for row in list_jobs() if row.submission_id == job]
    return row


def supervisors():
    return [row.name for row in list_actors() if row.name and row.name.startswith("job-")
            and row.state != "DEAD"]  # fmt: skip


def test_one_that_waits_outlives_its_clerk(head, client):
    block = client.submit_job(entrypoint="sleep 60", entrypoint_num_cpus=2)
    wait_until(lambda: client.get_job_status(block) == JobStatus.RUNNING, 30, "it has room")
    job = client.submit_job(entrypoint="echo ran", entrypoint_num_cpus=2)
    kill_clerk(head)
    assert client.get_job_status(job) == JobStatus.PENDING
    assert listed(job).status == "PENDING"
    kill_clerk(head)
    assert client.get_job_status(job) == JobStatus.PENDING
    assert client.stop_job(block)
    info = finish(client, job)
    assert info.status == JobStatus.SUCCEEDED, info
    assert client.get_job_logs(job) == "ran\n", "once"
    # Nor is a clerk a program of anybody's.
    assert {row.namespace for row in list_jobs()}.isdisjoint({"_oxiray_jobs"})
    own = [each for each in client.list_jobs() if each.type == JobType.DRIVER]
    assert [each.driver_info.pid for each in own] == [str(os.getpid())]


def test_who_is_killed_with_its_supervisor_has_failed(client):
    job = client.submit_job(entrypoint="echo $PPID; exec sleep 1234.5")
    wait_until(lambda: client.get_job_logs(job).strip(), 30, "it runs")
    row = listed(job)
    assert (row.status, row.type, row.job_id) == ("RUNNING", "SUBMISSION", job)
    assert row.log_file == f"job-driver-{job}.log"
    os.kill(int(client.get_job_logs(job)), signal.SIGKILL)
    # Also where nobody has asked the clerk.
    wait_until(lambda: listed(job).status == "FAILED", 30, "the list says so")
    assert "gone" in listed(job).message
    assert finish(client, job).error_type == "JOB_SUPERVISOR_ACTOR_DIED"
    wait_until(lambda: not processes("sleep", "1234.5"), 20, "nothing of it is left")


def test_a_program_is_found_by_either_name(client):
    job = client.submit_job(entrypoint="python -c 'import oxiray as ray; ray.init(); print(1)'")
    info = finish(client, job)
    assert info.status == JobStatus.SUCCEEDED, client.get_job_logs(job)
    row = listed(job)
    assert (row.status, row.type, row.job_id) == ("SUCCEEDED", "SUBMISSION", info.job_id)
    assert info.driver_info.id == info.job_id != job
    assert int(info.driver_info.pid) == row.driver_pid
    assert info.driver_info.node_ip_address == "127.0.0.1"


def test_commands_that_cannot_start(client):
    with pytest.raises(RuntimeError, match="null character"):
        client.submit_job(entrypoint="echo a\0b")
    job = client.submit_job(entrypoint="no-such-command-at-all")
    info = finish(client, job)
    assert (info.status, info.driver_exit_code) == (JobStatus.FAILED, 127)
    assert "not found" in client.get_job_logs(job)
    # The kernel's limit of an argument.
    job = client.submit_job(entrypoint="echo " + "x" * 200_000)
    info = finish(client, job)
    assert (info.status, info.error_type) == (
        JobStatus.FAILED,
        "JOB_ENTRYPOINT_COMMAND_START_ERROR",
    )
    assert "Argument list too long" in info.message
    row = listed(job)
    assert (row.status, len(row.entrypoint), len(info.entrypoint)) == ("FAILED", 600, 200_005)
    assert client.delete_job(job)
    with pytest.raises(RuntimeError, match="404"):
        client.get_job_info(job)
    wait_until(lambda: not supervisors(), 30, "no supervisor is left")
