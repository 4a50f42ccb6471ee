"""The command `ray`: scripts written for Ray's start and stop clusters here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from conftest import BASE, processes_under, wait_until

RAY = [sys.executable, "-c", "from oxiray._ray_command import main; main()"]


@pytest.fixture
def ray_command():
    base = os.path.join(BASE, "ray-command")
    os.makedirs(base, mode=0o700, exist_ok=True)
    environment = {**os.environ, "OXIRAY_TMPDIR": base}
    environment.pop("RAY_ADDRESS", None)

    def run(*arguments, code=0):
        done = subprocess.run(
            [*RAY, *arguments], env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
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


def test_what_there_is_and_is_not(ray_command):
    import oxiray._version

    assert ray_command("--version").split()[-1] == oxiray._version.ray_version
    assert "health-check" in ray_command()
    assert "run them on a machine of the cluster" in ray_command("job", "submit", code=2)
    assert "no command 'strat'" in ray_command("strat", code=2)
