"""Spans of time that programs mark, to be seen in the timeline.

with profile("load", {"rows": 1000}):
    ...
"""

from __future__ import annotations

import time

from . import _native

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_LONGEST_EXTRA = 10_000  # of its JSON, in bytes


class profile:
    """A span of this task's or this program's time, under a name, with what else is to be said.

    `extra_data` must be such as JSON takes. Outside of a session it does nothing.
    """

    def __init__(self, event_type: str, extra_data: dict[str, Any] | None = None) -> None:
        if not isinstance(event_type, str) or not event_type:
            raise ValueError(f"profile() takes the name of a span, not {event_type!r}")
        if extra_data is not None and not isinstance(extra_data, dict):
            raise ValueError(f"profile(extra_data=) must be a dictionary, not {extra_data!r}")
        self._name = event_type
        self._extra = dict(extra_data or {})
        self._start = 0

    def set_attribute(self, key: str, value: Any) -> None:
        """Says one thing more of the span."""
        if not isinstance(key, str):
            raise ValueError(f"The names of attributes must be strings, not {key!r}")
        self._extra[key] = value

    def __enter__(self) -> profile:
        self._start = time.monotonic_ns()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        duration = time.monotonic_ns() - self._start
        extra = self._extra
        if error is not None:
            extra = {**extra, "exception": _said(error)}
        _native.record_span(self._name, self._start, duration, _encoded(extra))


# What these two show runs the user's code, which may raise. A span is no reason for an exception,
# and least of all for one in the place of the user's own.


def _said(error: BaseException) -> str:
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:
        return name


def _encoded(extra: dict[str, Any]) -> str:
    if not extra:
        return ""
    import json

    try:
        text = json.dumps(extra, default=repr)
    except Exception as error:
        return json.dumps({"cannot be shown": _said(error)})
    if len(text) <= _LONGEST_EXTRA:
        return text
    return json.dumps({"cut": text[: _LONGEST_EXTRA // 2]})
