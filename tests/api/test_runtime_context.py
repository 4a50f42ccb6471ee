"""What an actor knows of itself, and how a job's settings reach its workers."""

from __future__ import annotations

import json

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray import LoggingConfig
from oxiray.job_config import JobConfig


@ray.remote
class Self:
    def __init__(self):
        self.n = 0

    def me(self):
        return ray.get_runtime_context().current_actor

    def name(self):
        return ray.get_runtime_context().get_actor_name()

    def call_me_later(self):
        self.n += 1
        if self.n < 3:
            ray.get_runtime_context().current_actor.call_me_later.remote()
        return self.n

    def count(self):
        return self.n


def test_an_actor_has_a_handle_of_itself(cluster):
    actor = Self.remote()
    handle = ray.get(actor.me.remote())
    assert handle == actor and ray.get(handle.count.remote()) == 0
    ray.get(actor.call_me_later.remote())
    wait_until(lambda: ray.get(actor.count.remote()) == 3)
    with pytest.raises(RuntimeError, match="for the methods of actors"):
        _ = ray.get_runtime_context().current_actor


@ray.remote
def function_name():
    return ray.get_runtime_context().get_task_function_name()


class Named:
    def name(self):
        return ray.get_runtime_context().get_task_function_name()

    async def later(self):
        return ray.get_runtime_context().get_task_function_name()


def test_the_name_of_the_function_that_runs(cluster):
    named = function_name.options(name="another")
    assert ray.get(named.remote()) == f"{__name__}.function_name"
    actor = ray.remote(Named).remote()
    names = ray.get([actor.name.remote(), actor.later.remote()])
    assert names == [f"{__name__}.Named.name", f"{__name__}.Named.later"]
    assert ray.get(actor.name.options(name="another").remote()) == f"{__name__}.Named.name"


def test_its_name(cluster):
    assert ray.get(Self.options(name="who-am-i").remote().name.remote()) == "who-am-i"
    assert ray.get(Self.remote().name.remote()) == ""
    assert ray.get_runtime_context().get_actor_name() is None


def test_the_handle_in_a_restarted_actor(cluster):
    actor = Self.options(max_restarts=1, max_task_retries=-1).remote()
    ray.get(actor.me.remote())
    ray.kill(actor, no_restart=False)
    assert ray.get(actor.me.remote(), timeout=30) == actor


def test_where_the_cluster_is(cluster):
    assert ray.get_runtime_context().gcs_address == "local"
    assert ray.get_tpu_ids() == []
    assert ray.get_runtime_context().get_accelerator_ids()["TPU"] == []


def test_workers_log_as_the_driver_says(driver):
    result = driver(
        """
        import logging
        import oxiray as ray

        config = ray.LoggingConfig(encoding="JSON", additional_log_standard_attrs=["name"])
        ray.init(num_cpus=1, logging_config=config)

        @ray.remote
        def work():
            logging.getLogger("mine").info("hello %d", 7, extra={"more": "x"})
            logging.getLogger("mine").debug("not this")

        ray.get(work.remote())
        logging.getLogger("here").warning("from the driver")
        """
    )
    lines = [line for line in result.stderr.splitlines() if '"levelname"' in line]
    (worker,) = [json.loads(line[line.index("{") :]) for line in lines if "hello" in line]
    assert worker["message"] == "hello 7" and worker["name"] == "mine" and worker["more"] == "x"
    assert worker["task_name"] == "work" and len(worker["task_id"]) == 48
    (own,) = [json.loads(line) for line in lines if "from the driver" in line]
    assert "task_id" not in own and own["job_id"] == worker["job_id"]
    assert "not this" not in result.stderr


def test_text_lines(driver):
    result = driver(
        """
        import logging
        import oxiray as ray

        ray.init(num_cpus=1, logging_config=ray.LoggingConfig(log_level="WARNING"))
        logging.info("too low")
        logging.warning("high enough")
        """
    )
    assert "WARNING program.py:" in result.stderr and "-- high enough job_id=" in result.stderr
    assert "too low" not in result.stderr


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"encoding": "XML"}, "Invalid encoding type: XML"),
        ({"log_level": "LOUD"}, "log_level"),
        ({"additional_log_standard_attrs": ["nothing"]}, "nothing"),
    ],
)
def test_wrong_logging(wrong, says):
    with pytest.raises(ValueError, match=says):
        LoggingConfig(**wrong)


def test_a_jobs_settings(fresh, tmp_path):
    (tmp_path / "beside_nothing.py").write_text("VALUE = 41")
    config = JobConfig(code_search_path=[str(tmp_path)], ray_namespace="of-the-job")
    fresh(job_config=config)

    @ray.remote
    def value():
        import beside_nothing

        return beside_nothing.VALUE, ray.get_runtime_context().namespace

    assert ray.get(value.remote()) == (41, "of-the-job")


def test_actors_of_a_job_can_be_detached_unless_they_say(fresh):
    fresh(job_config=JobConfig(default_actor_lifetime="detached"), namespace="n")

    @ray.remote
    def make():
        Self.options(name="made").remote()
        Self.options(name="short", lifetime="non_detached").remote()

    ray.get(make.remote())
    assert ray.get(ray.get_actor("made").count.remote()) == 0
    names = ray.util.list_named_actors()
    assert "made" in names


def test_wrong_job_settings():
    with pytest.raises(ValueError, match="default_actor_lifetime"):
        JobConfig(default_actor_lifetime="for ever")
    with pytest.raises(TypeError, match="code_search_path"):
        JobConfig(code_search_path="a")
    with pytest.raises(TypeError, match="job_config"):
        ray.init(job_config=3)
    with pytest.raises(TypeError, match="logging_config"):
        ray.init(logging_config="INFO")
    made = JobConfig.from_json({"ray_namespace": "a", "py_logging_config": {"log_level": "ERROR"}})
    assert made.ray_namespace == "a" and made.py_logging_config.log_level == "ERROR"
