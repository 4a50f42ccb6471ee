"""Jobs of a cluster: what is known of them, kept in the cluster's table of keys and values.

Who calls this is connected to the cluster: the clerk, and the supervisors.
"""

from __future__ import annotations

import json
from typing import Any

from . import _native
from .experimental import internal_kv as kv

NAMESPACE = "_oxiray_jobs"
_TABLE = "job"
ENDED = ("STOPPED", "SUCCEEDED", "FAILED")

# What lists show of a job, and how much of a text.
_LISTED = ("status", "entrypoint", "message", "start_time", "end_time", "driver_node_id")
_LONGEST = 600

# What does not change and may be long; it is kept apart where it is, so that the rest is one value
# of the table, of which the control service reads the first line.
_LONG = ("entrypoint", "metadata", "runtime_env")
_LONG_TABLE = "job_long"
_MOST = 24 << 10
_LONGEST_MESSAGE = 4000

# What people are told of a status, unless there is more to say.
_MESSAGES = {
    "PENDING": "Job has not started yet. It may be waiting for resources or for its runtime "
    "environment to be set up.",
    "RUNNING": "Job is currently running.",
    "STOPPED": "Job was intentionally stopped.",
    "SUCCEEDED": "Job finished successfully.",
    "FAILED": "Job failed.",
}


def actor_name(submission_id: str) -> str:
    return f"job-{submission_id}"


def log_name(submission_id: str) -> str:
    return f"job-driver-{submission_id}.log"


def add(submission_id: str, info: dict[str, Any]) -> bool:
    """Whether there was none of that id."""
    if get(submission_id) is not None:
        return False
    if len(_written(info)) > _MOST:
        long = json.dumps({name: info.get(name) for name in _LONG})
        kv._internal_kv_put(submission_id, long, namespace=_LONG_TABLE)
        short = str(info.get("entrypoint"))[:_LONGEST]
        info = {**info, **dict.fromkeys(_LONG), "entrypoint": short, "is_long": True}
    return not kv._internal_kv_put(submission_id, _written(info), overwrite=False, namespace=_TABLE)


def get(submission_id: str) -> dict[str, Any] | None:
    info = _read(submission_id)
    if info is not None and info.pop("is_long", False):
        info.update(json.loads(kv._internal_kv_get(submission_id, namespace=_LONG_TABLE) or "{}"))
    return info


def _read(submission_id: str) -> dict[str, Any] | None:
    said = kv._internal_kv_get(submission_id, namespace=_TABLE)
    return json.loads(said.rpartition(b"\n")[2]) if said else None


def ids() -> list[str]:
    return sorted(key.decode() for key in kv._internal_kv_list("", namespace=_TABLE))


def change(submission_id: str, **fields: Any) -> None:
    """Writes down what has changed. A job that has ended stays as it is."""
    info = _read(submission_id)
    if info is None or info["status"] in ENDED:
        return
    if fields.get("message") is None and "status" in fields:
        fields["message"] = _MESSAGES[fields["status"]]
    # Of what a tool printed, the end says why.
    if "message" in fields:
        fields["message"] = fields["message"][-_LONGEST_MESSAGE:]
    info.update(fields)
    kv._internal_kv_put(submission_id, _written(info), namespace=_TABLE)


def _written(info: dict[str, Any]) -> bytes:
    """A line with what lists show, which the control service hands out, and a line with all."""
    short = {name: info.get(name) for name in _LISTED}
    for name in ("entrypoint", "message"):
        short[name] = str(short[name] or "")[:_LONGEST]
    lines = [json.dumps(each, ensure_ascii=False) for each in (short, info)]
    return "\n".join(lines).encode(errors="replace")


def remove(submission_id: str) -> None:
    kv._internal_kv_del(submission_id, namespace=_TABLE)
    kv._internal_kv_del(submission_id, namespace=_LONG_TABLE)


def message(status: str) -> str:
    return _MESSAGES[status]


def read_log(
    submission_id: str, node_id: str, after: list[int] | None
) -> tuple[bytes, tuple[int, int, int]]:
    """What a job's driver has printed after a place, and the place to go on at."""
    observer = _native.Observer(_native.context()["session_dir"])
    place = (after[0], after[1], after[2]) if after else (0, 0, 0)
    said = b""
    while True:
        piece, place, _, _ = observer.read_log(node_id, log_name(submission_id), place)
        said += piece
        if not piece or len(said) > _MOST_AT_ONCE:
            return said, place


# Of a log, in one answer.
_MOST_AT_ONCE = 16 << 20
