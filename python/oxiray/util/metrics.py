"""Counters, gauges and histograms of a program's own, shown at `/metrics` of the dashboard.

What a process counts it writes into a file of its session, soon after it changed; the dashboard
reads those of all nodes. So nothing is sent, and what a process had counted outlives it.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import threading
from bisect import bisect_left
from typing import Any

__all__ = ["Counter", "Gauge", "Histogram", "Metric"]

_FOLDER = "metrics"
# How long what changed may wait to be written, with all that changes meanwhile.
_DELAY_S = 0.5
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")

Tags = dict[str, str]


class Metric:
    """What all metrics have: a name, tags, and a value for each combination of the tags."""

    _KIND = ""

    def __init__(
        self, name: str, description: str = "", tag_keys: tuple[str, ...] | None = None
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"Empty name is not allowed. {type(self).__name__}(name=) must be a string that is "
                f"not empty, not {name!r}"
            )
        if not _NAME.match(name):
            raise ValueError(
                f"{type(self).__name__}(name={name!r}): a name has letters, digits and '_', and "
                "does not begin with a digit"
            )
        if not isinstance(description, str):
            raise TypeError(f"description must be a string, not {description!r}")
        if tag_keys is not None and not isinstance(tag_keys, tuple):
            raise TypeError(f"tag_keys should be a tuple type, got: {type(tag_keys)}")
        for key in tag_keys or ():
            if not isinstance(key, str):
                raise TypeError(f"Tag keys must be strings, got: {type(key)}: {key!r}")
            if not _NAME.match(key):
                raise ValueError(f"The tag key {key!r} is not a name of letters, digits and '_'")
        self._name = name
        self._description = description
        self._tag_keys = tuple(tag_keys or ())
        self._default_tags: Tags = {}
        self._series = _registry.series(self)

    def set_default_tags(self, default_tags: Tags) -> Metric:
        """Tags of records that do not say otherwise; returns the metric."""
        self._check_tags(default_tags)
        self._default_tags = dict(default_tags)
        return self

    @property
    def info(self) -> dict[str, Any]:
        """What it was made with."""
        return {
            "name": self._name,
            "description": self._description,
            "tag_keys": self._tag_keys,
            "default_tags": self._default_tags,
        }

    def _check_tags(self, tags: Tags) -> None:
        if not isinstance(tags, dict):
            raise TypeError(f"tags must be a dict of strings, not {tags!r}")
        for key, value in tags.items():
            if key not in self._tag_keys:
                raise ValueError(
                    f"Unrecognized tag key {key} of the metric {self._name}: its tag_keys are "
                    f"{self._tag_keys}"
                )
            if not isinstance(value, str):
                raise TypeError(f"Tag values must be str, got {type(value)}: {key}={value!r}")

    def _place(self, tags: Tags | None) -> tuple[str, ...]:
        """The values of all tags, in the order of their keys."""
        if tags is not None:
            self._check_tags(tags)
        given = {**self._default_tags, **(tags or {})}
        missing = [key for key in self._tag_keys if key not in given]
        if missing:
            raise ValueError(f"Missing value for tag key(s): {','.join(missing)}.")
        return tuple(given[key] for key in self._tag_keys)

    def _number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"value must be int or float, got {type(value)}.")
        return float(value)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._name, self._description, self._tag_keys)
        return _rebuild, (type(self), arguments, self._default_tags)


def _rebuild(kind: type[Metric], arguments: tuple[Any, ...], default_tags: Tags) -> Metric:
    return kind(*arguments).set_default_tags(default_tags)


class Counter(Metric):
    """Only ever grows. At `/metrics` it is `ray_NAME_total`."""

    _KIND = "counter"

    def inc(self, value: int | float = 1.0, tags: Tags | None = None) -> None:
        """Adds to it."""
        value = self._number(value)
        if not value > 0:
            raise ValueError(f"value must be >0, got {value}")
        place = self._place(tags)
        with _registry.change():
            self._series.values[place] = self._series.values.get(place, 0.0) + value


class Gauge(Metric):
    """Has its last value. At `/metrics` it is `ray_NAME`, of each process that lives."""

    _KIND = "gauge"

    def set(self, value: int | float | None, tags: Tags | None = None) -> None:
        """Sets it; None forgets it."""
        place = self._place(tags)
        number = None if value is None else self._number(value)
        with _registry.change():
            if number is None:
                self._series.values.pop(place, None)
            else:
                self._series.values[place] = number


class Histogram(Metric):
    """Counts values by size. At `/metrics` it is `ray_NAME_bucket`, `_sum` and `_count`."""

    _KIND = "histogram"

    def __init__(
        self,
        name: str,
        description: str = "",
        boundaries: list[float] | None = None,
        tag_keys: tuple[str, ...] | None = None,
    ) -> None:
        if not boundaries:
            raise ValueError(
                "boundaries argument should be provided when using the Histogram class. "
                'e.g., Histogram("name", boundaries=[1.0, 2.0])'
            )
        numbers = [self._number(boundary) for boundary in boundaries]
        if any(not 0 < number < math.inf for number in numbers):
            raise ValueError(f"Invalid `boundaries`: they must be greater than 0, not {boundaries}")
        if any(low >= high for low, high in itertools.pairwise(numbers)):
            raise ValueError(f"Invalid `boundaries`: each must be greater than the last: {numbers}")
        self.boundaries = numbers
        super().__init__(name, description, tag_keys)

    def observe(self, value: int | float, tags: Tags | None = None) -> None:
        """Counts a value."""
        value = self._number(value)
        place = self._place(tags)
        bucket = bisect_left(self.boundaries, value)
        with _registry.change():
            found = self._series.values.get(place)
            if found is None:
                found = [0.0, [0] * (len(self.boundaries) + 1)]
                self._series.values[place] = found
            found[0] += value
            found[1][bucket] += 1

    @property
    def info(self) -> dict[str, Any]:
        return {**super().info, "boundaries": self.boundaries}

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._name, self._description, self.boundaries, self._tag_keys)
        return _rebuild, (type(self), arguments, self._default_tags)


class _Series:
    """The values of all metrics of one name in this process."""

    def __init__(self, metric: Metric) -> None:
        self.about = {
            "kind": metric._KIND,
            "description": metric._description,
            "tags": list(metric._tag_keys),
            "boundaries": getattr(metric, "boundaries", []),
        }
        self.values: dict[tuple[str, ...], Any] = {}

    def row(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            **self.about,
            "values": [[list(k), v] for k, v in self.values.items()],
        }


class _Registry:
    """The metrics of this process, and the thread that writes them."""

    def __init__(self) -> None:
        self._series: dict[str, _Series] = {}
        self._lock = threading.Lock()
        self._is_waiting = False

    def series(self, metric: Metric) -> _Series:
        with self._lock:
            found = self._series.get(metric._name)
            made = _Series(metric)
            if found is None:
                found = self._series[metric._name] = made
            elif any(found.about[key] != made.about[key] for key in ("kind", "tags", "boundaries")):
                raise ValueError(
                    f"There is a metric {metric._name!r} already, of another kind or with other "
                    f"tags or boundaries: {found.about}"
                )
            return found

    def change(self) -> _Change:
        return _Change(self)

    def changed(self) -> None:
        """Called with the lock."""
        if not self._is_waiting:
            self._is_waiting = True
            timer = threading.Timer(_DELAY_S, self.write)
            timer.daemon = True
            timer.start()

    def write(self) -> None:
        """Writes all of it, if there is a session to write into."""
        from .. import _native

        with self._lock:
            self._is_waiting = False
            rows = [series.row(name) for name, series in self._series.items() if series.values]
        if not rows or not _native.is_running():
            return
        context = _native.context()
        said = {"worker_id": context["worker_id"].hex(), "pid": os.getpid(), "metrics": rows}
        folder = os.path.join(context["session_dir"], _FOLDER)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            path = os.path.join(folder, said["worker_id"])
            with open(path + ".new", "w") as file:
                json.dump(said, file)
            os.replace(path + ".new", path)
        except OSError:  # a full disk, or the session has just ended: figures must not fail a task
            return


class _Change:
    """Holds the lock while a value changes, and sees to it that it is written."""

    def __init__(self, registry: _Registry) -> None:
        self._registry = registry

    def __enter__(self) -> None:
        self._registry._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._registry.changed()
        self._registry._lock.release()


_registry = _Registry()


def _forget_in_child() -> None:
    """A forked child counts from nothing: what its parent counted is the parent's to write."""
    global _registry
    for series in _registry._series.values():
        series.values.clear()
    _registry._lock = threading.Lock()
    _registry._is_waiting = False


os.register_at_fork(after_in_child=_forget_in_child)
