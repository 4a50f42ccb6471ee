"""The dashboard's server: where it is, when it runs, and that it costs nothing otherwise."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys

import oxiray as ray
import pytest
from conftest import is_alive, processes_under, wait_until
from dashboard_client import Dashboard, servers, wait_for_no_server
from machines import Machine

# How long nobody must look until the server ends; a minute unless told.
SOON = {"OXIRAY_DASHBOARD_IDLE_S": "0.2"}


@pytest.fixture
def soon(monkeypatch):
    for name, value in SOON.items():
        monkeypatch.setenv(name, value)


def session_dir():
    from oxiray import _native

    return _native.context()["session_dir"]


def test_init_says_where_it_is(driver):
    done = driver(
        """
import oxiray as ray
context = ray.init(num_cpus=1)
print(context.dashboard_url)
print(context["webui_url"])
print(context._repr_html_())
"""
    )
    url, same, table = done.stdout.splitlines()
    assert url == same and url.startswith("127.0.0.1:")
    assert f'href="http://{url}"' in table
    assert done.stderr.count(f"View the dashboard at http://{url}\n") == 1


def test_the_next_free_port_is_taken(fresh, driver):
    first = Dashboard(fresh().dashboard_url)
    done = driver("import oxiray as ray; print(ray.init(num_cpus=1).dashboard_url)")
    assert Dashboard(done.stdout.strip()).port != first.port


def test_a_port_that_is_asked_for_and_in_use_is_an_error(fresh):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match=f"dashboard_port: {port} is in use"):
            fresh(dashboard_port=port)
        assert not ray.is_initialized()
        # Whoever wants none is not kept from having none.
        fresh(dashboard_port=port, include_dashboard=False)
    ray.shutdown()
    assert Dashboard(fresh(dashboard_port=port).dashboard_url).port == port


def test_a_host_that_is_not_ours_is_an_error(fresh):
    with pytest.raises(RuntimeError, match="dashboard_host"):
        fresh(dashboard_host="192.0.2.1")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"dashboard_port": "8265"}, TypeError),
        ({"dashboard_port": 70_000}, ValueError),
        ({"dashboard_host": 5}, TypeError),
        ({"include_dashboard": "no"}, TypeError),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments, error):
    ray.shutdown()
    with pytest.raises(error, match=next(iter(arguments))):
        ray.init(**arguments)


@pytest.mark.parametrize("name", ["include_dashboard", "include_webui"])
def test_without_it_there_is_nothing(fresh, name):
    context = fresh(**{name: False})
    assert context.dashboard_url == "" and "not started" in context._repr_html_()
    assert not [name for name in os.listdir(session_dir()) if name.startswith("dashboard")]


def test_it_runs_while_somebody_looks(fresh, soon):
    dashboard = Dashboard(fresh().dashboard_url)
    assert ray.get(ray.remote(lambda: 1).remote()) == 1
    for _ in range(2):
        assert not servers()
        with socket.create_connection((dashboard.host, dashboard.port)):
            wait_until(servers, 20, "it is started")
        assert dashboard.get("/").status == 200
        wait_for_no_server()


def test_an_open_page_keeps_it(fresh, soon):
    dashboard = Dashboard(fresh().dashboard_url)
    events = dashboard.stream("/api/stream")
    next(events)
    (pid,) = servers()
    # Two looks at the session, a second apart: longer than nobody may look.
    ray.get(ray.remote(lambda: 1).remote())
    next(events)
    assert servers() == [pid]
    events.close()
    wait_for_no_server()


def test_its_end_harms_nobody(fresh):
    dashboard = Dashboard(fresh().dashboard_url)

    def answers():
        try:
            return dashboard.get("/").status == 200
        except ConnectionError:  # who came while its end was being noticed
            return False

    for number in range(3):
        wait_until(answers, 20, "it answers")
        (pid,) = servers()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), 10, "it is killed")
        assert ray.get(ray.remote(lambda: number).remote(), timeout=30) == number


def test_it_ends_with_its_session(fresh):
    dashboard = Dashboard(fresh().dashboard_url)
    dashboard.get("/")
    (pid,) = servers()
    ray.shutdown()
    assert not is_alive(pid)


def test_it_ends_when_the_node_service_is_killed(driver):
    program = driver.start(
        """
