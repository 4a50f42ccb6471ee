"""Spans of OpenTelemetry around calls: who asks for them has them, everybody else pays nothing."""

from __future__ import annotations

import importlib.util
import json
import sys

import oxiray as ray
import pytest

needs_opentelemetry = pytest.mark.skipif(
    importlib.util.find_spec("opentelemetry") is None, reason="OpenTelemetry is not installed"
)

HOOK = """
import os, sys, json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

def setup():
    out = open(os.path.join({folder!r}, f"{{os.getpid()}}.spans"), "a")
    line = lambda span: span.to_json(indent=None) + os.linesep
    exporter = ConsoleSpanExporter(out=out, formatter=line)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
"""

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import oxiray as ray
ray.init(num_cpus=2, _tracing_startup_hook="traced_hook:setup")
from oxiray.util.tracing.tracing_helper import is_tracing_enabled
assert is_tracing_enabled()

@ray.remote
def inner(x):
    return x + 1

@ray.remote
def outer(x):
    return ray.get(inner.remote(x))

@ray.remote
class Counter:
    def __init__(self, at):
        self.at = at
    def add(self, more):
        self.at += more
        return self.at
    async def later(self):
        return self.at

assert ray.get(outer.remote(1)) == 2
counter = Counter.remote(at=5)
assert ray.get(counter.add.remote(more=2)) == 7
assert ray.get(counter.later.remote()) == 7
assert ray.get(counter.__ray_ready__.remote())
for wrong in (lambda: outer.remote(), lambda: counter.add.remote(1, 2), lambda: outer.remote(y=1)):
    try:
        wrong()
    except TypeError as error:
        assert "cannot be called like this" in str(error)
    else:
        raise SystemExit("it was taken")
ray.shutdown()
assert not is_tracing_enabled()
"""


@needs_opentelemetry
def test_spans_of_calls(driver, tmp_path):
    folder = str(tmp_path)
    (tmp_path / "traced_hook.py").write_text(HOOK.format(folder=folder))
    driver(PROGRAM.format(folder=folder), timeout=110)
    lines = [line for file in tmp_path.glob("*.spans") for line in file.read_text().splitlines()]
    spans = {span["name"]: span for span in map(json.loads, lines)}
    assert len(spans) == len(lines) == 10
    for name in ("__main__.outer", "Counter.__init__", "Counter.add", "Counter.later"):
        asked, ran = spans[f"{name} ray.remote"], spans[f"{name} ray.remote_worker"]
        assert ran["parent_id"] == asked["context"]["span_id"]
        assert ran["context"]["trace_id"] == asked["context"]["trace_id"]
        assert "PRODUCER" in asked["kind"] and "CONSUMER" in ran["kind"]
        assert ran["attributes"]["ray.pid"] != asked["attributes"]["ray.pid"]
    inner = spans["__main__.inner ray.remote"]
    outer = spans["__main__.outer ray.remote_worker"]
    assert inner["parent_id"] == outer["context"]["span_id"], "it was called in the other's span"
    assert spans["Counter.add ray.remote_worker"]["attributes"]["ray.actor_method"] == "add"


@pytest.mark.parametrize("hook", [5, "no colon", "a:b:c"])
def test_a_hook_that_is_none(hook):
    with pytest.raises(ValueError, match="'module:function'"):
        ray.init(_tracing_startup_hook=hook)


@needs_opentelemetry
@pytest.mark.parametrize("hook", ["no_such_module:setup", "json:no_such_function", "sys:path"])
def test_a_hook_that_is_not_there(hook):
    with pytest.raises(ValueError, match=hook):
        ray.init(_tracing_startup_hook=hook)


def test_without_opentelemetry(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)  # as if it were not there
    with pytest.raises(ImportError, match="pip install opentelemetry-sdk"):
        ray.init(_tracing_startup_hook="json:loads")
