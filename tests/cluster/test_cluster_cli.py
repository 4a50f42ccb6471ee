"""`oxiray start`, `stop`, `status` and `token` on one machine, and `init(address=)`."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile

import oxiray as ray
import pytest
from conftest import BASE, Driver, is_alive, processes_under, wait_until
from machines import Machine

PROGRAM = os.path.join(os.path.dirname(sys.executable), "oxiray")
NOTHING_RUNS = 3


class Cli:
    """Runs `oxiray` for a user with a directory of its own."""

    def __init__(self, base, port):
        self.base = base
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self.environment = {**os.environ, "OXIRAY_TMPDIR": base}

    def __call__(self, *arguments, check=True, **env):
        done = subprocess.run(
            [PROGRAM, *arguments],
            env={**self.environment, **env},
            capture_output=True,
            text=True,
            timeout=60,
        )
        if check:
            assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done

    def fails(self, *arguments, code=1, **env):
        """What it says about it."""
        done = self(*arguments, check=False, **env)
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stderr

    def start_head(self, *arguments, **env):
        return self(*HEAD, f"--port={self.port}", *arguments, **env)

    def record(self):
        """The fields of the node's file."""
        folder = f"{self.base}/started"
        (name,) = os.listdir(folder)
        assert stat.S_IMODE(os.stat(f"{folder}/{name}").st_mode) == 0o600
        with open(f"{folder}/{name}") as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file)

    def pid(self, which):
        return int(self.record()[which].split()[0])

    def left(self):
        """What is left of nodes."""
        return os.listdir(self.base)

    def end(self):
        self("stop")
        wait_until(lambda: not processes_under(self.base), 20, "all processes end")
        assert not self.left()
        shutil.rmtree(self.base)


HEAD = ("start", "--head", "--node-ip-address=127.0.0.1", "--num-cpus=2")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def cli():
    cli = Cli(tempfile.mkdtemp(prefix="c-", dir=BASE), free_port())
    yield cli
    cli.end()


@pytest.fixture
def other():
    """Another user's directory, as it would be on another machine."""
    cli = Cli(tempfile.mkdtemp(prefix="c-", dir=BASE), free_port())
    yield cli
    cli.end()


def run_driver(cli, directory, source, **options):
    driver = Driver(directory)
    shutil.rmtree(driver.base)
    options.setdefault("env", {})["OXIRAY_TMPDIR"] = cli.base
    process = driver.start(source, **options)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def test_a_cluster_from_start_to_stop(cli, tmp_path):
    said = cli.start_head().stdout
    assert cli.address in said and "oxiray stop" in said and "oxiray status" in said
    token = cli("token").stdout.strip()
    assert token.startswith("oxiray-")
    command = f"oxiray start --address='{cli.address}' --token='{token}'"
    assert command in said and cli("token", "--show-command").stdout.strip() == command

    status = cli("status").stdout
    assert cli.address in status and "CPU" in status and "of 2 in use" in status
    assert "Nothing waits" in status and "head" in status
    assert cli("status", f"--address={cli.address}").stdout

    done = run_driver(
        cli,
        tmp_path,
        f"""
        import oxiray as ray

        context = ray.init(namespace="n")
        assert context["address"] == {cli.address!r}
        (node,) = ray.nodes()
        assert node["NodeID"] == ray.get_runtime_context().get_node_id()
        assert ray.cluster_resources()["CPU"] == 2
        print(ray.get(ray.remote(lambda: 5).remote()))
        """,
    )
    assert done.stdout == "5\n" and done.returncode == 0, done.stderr
    assert "Connected to the cluster" in done.stderr
    url = cli("dashboard").stdout.strip()
    assert f"View the dashboard at {url}\n" in done.stderr
    # The program left; the node has not ended with it.
    assert is_alive(cli.pid("node_pid"))

    assert "Stopped 1 node and 1 control service" in cli("stop").stdout
    assert not cli.left()
    assert cli("stop").stdout == "Nothing to stop.\n"
    assert "no Oxiray session" in cli.fails("status", code=NOTHING_RUNS)
    assert cli.fails("token", code=NOTHING_RUNS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--head"),
        (("--address=nowhere",), "HOST:PORT"),
        (("--address=127.0.0.1:1", "--port=5"), "--port"),
        (("--head", "--labels=a"), "--labels"),
        (("--head", "--resources=tool"), "--resources"),
        (("--head", '--resources={"CPU": 1}'), "--num-cpus"),
        (("--head", "--object-store-memory=5"), "--object-store-memory"),
        (("--head", "--token=oxiray-123"), "token"),
        (("--address=127.0.0.1:1",), "token"),
    ],
    ids=str,
)
def test_wrong_arguments_start_nothing(cli, arguments, says):
    assert says in cli.fails("start", *arguments)
    assert not cli.left()


def test_nobody_there(cli):
    token = "oxiray-" + 64 * "0" + "66687aad"
    said = cli.fails("start", f"--address={cli.address}", f"--token={token}")
    assert cli.address in said
    assert not cli.left() and not processes_under(cli.base)


