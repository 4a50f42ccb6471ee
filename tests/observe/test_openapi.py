"""The REST API keeps to its OpenAPI document, whatever it is asked: schemathesis tries."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import oxiray as ray
import pytest
from dashboard_client import Dashboard

SCHEMATHESIS = os.path.join(os.path.dirname(sys.executable), "schemathesis")
GRAFANA = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "grafana", "oxiray.json")


@pytest.fixture(scope="module")
def dashboard():
    ray.shutdown()
    context = ray.init(num_cpus=2, logging_level="error", dashboard_port=0)

    @ray.remote
    def work(i):
        print("line", i)
        return bytes(200_000) if i % 2 else i

    @ray.remote(max_retries=0)
    def fail():
        raise ValueError("<script>alert('\"&')</script>")

    @ray.remote
    class Counter:
        def add(self):
            return 1

    counter = Counter.remote()
    kept = ray.get([work.remote(i) for i in range(20)]), ray.get(counter.add.remote()), ray.put(1)
    with pytest.raises(ValueError):
        ray.get(fail.remote())
    yield Dashboard(context.dashboard_url)
    del kept
    ray.shutdown()


def test_schemathesis_finds_nothing(dashboard, tmp_path):
    if not os.path.exists(SCHEMATHESIS) and not os.environ.get("CI"):
        pytest.skip("schemathesis is not installed; `make test` installs it")
    done = subprocess.run(
        [
            SCHEMATHESIS,
            "run",
            f"http://{dashboard.address}/api/openapi.json",
            "--header",
            f"Authorization: Bearer {dashboard.token}",
            "--exclude-path-regex=stream|profile|stack",  # no end, or long, or both
            "--checks=all",
            "--phases=examples,coverage,fuzzing",
            "--max-examples=30",
            "--seed=1",
            "--no-color",
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_every_route_is_documented_and_answers(dashboard):
    paths = dashboard.json("/api/openapi.json")["paths"]
    assert len(paths) >= 15
    for path, methods in paths.items():
        if "{" in path or "post" in methods or path.endswith("stream"):
            continue
        reply = dashboard.get(path)
        assert reply.status == 200, (path, reply.text)
        (media,) = methods["get"]["responses"]["200"]["content"]
        assert reply.headers["Content-Type"].startswith(media)


def test_wrong_questions_are_answered_in_a_sentence(dashboard):
    wrong = {
        "/api/tasks?limit=0": 400,
        "/api/tasks?limit=x": 400,
        "/api/tasks?limit=1&limit=2": 400,
        "/api/tasks?offset=-1": 400,
        "/api/tasks?nonsense=1": 400,
        "/api/tasks?filter=nonsense": 400,
        "/api/tasks?filter=no_such_key=1": 400,
        "/api/tasks?sort=no_such_key": 400,
        "/api/timeline?from=yesterday": 400,
        "/api/timeline?width=0": 400,
        "/api/tasks/xyz": 404,
        "/api/tasks/" + "0" * 48: 404,
        "/api/nonsense": 404,
        "/api/summary/nodes": 404,
        "/api/tasks/" + "0" * 48 + "/log": 404,
        "/api/logs/00/no-such": 404,
    }
    for path, status in wrong.items():
        reply = dashboard.get(path)
        assert reply.status == status, (path, reply.status, reply.text)
        assert re.search(r"\w.*\w", reply.json()["error"]), path


def test_grafana_shows_metrics_that_there_are(dashboard):
    text = dashboard.get("/metrics").text
    there = set(re.findall(r"^# TYPE (\w+) gauge$", text, re.MULTILINE))
    with open(GRAFANA) as file:
        board = json.load(file)
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert len(asked) >= 8
    used = {name for expression in asked for name in re.findall(r"oxiray_\w+", expression)}
    assert used == there
    # And each has something to show.
    for name in there:
        assert re.search(rf"^{name}\{{.*\}} [0-9.e+]+$", text, re.MULTILINE), name
