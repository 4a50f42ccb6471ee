"""A job from a host outside, with its directory and a package, in a group over three hosts, one of
which is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import textwrap

import namespaces
import pytest
from conftest import wait_until
from machines import PROGRAM
from wheel_maker import make_wheel

pytestmark = pytest.mark.slow

network, hosts = namespaces.network, namespaces.hosts

JOB = """
import time
import oxiray as ray
import oxiray_test_scale
from oxiray.util.placement_group import placement_group
from oxiray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as Inside
from squares import square

ray.init()
group = placement_group([{"CPU": 2}] * 3, strategy="SPREAD")
ray.get(group.ready(), timeout=60)


@ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)
class Part:
    def node(self):
        return ray.get_runtime_context().get_node_id()

    def square(self, number, seconds):
        time.sleep(seconds)
        return square(number) * int(oxiray_test_scale.VALUE)


def inside(index):
    return Inside(group, placement_group_bundle_index=index)


parts = [Part.options(scheduling_strategy=inside(index)).remote() for index in range(3)]
places = ray.get([part.node.remote() for part in parts], timeout=60)
assert len(set(places)) == 3, places
results = ray.get([parts[number % 3].square.remote(number, 0) for number in range(30)])
# Calls of every part are on their way when the host goes.
rest = [parts[number % 3].square.remote(number, 0.2) for number in range(30, 60)]
print("half of it is done", *places, flush=True)
results += ray.get(rest, timeout=120)
left = set(ray.get([part.node.remote() for part in parts], timeout=60))
assert len(left) == 2 and left < set(places), left
print("the sum is", sum(results), flush=True)
"""


def test_a_job_survives_the_loss_of_a_host(network, hosts, tmp_path):
    folder, wheels = tmp_path / "program", tmp_path / "wheels"
    folder.mkdir()
    wheels.mkdir()
    (folder / "main.py").write_text(JOB)
    (folder / "squares.py").write_text("def square(number):\n    return number * number\n")
    make_wheel(wheels, "oxiray_test_scale", "7")
    environment = {"pip": ["--no-index", f"--find-links {wheels}", "oxiray_test_scale==7"]}
    outside = network.outside()
    address = hosts[1]("dashboard").stdout.split()[-1]
    job = subprocess.Popen(
        [
            *outside.prefix, PROGRAM, "job", "submit", "--address", address,
            "--working-dir", str(folder), "--runtime-env-json", json.dumps(environment),
            "--entrypoint-resources", json.dumps({f"node:{hosts[1].ip}": 0.01}),
            "--", "python", "main.py",
        ],
        env=outside.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    try:
        said = []
        for line in job.stdout:
            said.append(line)
            if line.startswith("half of it is done"):
                assert {host.node_id for host in hosts.values()} == set(line.split()[5:])
                os.kill(hosts[3].pid(), signal.SIGKILL)
        assert job.wait(60) == 0, "".join(said)
        expected = 7 * sum(number * number for number in range(60))
        assert f"the sum is {expected}\n" in said, textwrap.indent("".join(said), "  ")
        wait_until(lambda: "SUCCEEDED" in outside("job", "list", "--address", address).stdout)
        refused = outside("job", "list", "--address", address.partition("?")[0], code=1)
        assert "token" in refused.stderr
    finally:
        job.kill()
        job.wait()
        outside.end()
