"""Jobs: handed in from outside, followed, stopped; what they find, and what is refused."""

from __future__ import annotations

import asyncio
import http.client
import os
import subprocess
import sys
import textwrap

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray import _native
from oxiray.cluster_utils import Cluster
from oxiray.job_submission import JobStatus, JobSubmissionClient, JobType
from wheel_maker import make_wheel


@pytest.fixture(scope="module")
def two():
    ray.shutdown()
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": True}
    )
    cluster.add_node(num_cpus=2, resources={"far": 1})
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def url(two):
    node = next(node for node in _native.started_nodes() if node["is_head"])
    return _native.dashboard_url(node["session_dir"])


@pytest.fixture(scope="module")
def client(url):
    return JobSubmissionClient(url)


def finish(client, job, status=JobStatus.SUCCEEDED):
    wait_until(lambda: client.get_job_status(job).is_terminal(), 60, f"{job} goes on")
    info = client.get_job_info(job)
    assert info.status == status, (info.message, client.get_job_logs(job))
    return info


@pytest.fixture
def program(tmp_path):
    """A directory with a program that uses the cluster."""

    def write(source):
        (tmp_path / "program.py").write_text(textwrap.dedent(source))
        return str(tmp_path)

    return write


def test_a_program_runs_on_the_cluster(client, program):
    directory = program(
        """
        import os
        import oxiray as ray
        ray.init()
        import own

        @ray.remote(resources={"far": 1})
        def far():
            import own
            return own.VALUE, os.environ["MODE"], os.path.exists("program.py")

        print("far says", ray.get(far.remote()), "and here is", own.VALUE, os.environ["MODE"])
        """
    )
    with open(os.path.join(directory, "own.py"), "w") as file:
        file.write("VALUE = 'own'\n")
    environment = {"working_dir": directory, "env_vars": {"MODE": "fast"}}
    job = client.submit_job(
        entrypoint="python program.py", runtime_env=environment, metadata={"who": "test"}
    )
    info = finish(client, job)
    said = client.get_job_logs(job)
    assert "far says ('own', 'fast', True) and here is own fast" in said
    assert (info.type, info.submission_id, info.driver_exit_code) == (JobType.SUBMISSION, job, 0)
    assert info.metadata == {"who": "test"}
    assert info.start_time <= info.end_time
    assert info.driver_node_id
    assert info.runtime_env["working_dir"].startswith("gcs://")
    assert job in [each.submission_id for each in client.list_jobs()]


def test_a_package_is_installed_for_it(client, tmp_path):
    make_wheel(tmp_path, "oxiray_test_job_package", "4.0")
    packages = ["--no-index", f"--find-links {tmp_path}", "oxiray_test_job_package"]
    code = "import oxiray_test_job_package as p; print('version', p.VALUE)"
    job = client.submit_job(entrypoint=f'python -c "{code}"', runtime_env={"pip": packages})
    finish(client, job)
    assert "version 4.0" in client.get_job_logs(job)


def test_what_fails(client):
    job = client.submit_job(entrypoint="echo before; exit 3", submission_id="failing")
    info = finish(client, job, JobStatus.FAILED)
    assert (info.driver_exit_code, info.error_type) == (3, "JOB_ENTRYPOINT_COMMAND_ERROR")
    assert "exit code 3" in info.message
    assert client.get_job_logs("failing") == "before\n"
    with pytest.raises(RuntimeError, match=r"400.*failing already exists"):
        client.submit_job(entrypoint="true", submission_id="failing")
    assert client.delete_job("failing")
    with pytest.raises(RuntimeError, match="404"):
        client.get_job_info("failing")
    environment = {"py_executable": "/nowhere/python"}
    job = client.submit_job(entrypoint="true", runtime_env=environment)
    info = finish(client, job, JobStatus.FAILED)
    assert "/nowhere/python" in info.message
    assert info.error_type == "RUNTIME_ENV_SETUP_FAILURE"


def test_stop_is_clean_then_hard(client, tmp_path):
    mark = tmp_path / "cleaned"
    clean = f"trap 'echo cleaned > {mark}; exit 0' TERM; echo ready; while true; do sleep 0.1; done"
    job = client.submit_job(entrypoint=clean)
    wait_until(lambda: "ready" in client.get_job_logs(job), 30)
    with pytest.raises(RuntimeError, match="stop it"):
        client.delete_job(job)
    assert client.stop_job(job)
    finish(client, job, JobStatus.STOPPED)
    assert mark.read_text() == "cleaned\n"
    assert not client.stop_job(job)
    deaf = f"trap '' TERM; echo $$ > {tmp_path}/pid; echo ready; while true; do sleep 0.1; done"
    job = client.submit_job(entrypoint=deaf)
    wait_until(lambda: "ready" in client.get_job_logs(job), 30)
    assert client.stop_job(job)
    finish(client, job, JobStatus.STOPPED)
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 10)


def test_one_that_waits_for_room_can_be_stopped(client):
    job = client.submit_job(entrypoint="true", entrypoint_resources={"nowhere": 1})
    assert client.get_job_status(job) == JobStatus.PENDING
    assert client.stop_job(job)
    finish(client, job, JobStatus.STOPPED)


def test_resources_of_the_entrypoint(client):
    code = "import os; print('cwd', os.getcwd())"
    job = client.submit_job(
        entrypoint=f'python -c "{code}"', entrypoint_num_cpus=1, entrypoint_resources={"far": 1}
    )
    info = finish(client, job)
    head = next(node for node in _native.started_nodes() if node["is_head"])
    assert info.driver_node_id != head["node_id"]
    assert "cwd" in client.get_job_logs(job), "its log is read from another node"


