"""Runtime environments: variables, what is inherited, interpreters, hooks, and what is refused."""

from __future__ import annotations

import os
import stat
import sys

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.exceptions import RuntimeEnvSetupError
from oxiray.runtime_env import RuntimeEnv, RuntimeEnvConfig


@ray.remote
def variable(name="OXIRAY_TEST_A"):
    return os.environ.get(name)


@ray.remote
def in_child(environment, name="OXIRAY_TEST_A"):
    child = variable if environment is None else variable.options(runtime_env=environment)
    return ray.get(child.remote(name))


@ray.remote
class Holder:
    def variable(self, name="OXIRAY_TEST_A"):
        return os.environ.get(name)

    def in_task(self, name="OXIRAY_TEST_A"):
        return ray.get(variable.remote(name))

    def pid(self):
        return os.getpid()


def variables(**values):
    return {"env_vars": {f"OXIRAY_TEST_{name}": value for name, value in values.items()}}


def test_variables_of_tasks_and_actors(cluster):
    assert ray.get(variable.remote()) is None
    with_one = variable.options(runtime_env=variables(A="1"))
    with_two = variable.options(runtime_env=RuntimeEnv(**variables(A="2")))
    assert ray.get([with_one.remote(), with_two.remote(), with_one.remote()]) == ["1", "2", "1"]
    assert ray.get(variable.remote()) is None
    holder = Holder.options(runtime_env=variables(A="3")).remote()
    assert ray.get(holder.variable.remote()) == "3"
    assert ray.get(Holder.remote().variable.remote()) is None


def test_children_inherit_and_variables_merge(cluster):
    parent = in_child.options(runtime_env=variables(A="parent", B="b"))
    assert ray.get(parent.remote(None)) == "parent"
    assert ray.get(parent.remote(variables(A="child"))) == "child"
    assert ray.get(parent.remote(variables(A="child"), "OXIRAY_TEST_B")) == "b"
    holder = Holder.options(runtime_env=variables(A="actor")).remote()
    assert ray.get(holder.in_task.remote()) == "actor"


def test_the_environment_of_a_job(driver):
    driver(
        """
        import os
        import oxiray as ray
        ray.init(num_cpus=1, runtime_env={"env_vars": {"A": "job", "B": "b"}})

        @ray.remote
        def both():
            return os.environ.get("A"), os.environ.get("B")

        assert ray.get(both.remote()) == ("job", "b")
        own = both.options(runtime_env={"env_vars": {"A": "task"}})
        assert ray.get(own.remote()) == ("task", "b")
        assert "A" not in os.environ
        assert ray.get_runtime_context().runtime_env["env_vars"] == {"A": "job", "B": "b"}
        ray.shutdown()
        ray.init(num_cpus=1)
        assert ray.get(both.remote()) == (None, None)
        """
    )


def test_names_in_values_are_replaced(cluster):
    said = {"A": "${HOME}/x:${OXIRAY_NO_SUCH}:${OXIRAY_TEST_Z}", "Z": "later"}
    task = variable.options(runtime_env=variables(**said))
    assert ray.get(task.remote()) == f"{os.environ['HOME']}/x::"
    path = {"env_vars": {"PATH": "/own:${PATH}"}}
    assert ray.get(variable.options(runtime_env=path).remote("PATH")).startswith("/own:/")


def test_the_context_knows_it(cluster):
    @ray.remote
    def known():
        return ray.get_runtime_context().runtime_env, sys.executable

    said = {**variables(A="1"), "config": {"setup_timeout_seconds": 30}}
    environment, _ = ray.get(known.options(runtime_env=said).remote())
    assert isinstance(environment, RuntimeEnv)
    assert environment.env_vars() == {"OXIRAY_TEST_A": "1"}
    assert environment["config"]["setup_timeout_seconds"] == 30
    assert ray.get(known.remote())[0] == {}


