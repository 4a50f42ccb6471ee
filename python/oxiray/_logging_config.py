"""`LoggingConfig`: how the driver and its workers log, as `init(logging_config=)` takes it."""

from __future__ import annotations

import dataclasses
import json
import logging
from typing import Any

ENCODINGS = ("TEXT", "JSON")
# What every record has beside its message, as the documentation of `logging` lists it.
STANDARD_ATTRIBUTES = frozenset(logging.makeLogRecord({}).__dict__) | {
    "asctime",
    "message",
    "taskName",
}
# In every JSON line; those of the text are in its format.
_ALWAYS = ("asctime", "levelname", "message", "filename", "lineno", "process")


@dataclasses.dataclass
class LoggingConfig:
    """How the root logger of the driver, and of everything that works for it, is set up.

    Args:
        encoding: "TEXT" or "JSON", one object a line.
        log_level: the least level that is shown.
        additional_log_standard_attrs: attributes of `logging.LogRecord` to show with each line.
    """

    encoding: str = "TEXT"
    log_level: str = "INFO"
    additional_log_standard_attrs: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        if self.encoding not in ENCODINGS:
            raise ValueError(
                f"LoggingConfig(encoding=): Invalid encoding type: {self.encoding}. Valid encoding "
                f"types are: {list(ENCODINGS)}"
            )
        level: Any = self.log_level
        # Of a name it tells the number and of a number the name, as far as it knows them.
        if str(logging.getLevelName(level)).startswith("Level "):
            raise ValueError(
                f"LoggingConfig(log_level=) must be a level of logging, such as 'INFO': {level!r}"
            )
        for name in self.additional_log_standard_attrs:
            if name not in STANDARD_ATTRIBUTES:
                raise ValueError(
                    f"LoggingConfig(additional_log_standard_attrs=): {name!r} is no attribute of a "
                    f"log record. Valid ones are {sorted(STANDARD_ATTRIBUTES)}"
                )

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> LoggingConfig:
        """Made of what `to_dict` returned; what it does not know is left out."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in d.items() if name in known})

    def _apply(self) -> None:
        """Sets up the loggers of this process; done again, it replaces what it did."""
        handler = _Handler()
        handler.setLevel(self.log_level)
        handler.addFilter(_WhoLogs())
        make = _JsonLines if self.encoding == "JSON" else _TextLines
        handler.setFormatter(make(self.additional_log_standard_attrs))
        root = logging.getLogger()
        root.handlers[:] = [old for old in root.handlers if not isinstance(old, _Handler)]
        root.setLevel(self.log_level)
        root.addHandler(handler)


class _Handler(logging.StreamHandler):  # type: ignore[type-arg]  # no generic before 3.11
    """Ours, so that another configuration can replace it."""


class _WhoLogs(logging.Filter):
    """Gives each record the ids of what runs: job, worker, node, actor, task."""

    def filter(self, record: logging.LogRecord) -> bool:
        from . import _native

        if not _native.is_running():
            return True
        context = _native.context()
        said = {key: context[key].hex() for key in ("job_id", "worker_id", "node_id")}
        if not context["is_driver"]:
            for key in ("actor_id", "task_id"):
                if context[key]:
                    said[key] = context[key].hex()
            said["task_name"], said["task_func_name"] = (
                context["task_name"],
                context["function_name"],
            )
        record.__dict__["_oxiray_ids"] = said
        return True


class _TextLines(logging.Formatter):
    def __init__(self, attributes: list[str]) -> None:
        super().__init__("%(asctime)s\t%(levelname)s %(filename)s:%(lineno)s -- %(message)s")
        self._attributes = attributes

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        return " ".join(
            [line, *(f"{key}={value}" for key, value in _said(record, self._attributes))]
        )


class _JsonLines(logging.Formatter):
    def __init__(self, attributes: list[str]) -> None:
        super().__init__()
        self._attributes = attributes

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        fields = {name: getattr(record, name) for name in _ALWAYS}
        fields.update(_said(record, self._attributes))
        if record.exc_info:
            fields["exc_text"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def _said(record: logging.LogRecord, attributes: list[str]) -> list[tuple[str, Any]]:
    """What else a line says: attributes that were asked for, what the caller gave in `extra`, and
    who logs."""
    said = [(name, getattr(record, name, None)) for name in attributes]
    own = STANDARD_ATTRIBUTES | {"_oxiray_ids"}
    said += [(name, value) for name, value in vars(record).items() if name not in own]
    said += getattr(record, "_oxiray_ids", {}).items()
    said.append(("timestamp_ns", int(record.created * 1e9)))
    return said
