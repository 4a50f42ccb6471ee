"""Spans of OpenTelemetry around calls, where `init(_tracing_startup_hook="module:name")` says so.

The hook, which sets up an exporter, is called in the driver and in each worker of the job. A call
makes a span where it is submitted and one where it runs; the first is the second's parent, whose
context travels as a keyword argument that only this module sees.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _session
from .runtime_context import get_runtime_context

_CONTEXT = "_ray_trace_ctx"


def find_hook(hook: Any) -> Callable[[], object]:
    """The function that "module:function" names; raises ValueError if there is none."""
    if not isinstance(hook, str) or hook.count(":") != 1:
        raise ValueError(
            "init(_tracing_startup_hook=) must be a string as in 'module:function', where the "
            f"function sets up tracing, not {hook!r}"
        )
    try:
        importlib.import_module("opentelemetry.trace")
    except ImportError:
        raise ImportError(
            "init(_tracing_startup_hook=) needs OpenTelemetry: pip install opentelemetry-sdk"
        ) from None
    module, _, name = hook.partition(":")
    try:
        function = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise ValueError(f"init(_tracing_startup_hook={hook!r}): {error}") from error
    if not callable(function):
        raise ValueError(f"init(_tracing_startup_hook={hook!r}) names no function")
    return function  # type: ignore[no-any-return]


def begin(hook: str) -> None:
    """Calls have spans from now on, until the session ends."""
    find_hook(hook)()
    _session.is_traced = True


class TracedCall:
    """What stands at `.remote` while tracing is on: the call, in a span of its own."""

    def __init__(
        self, call: Callable[..., Any], bind: Callable[..., None] | None, name: str, about: str
    ) -> None:
        self._call = call
        self._bind = bind  # raises for a call that the function does not take
        self._name = name
        self._about = about  # "function" or "actor"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._bind is not None:
            self._bind(*args, **kwargs)
        with submitting(self._name, self._about) as carried:
            return self._call(*args, **kwargs, **carried)


@contextmanager
def submitting(name: str, about: str) -> Iterator[dict[str, Any]]:
    """The span of a call that is submitted; what it is to be given beside its arguments."""
    from opentelemetry import propagate

    with span(f"{name} ray.remote", "PRODUCER", name, about):
        context: dict[str, str] = {}
        propagate.inject(context)
        yield {_CONTEXT: context}


def traced(function: Callable[..., Any], name: str, about: str) -> Callable[..., Any]:
    """What a worker runs in place of a function, method or class: the same, in a span."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def in_span_async(*args: Any, **kwargs: Any) -> Any:
            with _resumed(kwargs.pop(_CONTEXT, None), name, about):
                return await function(*args, **kwargs)

        return in_span_async

    @functools.wraps(function, updated=())
    def in_span(*args: Any, **kwargs: Any) -> Any:
        with _resumed(kwargs.pop(_CONTEXT, None), name, about):
            return function(*args, **kwargs)

    return in_span


@contextmanager
def _resumed(carried: dict[str, str] | None, name: str, about: str) -> Iterator[None]:
    from opentelemetry import context, propagate

    token = context.attach(propagate.extract(carried or {}))
    try:
        with span(f"{name} ray.remote_worker", "CONSUMER", name, about):
            yield
    finally:
        context.detach(token)


@contextmanager
def span(title: str, kind: str, name: str, about: str) -> Iterator[None]:
    """A span with the attributes that Ray's have."""
    from opentelemetry import trace

    here = get_runtime_context()
    ids = {
        "ray.job_id": here.get_job_id(),
        "ray.node_id": here.get_node_id(),
        "ray.worker_id": here.get_worker_id(),
        "ray.task_id": here.get_task_id(),
        "ray.actor_id": here.get_actor_id(),
    }
    attributes = {"ray.remote": about, "ray.function": name, "ray.pid": str(os.getpid())}
    attributes.update({key: value for key, value in ids.items() if value})
    if about == "actor":
        attributes["ray.actor_class"], _, attributes["ray.actor_method"] = name.rpartition(".")
    kind_of_span = trace.SpanKind[kind]
    with trace.get_tracer("oxiray").start_as_current_span(
        title, kind=kind_of_span, attributes=attributes
    ):
        yield