def test_another_interpreter(cluster, tmp_path):
    program = tmp_path / "python with a space"
    program.write_text(f'#!/bin/sh\nexport OXIRAY_TEST_A=wrapped\nexec "{sys.executable}" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    task = variable.options(runtime_env={"py_executable": f"'{program}' -u"})
    assert ray.get(task.remote()) == "wrapped"


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/false", "sh -c 'echo oh no >&2'"])
def test_an_interpreter_that_is_none(cluster, program):
    environment = {"py_executable": program}
    with pytest.raises(RuntimeEnvSetupError, match=r"nowhere|ended"):
        ray.get(variable.options(runtime_env=environment).remote())
    holder = Holder.options(runtime_env=environment).remote()
    with pytest.raises(RuntimeEnvSetupError):
        ray.get(holder.variable.remote())
    assert ray.get(variable.remote()) is None


def set_up():
    os.environ["OXIRAY_TEST_A"] = "set up"


def fail():
    raise ValueError("this hook cannot")


def test_a_hook_of_every_worker(cluster):
    task = variable.options(runtime_env={"worker_process_setup_hook": set_up})
    assert ray.get(task.remote()) == "set up"
    by_name = {"worker_process_setup_hook": "logging.captureWarnings_no"}
    with pytest.raises(RuntimeEnvSetupError, match="captureWarnings_no"):
        ray.get(variable.options(runtime_env=by_name).remote())
    with pytest.raises(RuntimeEnvSetupError, match="this hook cannot"):
        ray.get(variable.options(runtime_env={"worker_process_setup_hook": fail}).remote())
    assert ray.get(task.remote()) == "set up"


def test_many_tasks_of_one_that_cannot_be_made_all_fail(cluster):
    task = variable.options(runtime_env={"py_executable": "/nowhere/python"})
    refs = [task.remote() for _ in range(50)]
    for ref in refs:
        with pytest.raises(RuntimeEnvSetupError, match="/nowhere/python"):
            ray.get(ref)


def test_an_actor_is_started_again_in_its_environment(cluster):
    holder = Holder.options(runtime_env=variables(A="x"), max_restarts=1).remote()
    pid = ray.get(holder.pid.remote())
    os.kill(pid, 9)
    wait_until(lambda: _pid(holder) not in (None, pid))
    assert ray.get(holder.variable.remote()) == "x"


def _pid(holder):
    try:
        return ray.get(holder.pid.remote())
    except ray.exceptions.RayActorError:
        return None


def test_a_template_that_is_killed_is_made_again(cluster):
    task = variable.options(runtime_env=variables(A="again"))
    assert ray.get(task.remote()) == "again"

    @ray.remote
    def parent():
        return os.getppid()

    killed = ray.get(parent.options(runtime_env=variables(A="again")).remote())
    os.kill(killed, 9)
    assert ray.get([task.remote() for _ in range(4)]) == ["again"] * 4


@pytest.mark.parametrize(
    ("environment", "error", "says"),
    [
        ({"env_vars": {"A": 1}}, TypeError, r"Dict\[str, str\].*'A'"),
        ({"env_vars": {1: "A"}}, TypeError, "key 1"),
        ({"env_vars": ["A"]}, TypeError, "env_vars"),
        ({"env_vars": {"A=": "1"}}, ValueError, "A="),
        ({"env_vars": {"A": "\0"}}, ValueError, "A"),
        ({"envvars": {"A": "1"}}, ValueError, "did you mean 'env_vars'"),
        ({"zzz": 1}, ValueError, "no field 'zzz'"),
        ({"pip": ["a"], "uv": ["a"]}, ValueError, "cannot be specified at the same time"),
        ({"pip": ["a"], "conda": "b"}, ValueError, "cannot be specified at the same time"),
        ({"pip": 5}, TypeError, "pip"),
        ({"pip": {"packages": ["a"], "nope": 1}}, ValueError, "nope"),
        ({"pip": {"pip_check": True}}, ValueError, "packages"),
        ({"pip": "/nowhere/requirements.txt"}, ValueError, "requirements.txt"),
        ({"uv": {"packages": ["a"], "uv_check": 1}}, TypeError, "uv_check"),
        ({"working_dir": "/nowhere/at/all"}, ValueError, "/nowhere/at/all"),
        ({"working_dir": "ftp://host/a.zip"}, ValueError, "ftp://"),
        ({"working_dir": "https://host/a.txt"}, ValueError, r"\.zip"),
        ({"working_dir": 5}, TypeError, "working_dir"),
        ({"py_modules": "a"}, TypeError, "py_modules"),
        ({"excludes": "a"}, TypeError, "excludes"),
        ({"config": {"setup_timeout_seconds": 0}}, ValueError, "setup_timeout_seconds"),
        ({"config": {"setup_timeout_seconds": "1"}}, TypeError, "setup_timeout_seconds"),
        ({"config": {"nope": 1}}, ValueError, "nope"),
        ({"java_jars": ["a.jar"]}, ValueError, "Java"),
        ({"image_uri": "image", "pip": ["a"]}, ValueError, "image_uri"),
        ({"worker_process_setup_hook": 5}, TypeError, "worker_process_setup_hook"),
        (5, TypeError, "runtime_env"),
        ("{", ValueError, "JSON"),
    ],
    ids=str,
)
def test_bad_environments_are_refused_by_name(environment, error, says):
    with pytest.raises(error, match=says):
        ray.remote(runtime_env=environment)(lambda: None)
    with pytest.raises(error, match=says):
        ray.init(runtime_env=environment)


def test_one_that_is_too_large_is_refused(cluster):
    task = variable.options(runtime_env=variables(A="x" * 30_000))
    with pytest.raises(ValueError, match="env_vars"):
        task.remote()


def test_the_classes_are_dicts():
    environment = RuntimeEnv(env_vars={"A": "1"}, config=RuntimeEnvConfig(setup_timeout_seconds=5))
    assert environment.to_dict() == {
        "env_vars": {"A": "1"},
        "config": {"setup_timeout_seconds": 5, "eager_install": True, "log_files": []},
    }
    assert RuntimeEnv.deserialize(environment.serialize()) == environment
    assert RuntimeEnv(env_vars={}) == {}
    environment["env_vars"] = {"B": "2"}
    assert environment.env_vars() == {"B": "2"}
    with pytest.raises(TypeError):
        environment["env_vars"] = {"B": 2}


def test_what_an_environment_says_of_itself():
    env = RuntimeEnv(pip=["a"])
    assert env.pip_uri().startswith("pip://")
    assert env.pip_uri() == RuntimeEnv(pip=["a"]).pip_uri() != RuntimeEnv(pip=["b"]).pip_uri()
    assert env.uv_uri() is env.conda_uri() is env.virtualenv_name() is None
    assert RuntimeEnv(uv=["a"]).uv_uri().startswith("uv://")
    assert RuntimeEnv(conda="mine").conda_uri().startswith("conda://")
    assert env.py_container_worker_path() is None
    assert env.plugin_uris() == env.java_jars() == []