import oxiray as ray
print(ray.init(num_cpus=1, logging_level="error").dashboard_url, flush=True)
input()
""",
        stdin=-1,
    )
    dashboard = Dashboard(program.stdout.readline().strip())
    assert dashboard.get("/").status == 200
    running = processes_under(driver.base)
    (server,) = (pid for pid, command in running.items() if "oxirayd dashboard" in command)
    (node,) = (pid for pid, command in running.items() if "oxirayd driver" in command)
    os.kill(node, signal.SIGKILL)
    wait_until(lambda: not is_alive(server), 10, "the dashboard ends")
    program.kill()
    program.communicate()
    # A node service that is killed can remove nothing.
    wait_until(lambda: not processes_under(driver.base), 10, "all end")
    shutil.rmtree(driver.base)


def test_the_commands_say_where_it_is(driver):
    program = driver.start(
        """
import oxiray as ray
print(ray.init(num_cpus=1, logging_level="error").dashboard_url, flush=True)
input()
""",
        stdin=-1,
    )
    url = "http://" + program.stdout.readline().strip()
    machine = Machine()
    environment = {"OXIRAY_TMPDIR": driver.base}
    assert machine("dashboard", **environment).stdout == f"{url}\n"
    assert url in machine("status", **environment).stdout
    program.communicate("\n", timeout=30)
    driver.clean()
    assert "include_dashboard" in machine("dashboard", code=3).stderr
    machine.end()


def test_the_head_of_a_cluster_has_one():
    head, other = Machine(), Machine()
    try:
        started = head("start", "--head", "--port=0", "--node-ip-address=127.0.0.1", "--num-cpus=1")
        other.join(head, "--num-cpus=1")
        url = head("dashboard").stdout.strip()
        assert url in started.stdout and url in head("status").stdout
        assert url in head("dashboard", f"--address={head.address}").stdout
        assert Dashboard(url).get("/").status == 200
        assert Dashboard(url).ask("/").status == 401
        other("dashboard", code=3)
        program = "import oxiray as ray; print(ray.init(address='auto').dashboard_url)"
        assert "http://" + head.run_program(program).strip() == url
        assert other.run_program(program).strip() == ""
    finally:
        other.end()
        head.end()


def test_a_cluster_without_one():
    head = Machine()
    try:
        head.start_head("--num-cpus=1", "--include-dashboard=false")
        head("dashboard", code=3)
    finally:
        head.end()


def test_a_port_of_the_head_that_is_in_use():
    machine = Machine()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = machine("start", "--head", "--port=0", f"--dashboard-port={port}", code=1)
    assert f"dashboard_port: {port} is in use" in done.stderr
    machine.end()


MEASURE = """
import os, sys
import oxiray as ray

mark = f"OXIRAY_TMPDIR={os.environ['OXIRAY_TMPDIR']}".encode()
def find():
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark not in file.read().split(b"\\0"):
                    continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if b"driver" in file.read().split(b"\\0"):
                    yield name
        except OSError:
            pass
# That of the program before this one may not have ended yet.
before = set(find())
ray.init(num_cpus=2, logging_level="error", include_dashboard=sys.argv[1] == "with")
node, = set(find()) - before
work = ray.remote(lambda: None)
for _ in range(20):
    ray.get([work.remote() for _ in range(1000)])
with open(f"/proc/{node}/smaps_rollup") as file:
    private = sum(int(line.split()[1]) for line in file if line.startswith("Private_"))
with open(f"/proc/{node}/stat") as file:
    ticks = sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
print(private, ticks / os.sysconf("SC_CLK_TCK"))
"""


def test_it_costs_nothing_while_nobody_looks(driver, tmp_path):
    """Memory and processor time of the node service, with a dashboard and without."""
    program = tmp_path / "measure.py"
    program.write_text(MEASURE)

    def measure(how):
        runs = []
        for _ in range(3):
            command = [sys.executable, str(program), how]
            environment = {**os.environ, "OXIRAY_TMPDIR": driver.base}
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            runs.append([float(word) for word in done.stdout.split()])
        # The least: whatever else the machine does only adds.
        return [min(column) for column in zip(*runs, strict=True)]

    (memory, cpu), (memory_without, cpu_without) = measure("with"), measure("without")
    print(
        f"node service: {memory:.0f} KB, {cpu:.2f} s; without: {memory_without:.0f} KB, "
        f"{cpu_without:.2f} s of 20,000 tasks"
    )
    assert memory - memory_without < 512
    assert cpu - cpu_without < 0.1
    driver.clean()