def test_logs_as_they_come(client):
    job = client.submit_job(entrypoint="for i in 1 2 3; do echo line $i; sleep 0.5; done")

    async def follow():
        return [text async for text in client.tail_job_logs(job)]

    pieces = asyncio.run(follow())
    assert "".join(pieces) == "line 1\nline 2\nline 3\n"
    assert client.get_job_status(job) == JobStatus.SUCCEEDED


def test_its_environment_is_that_of_its_tasks_and_may_be_added_to(client, program):
    directory = program(
        """
        import os
        import oxiray as ray
        ray.init(runtime_env={"env_vars": {"ADDED": "1"}})

        @ray.remote
        def both():
            return os.environ.get("GIVEN"), os.environ.get("ADDED")

        print(ray.get(both.remote()))
        ray.shutdown()
        try:
            ray.init(runtime_env={"env_vars": {"GIVEN": "other"}})
        except ValueError as error:
            print("refused:", error)
        """
    )
    environment = {"working_dir": directory, "env_vars": {"GIVEN": "g"}}
    job = client.submit_job(entrypoint="python program.py", runtime_env=environment)
    finish(client, job)
    said = client.get_job_logs(job)
    assert "('g', '1')" in said
    assert "refused:" in said and "GIVEN" in said


def test_nobody_without_the_token(url):
    address = url.partition("/?")[0]
    host = address.removeprefix("http://")
    for method, path in (
        ("GET", "/api/jobs/"),
        ("POST", "/api/jobs/"),
        ("PUT", "/api/packages/gcs/_ray_pkg_x.zip"),
        ("GET", "/api/version"),
        ("DELETE", "/api/jobs/x"),
        ("POST", "/api/jobs/x/stop"),
        ("GET", "/api/jobs/x/logs"),
    ):
        connection = http.client.HTTPConnection(host, timeout=30)
        body = '{"entrypoint": "true"}' if method == "POST" else None
        connection.request(method, path, body=body)
        assert connection.getresponse().status == 401, (method, path)
        connection.close()
    with pytest.raises(RuntimeError, match="401"):
        JobSubmissionClient(address, headers={"Authorization": "Bearer wrong"})


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({}, "entrypoint"),
        ({"entrypoint": ""}, "entrypoint"),
        ({"entrypoint": 5}, "entrypoint"),
        ({"entrypoint": "true", "what": 1}, "'what'"),
        ({"entrypoint": "true", "submission_id": "../x"}, "submission_id"),
        ({"entrypoint": "true", "metadata": {"a": 1}}, "metadata"),
        ({"entrypoint": "true", "entrypoint_num_cpus": -1}, "num_cpus"),
        ({"entrypoint": "true", "runtime_env": {"envvars": {}}}, "env_vars"),
        ({"entrypoint": "true", "entrypoint_resources": {"CPU": 1}}, "CPU"),
        ([], "entrypoint"),
    ],
    ids=str,
)
def test_what_is_refused(client, wanted, says):
    before = len(client.list_jobs())
    with pytest.raises(RuntimeError, match=rf"status code 400.*{says}"):
        client._ask("POST", "/api/jobs/", wanted)
    assert len(client.list_jobs()) == before


def test_bad_names_of_packages(client):
    for name in ("..%2fx", ".hidden", "a%00b", "x" * 300):
        with pytest.raises(RuntimeError, match=r"status code 40[04]"):
            client._ask("GET", f"/api/packages/gcs/{name}")
    with pytest.raises(RuntimeError, match="status code 40"):
        client._ask("GET", "/api/packages/s3/x.zip")


def test_the_log_of_a_job_by_its_id(client, two):
    from oxiray.util.state import get_log

    job = client.submit_job(entrypoint="echo heard")
    finish(client, job)
    assert "".join(get_log(two.address, submission_id=job)) == client.get_job_logs(job)


def test_an_address_where_nobody_is():
    with pytest.raises(ConnectionError, match="Failed to connect"):
        JobSubmissionClient("http://127.0.0.1:1")
    with pytest.raises(ConnectionError, match="http://"):
        JobSubmissionClient("ray://127.0.0.1:10001")


def oxiray(*arguments, **options):
    program = os.path.join(os.path.dirname(ray.__file__), "_bin", "oxiray")
    environment = {**os.environ, "OXIRAY_PYTHON": sys.executable}
    return subprocess.run(
        [program, "job", *arguments], capture_output=True, text=True, env=environment, timeout=120,
        **options,
    )  # fmt: skip


def test_the_command(client, url, tmp_path):
    (tmp_path / "hello.txt").write_text("from the directory\n")
    done = oxiray(
        "submit", "--address", url, "--submission-id", "by-hand", "--working-dir", str(tmp_path),
        "--runtime-env-json", '{"env_vars": {"A": "1"}}', "--", "cat", "hello.txt",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "from the directory" in done.stdout and "'by-hand' succeeded" in done.stdout
    assert "SUCCEEDED" in oxiray("status", "by-hand", "--address", url).stdout
    assert oxiray("logs", "by-hand", "--address", url).stdout == "from the directory\n"
    assert "by-hand" in oxiray("list").stdout, "the cluster of this machine"
    assert oxiray("delete", "by-hand").returncode == 0
    assert "404" in oxiray("status", "by-hand").stderr
    failed = oxiray("submit", "--", "sh", "-c", "exit 5")
    assert failed.returncode == 1 and "exit code 5" in failed.stdout
    assert "needs the command" in oxiray("submit").stderr
    waits = oxiray("submit", "--no-wait", "--submission-id", "sleeper", "--", "sleep", "100")
    assert waits.returncode == 0
    stopped = oxiray("stop", "sleeper")
    assert "was stopped" in stopped.stdout, stopped