def test_a_wrong_token(cli, other):
    cli.start_head()
    token = "oxiray-" + 64 * "0" + "66687aad"
    said = other.fails("start", f"--address={cli.address}", OXIRAY_TOKEN=token)
    assert "token" in said
    assert not other.left() and not processes_under(other.base)


def test_joining(cli, other, tmp_path):
    cli.start_head("--labels=region=eu")
    token = cli("token").stdout
    path = tmp_path / "token"
    path.write_text(token)
    exposed = other.fails("start", f"--address={cli.address}", f"--token-file={path}")
    assert "chmod 600" in exposed
    path.chmod(0o600)
    said = other(
        "start", f"--address={cli.address}", f"--token-file={path}", '--resources={"tool": 1}'
    ).stdout
    assert "joined" in said
    again = other.fails("start", f"--address={cli.address}", f"--token-file={path}")
    assert "already running" in again
    # The head's own machine is part of it, whatever it calls itself.
    again = cli.fails("start", f"--address=localhost:{cli.port}", f"--token-file={path}")
    assert "already running" in again and cli.address in again
    # Both machines show the same cluster.
    for one in (cli, other):
        status = one("status").stdout
        assert status.count("\nNode ") == 2 and "tool" in status and "region=eu" in status
    done = run_driver(
        other,
        tmp_path,
        f"""
        import oxiray as ray

        ray.init(address="{cli.address}")
        assert len(ray.nodes()) == 2 and ray.cluster_resources()["tool"] == 1
        here = ray.get_runtime_context().get_node_id()
        where = ray.remote(resources={{"tool": 1}})(
            lambda: ray.get_runtime_context().get_node_id()
        )
        assert ray.get(where.remote()) == here
        print("done")
        """,
    )
    assert done.stdout == "done\n", done.stderr
    assert "on the head, where `oxiray dashboard` prints the address" in done.stderr
    other("stop")
    wait_until(lambda: "Left lately" in cli("status").stdout)


def test_a_second_head_is_refused(cli):
    cli.start_head()
    assert "already running" in cli.fails(*HEAD, f"--port={cli.port}")
    assert is_alive(cli.pid("node_pid"))


def test_a_port_in_use(cli):
    with socket.socket() as one:
        one.bind(("127.0.0.1", cli.port))
        one.listen()
        said = cli.fails(*HEAD, f"--port={cli.port}")
    assert str(cli.port) in said and "--port" in said
    assert not cli.left() and not processes_under(cli.base)


def test_the_control_service_is_started_again(cli):
    cli.start_head()
    token = cli("token").stdout
    node = cli.pid("node_pid")
    os.kill(cli.pid("control_pid"), signal.SIGKILL)
    said = cli.fails("status")
    assert "oxiray start --head" in said
    assert "runs again" in cli.start_head().stdout
    assert cli.pid("node_pid") == node and cli("token").stdout == token
    # The node finds it by itself.
    wait_until(lambda: "\nNode " in cli("status").stdout)


def test_the_node_of_a_head_is_started_again(cli):
    cli.start_head()
    control = cli.pid("control_pid")
    os.kill(cli.pid("node_pid"), signal.SIGKILL)
    wait_until(lambda: not is_alive(cli.pid("node_pid")))
    assert "a new one runs" in cli.start_head().stdout
    assert cli.pid("control_pid") == control


def test_what_was_killed_is_forgotten(cli):
    cli.start_head()
    for which in ("node_pid", "control_pid"):
        os.kill(cli.pid(which), signal.SIGKILL)
    wait_until(lambda: not processes_under(cli.base), 20)
    cli.fails("status", code=NOTHING_RUNS)
    # What a head is started again with is there until somebody stops it.
    assert cli.left() == ["clusters"]
    assert "Nothing to stop" in cli("stop").stdout
    assert not cli.left()


def test_the_token_is_changed(cli, other):
    cli.start_head()
    old = cli("token").stdout.strip()
    new = cli("token", "--rotate").stdout.strip()
    assert new.startswith("oxiray-") and new != old
    assert cli("token").stdout.strip() == new
    other("start", f"--address={cli.address}", f"--token={new}", "--num-cpus=1")
    assert cli("status").stdout.count("\nNode ") == 2


