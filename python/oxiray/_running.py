"""The call that runs, where an actor runs several: each thread and coroutine has its own."""

from __future__ import annotations

from contextvars import ContextVar

from . import _native

call: ContextVar[_native.RunningCall | None] = ContextVar("oxiray_call", default=None)
