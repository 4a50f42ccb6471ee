"""The timeline: every finished task, as a Chrome trace."""

from __future__ import annotations

import json

import oxiray as ray
import pytest

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
def timed_task():
    return ray.get_runtime_context().get_task_id()


@ray.remote
class Timed:
    def method(self):
        return 1


def test_events_of_tasks():
    ids = ray.get([timed_task.remote() for _ in range(20)])
    events = {event["args"]["task_id"]: event for event in ray.timeline()}
    for task_id in ids:
        event = events[task_id]
        assert event["ph"] == "X" and event["cat"] == "task"
        assert event["name"] == "timed_task"
        assert event["dur"] >= 0 and event["ts"] > 1e15  # microseconds since 1970


def test_actor_calls_are_there():
    ray.get(Timed.remote().method.remote())
    assert any("method" in event["name"] for event in ray.timeline())


def test_to_a_file(tmp_path, capsys):
    from oxiray.experimental import ui

    ray.get(timed_task.remote())
    path = tmp_path / "trace.json"
    assert ray.timeline(str(path)) is None
    assert any(event["name"] == "timed_task" for event in json.loads(path.read_text()))
    other = ui.task_timeline(str(tmp_path / "other.json"))
    assert other in capsys.readouterr().out
    assert json.loads((tmp_path / "other.json").read_text())


def test_without_a_session(driver):
    result = driver("import oxiray as ray; ray.timeline()", check=False)
    assert "RuntimeError" in result.stderr and "init()" in result.stderr
