"""Whether calls of this process have spans, by the names that programs know."""

from __future__ import annotations

from ... import _session


def is_tracing_enabled() -> bool:
    return _session.is_traced


_is_tracing_enabled = is_tracing_enabled
