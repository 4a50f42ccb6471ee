"""Runtime environments on several nodes: packages travel, and so do errors."""

from __future__ import annotations

import os

import oxiray as ray
import pytest
from oxiray.cluster_utils import Cluster
from oxiray.exceptions import RuntimeEnvSetupError


@pytest.fixture(scope="module")
def two():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=2, resources={"far": 2})
    cluster.connect(namespace="environments")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@ray.remote(resources={"far": 1})
def far():
    with open("data.bin", "rb") as file:
        import own_module

        return own_module.VALUE, file.read(), os.getcwd(), ray.get_runtime_context().get_node_id()


@ray.remote(num_cpus=0)
class Far:
    def variable(self):
        return os.environ.get("OXIRAY_TEST_A")


@pytest.fixture
def project(tmp_path):
    (tmp_path / "own_module.py").write_text("VALUE = 5\n")
    # More than one piece, of which the last is short.
    (tmp_path / "data.bin").write_bytes(os.urandom(5_000_001))
    return tmp_path


def test_a_package_comes_from_the_node_where_it_was_put(two, project):
    task = far.options(runtime_env={"working_dir": str(project)})
    value, data, where, node = ray.get(task.remote())
    assert (value, data) == (5, (project / "data.bin").read_bytes())
    assert node != ray.get_runtime_context().get_node_id()
    assert ray.get(task.remote())[2] == where, "and once"


def test_children_of_a_far_task_have_it_too(two, project):
    @ray.remote(resources={"far": 1}, runtime_env={"working_dir": str(project)})
    def parent():
        @ray.remote(resources={"node:__internal_head__": 0.001})
        def child():
            return os.listdir(), ray.get_runtime_context().get_node_id()

        return ray.get(child.remote())

    files, node = ray.get(parent.remote())
    assert sorted(files)[0] == "data.bin"
    assert node == ray.get_runtime_context().get_node_id()


def test_actors_elsewhere(two):
    actor = Far.options(
        resources={"far": 1}, runtime_env={"env_vars": {"OXIRAY_TEST_A": "far"}}
    ).remote()
    assert ray.get(actor.variable.remote()) == "far"


def test_what_cannot_be_made_elsewhere_fails_here(two):
    environment = {"py_executable": "/nowhere/python"}
    refs = [far.options(runtime_env=environment).remote() for _ in range(5)]
    for ref in refs:
        with pytest.raises(RuntimeEnvSetupError, match="/nowhere/python"):
            ray.get(ref, timeout=60)
    actor = Far.options(resources={"far": 1}, runtime_env=environment).remote()
    with pytest.raises(RuntimeEnvSetupError, match="/nowhere/python"):
        ray.get(actor.variable.remote(), timeout=60)
    plain = ray.remote(resources={"far": 1})(os.getpid)
    assert ray.get(plain.remote(), timeout=60) > 0


def test_a_package_that_no_node_has(two):
    missing = {"working_dir": "gcs://_ray_pkg_0123456789abcdef0123456789abcdef.zip"}
    with pytest.raises(RuntimeEnvSetupError, match="No node of the cluster has the package"):
        ray.get(far.options(runtime_env=missing).remote(), timeout=60)
