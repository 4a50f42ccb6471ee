"""The command `ray`: scripts written for Ray's start and stop clusters here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from conftest import BASE, is_alive, processes_under, wait_until
from oxiray import _start_labels
from oxiray.cluster_utils import Cluster

RAY = [sys.executable, "-c", "from oxiray._ray_command import main; main()"]


@pytest.fixture
def ray_command():
    base = os.path.join(BASE, "ray-command")
    os.makedirs(base, mode=0o700, exist_ok=True)
    environment = {**os.environ, "OXIRAY_TMPDIR": base}
    environment.pop("RAY_ADDRESS", None)

    def run(*arguments, code=0):  # None: any failure
        done = subprocess.run(
            [*RAY, *arguments], env=environment, capture_output=True, text=True, timeout=60
        )
        wanted = done.returncode != 0 if code is None else done.returncode == code
        assert wanted, (arguments, done.stdout, done.stderr)
        return done.stdout + done.stderr

    yield run
    subprocess.run([*RAY, "stop", "--force"], env=environment, capture_output=True, timeout=60)
    wait_until(lambda: not processes_under(base))
    shutil.rmtree(base)


def test_a_cluster_by_rays_words(ray_command):
    said = ray_command(
        *"start --head --port=0 --num-cpus 3 --dashboard-host 127.0.0.1 --dashboard-port 0".split(),
        *"--node-ip-address 127.0.0.1 --min-worker-port 10002 --metrics-export-port=8080".split(),
        "--disable-usage-stats",
    )
    unused = "without effect here: --min-worker-port, --metrics-export-port, --disable-usage-stats"
    assert unused in said
    ray_command("health-check", "--skip-version-check")
    assert "of 3 in use" in ray_command("status")
    assert "ALIVE" in ray_command("list", "nodes")
    ray_command("stop", "--grace-period", "5")
    ray_command("health-check", code=3)


@pytest.mark.parametrize(
    "options, labels",
    [
        (["--labels", '{"zone": "a", "disk": "fast"}'], "zone=a,disk=fast"),
        (['--labels={"zone":"a"}'], "zone=a"),
        (["--labels=zone=a,disk=fast"], "zone=a,disk=fast"),
        (["--labels-file=FILE"], "zone=file,region=us,example.com/kind=x"),
        (["--labels", "zone=a", "--labels-file", "FILE"], "region=us,example.com/kind=x,zone=a"),
        ([], None),
    ],
    ids=str,
)
def test_labels_in_each_of_rays_ways(tmp_path, options, labels):
    file = tmp_path / "labels.yaml"
    file.write_text("# of this machine\nzone: file\nregion: 'us'  # here\nexample.com/kind: x\n")
    options = [option.replace("FILE", str(file)) for option in options]
    wanted = [] if labels is None else [f"--labels={labels}"]
    assert _start_labels.translated(["--head", *options]) == ["--head", *wanted]


def test_labels_that_are_wrong(ray_command, tmp_path):
    file = tmp_path / "labels.yaml"
    file.write_text("zone: a\n- region\n")
    for option, says in [
        (f"--labels-file={file}", "line 2: '- region' is not `key: value`"),
        ("--labels-file=/nowhere", "cannot be read: No such file"),
        ('--labels={"zone"', "neither key=value,... nor JSON"),
        ('--labels={"zone": 1}', "the value of 'zone' must be a string, not 1"),
        ("--labels=zone", "--labels"),
    ]:
        assert says in ray_command("start", "--head", option, code=None)


def test_what_there_is_and_is_not(ray_command):
    import oxiray._version

    assert ray_command("--version").split()[-1] == oxiray._version.ray_version
    assert "health-check" in ray_command()
    assert "run the program on a machine of the cluster" in ray_command("exec", "x", code=2)
    assert "no command 'strat'" in ray_command("strat", code=2)


def test_shells_can_complete_both_commands(ray_command):
    for shell in ("bash", "zsh", "fish"):
        script = ray_command("completion", shell)
        assert "health-check" in script and "num-cpus" in script and "ray" in script
    assert "possible values" in ray_command("completion", "csh", code=2)


def test_the_manual_page(ray_command):
    page = ray_command("man")
    assert page.startswith(".ie") and ".SH SUBCOMMANDS" in page
    assert "num\\-cpus" in ray_command("man", "start")
    assert "no command" in ray_command("man", "strat", code=1)


def test_a_random_node_is_killed_but_never_the_head(ray_command):
    assert "none beside the head" in ray_command("kill-random-node", "--yes", code=3)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        node = cluster.add_node(num_cpus=1)
        kill = [*RAY, "kill-random-node", "--yes", "--address", cluster.address]
        done = subprocess.run(kill, capture_output=True, text=True, timeout=60)
        assert f"Killed the node {node.node_id}" in done.stdout, done.stderr
        wait_until(lambda: not is_alive(node.pid))
        again = subprocess.run(kill, capture_output=True, text=True, timeout=60)
        assert again.returncode == 3 and "none beside the head" in again.stderr
    finally:
        cluster.shutdown()