def test_without_protection(cli, other):
    done = cli.start_head("--insecure")
    assert "Warning" in done.stderr and "--insecure" in done.stdout
    assert "--insecure" in cli.fails("token")
    assert "Warning" in other("start", f"--address={cli.address}", "--insecure").stderr
    assert cli("status").stdout.count("\nNode ") == 2


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_block_until_told(cli, how):
    process = subprocess.Popen(
        [PROGRAM, *HEAD, f"--port={cli.port}", "--block"],
        env=cli.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: os.path.isdir(f"{cli.base}/started") and os.listdir(f"{cli.base}/started"))
    process.send_signal(how)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0 and err == "" and cli.address in out
    assert not cli.left() and not processes_under(cli.base)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_it_starts(cli, tmp_path, how):
    service = tmp_path / "oxirayd"
    service.write_text(f"#!/bin/sh\ntouch {tmp_path}/runs\nexec sleep 100\n")
    service.chmod(0o755)
    process = subprocess.Popen(
        [PROGRAM, *HEAD, f"--port={cli.port}"],
        env={**cli.environment, "OXIRAY_OXIRAYD": str(service)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: (tmp_path / "runs").exists())
    process.send_signal(how)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1 and out == "" and "it was interrupted" in err
    assert not cli.left()


def test_block_until_the_node_dies(cli):
    process = subprocess.Popen(
        [PROGRAM, *HEAD, f"--port={cli.port}", "--block"],
        env=cli.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: os.path.isdir(f"{cli.base}/started") and os.listdir(f"{cli.base}/started"))
    os.kill(cli.pid("node_pid"), signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1 and "node service ended" in err


def test_addresses_without_a_cluster(monkeypatch):
    ray.shutdown()
    base = tempfile.mkdtemp(prefix="c-", dir=BASE)
    monkeypatch.setenv("OXIRAY_TMPDIR", base)
    with pytest.raises(ConnectionError, match="Could not find any running Ray instance"):
        ray.init(address="auto")
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(ConnectionError, match="oxiray start --head"):
        ray.init()
    with pytest.raises(ConnectionError, match="nobody answers"):
        ray.init(address=f"127.0.0.1:{free_port()}")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        with pytest.raises(ConnectionError, match="not part of the cluster"):
            ray.init(address="{}:{}".format(*one.getsockname()))
    with pytest.raises(ConnectionError, match="Ray Client"):
        ray.init(address="ray://127.0.0.1:10001")
    with pytest.raises(ValueError, match="HOST:PORT"):
        ray.init(address="somewhere")
    # "local" means what it says, whatever the environment has.
    assert ray.init(address="local", num_cpus=1, logging_level="error")["address"] == "local"
    ray.shutdown()
    os.rmdir(base)


def test_what_the_cluster_has_decided_is_refused(cli, monkeypatch):
    cli.start_head()
    monkeypatch.setenv("OXIRAY_TMPDIR", cli.base)
    ray.shutdown()
    for arguments in (
        {"num_cpus": 1},
        {"num_gpus": 1},
        {"resources": {"x": 1}},
        {"labels": {"x": "y"}},
        {"object_store_memory": 10**9},
    ):
        with pytest.raises(ValueError, match="When connecting to an existing cluster"):
            ray.init(address="auto", **arguments)
    assert not ray.is_initialized()
    for address in (None, "auto", cli.address, f"localhost:{cli.port}"):
        with ray.init(address=address, logging_level="error") as context:
            assert context["address"] == cli.address
            assert context["node_ip_address"] == "127.0.0.1"
    # It goes on.
    assert cli("status").stdout


def test_an_error_says_at_which_address_it_was_raised():
    machine = Machine(ip="127.0.0.2")
    try:
        machine.start_head("--num-cpus=1")
        out = machine.run_program(
            """
            import oxiray as ray

            ray.init(address="auto")

            @ray.remote
            def fails():
                raise ValueError("no")

            try:
                ray.get(fails.remote())
            except ray.exceptions.RayTaskError as error:
                print(error.ip, "ip=127.0.0.2" in str(error))
            """
        )
        assert out.split() == ["127.0.0.2", "True"]
    finally:
        machine.end()


def test_a_detached_actor_keeps_ten_megabytes_without_its_creator(cli, tmp_path):
    cli.start_head()
    made = """
        import os
        import oxiray as ray

        ray.init(address="auto", namespace="n")

        @ray.remote(max_restarts=-1, max_task_retries=-1)
        class Keeper:
            def __init__(self, value):
                self.value = value

            def get(self):
                return len(self.value), self.value[-3:], os.getpid()

        value = b"x" * (10 << 20) + b"end"
        keeper = Keeper.options(name="keeper", lifetime="detached").remote(value)
        print(ray.get(keeper.get.remote())[2])
    """
    found = """
        import oxiray as ray

        ray.init(address="auto", namespace="n")
        print(*ray.get(ray.get_actor("keeper").get.remote(), timeout=60))
    """
    done = run_driver(cli, tmp_path, made)
    assert done.returncode == 0, done.stderr
    os.kill(int(done.stdout), signal.SIGKILL)
    again = run_driver(cli, tmp_path, found)
    assert again.returncode == 0, again.stderr
    length, end, pid = again.stdout.split()
    assert (length, end) == (str((10 << 20) + 3), "b'end'") and pid != done.stdout.strip()


def test_a_detached_actor_that_is_too_large_to_be_kept_is_told(cli, tmp_path):
    cli.start_head()
    done = run_driver(
        cli,
        tmp_path,
        """
        import oxiray as ray

        ray.init(address="auto", namespace="n")

        @ray.remote(max_restarts=1)
        class Large:
            def __init__(self, value):
                pass

        large = Large.options(name="large", lifetime="detached").remote(b"x" * (65 << 20))
        ray.get(large.__ray_ready__.remote())
        ray.kill(large)
        """,
    )
    assert done.returncode == 0, done.stderr
    assert "detached actor Large" in done.stderr and "at most 64 MiB" in done.stderr
