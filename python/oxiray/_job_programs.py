"""Programs of a cluster, as the clerk tells of them: those that jobs became, and all others."""

from __future__ import annotations

import json
from typing import Any

import oxiray as ray

from . import _native


class Programs:
    """As lists have them now."""

    def __init__(self) -> None:
        observer = _native.Observer(_native.context()["session_dir"])
        _, _, rows, _ = observer.rows("jobs", filters=[], limit=None, detail=True)
        self._rows: list[dict[str, Any]] = json.loads(rows)
        self._addresses = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes()}

    def with_driver(self, job: dict[str, Any]) -> dict[str, Any]:
        """A job with the program that it became, if that has come."""
        for row in self._rows:
            if row["submission_id"] == job["submission_id"] and row["driver_pid"] is not None:
                return {**job, "job_id": row["job_id"], "driver_info": self._about(row)}
        return job

    def drivers(self) -> list[dict[str, Any]]:
        """Those that came by themselves."""
        return [
            {
                "type": "DRIVER",
                "job_id": row["job_id"],
                "submission_id": None,
                "driver_info": self._about(row),
                "status": row["status"],
                "entrypoint": row["entrypoint"],
                "message": row["message"],
                "start_time": row["start_time_ms"],
                "end_time": row["end_time_ms"],
            }
            for row in self._rows
            if row["type"] == "DRIVER"
        ]

    def _about(self, row: dict[str, Any]) -> dict[str, str]:
        where = self._addresses.get(row["driver_node_id"], "")
        return {"id": row["job_id"], "node_ip_address": where, "pid": str(row["driver_pid"])}
