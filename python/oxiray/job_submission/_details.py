"""What there is to say of a job."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from enum import Enum
from typing import Any


class _Word(str, Enum):
    """An enum whose members are their words; Python has one of its own from 3.11 on."""

    def __str__(self) -> str:
        return str(self.value)


class JobStatus(_Word):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    def is_terminal(self) -> bool:
        """Whether it stays so."""
        return self.value in ("STOPPED", "SUCCEEDED", "FAILED")


class JobErrorType(_Word):
    RUNTIME_ENV_SETUP_FAILURE = "RUNTIME_ENV_SETUP_FAILURE"
    JOB_SUPERVISOR_ACTOR_START_TIMEOUT = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"
    JOB_SUPERVISOR_ACTOR_START_FAILURE = "JOB_SUPERVISOR_ACTOR_START_FAILURE"
    JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE = "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE"
    JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE = "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE"
    JOB_SUPERVISOR_ACTOR_DIED = "JOB_SUPERVISOR_ACTOR_DIED"
    JOB_ENTRYPOINT_COMMAND_START_ERROR = "JOB_ENTRYPOINT_COMMAND_START_ERROR"
    JOB_ENTRYPOINT_COMMAND_ERROR = "JOB_ENTRYPOINT_COMMAND_ERROR"


class JobType(_Word):
    SUBMISSION = "SUBMISSION"  # handed in
    DRIVER = "DRIVER"  # a program that connected by itself


@dataclass
class DriverInfo:
    id: str
    node_ip_address: str
    pid: str


@dataclass
class JobInfo:
    """A job that was handed in. Times are milliseconds since 1970."""

    status: JobStatus
    entrypoint: str
    message: str | None = None
    error_type: JobErrorType | None = None
    start_time: int | None = None
    end_time: int | None = None
    metadata: dict[str, str] | None = None
    runtime_env: dict[str, Any] | None = None
    entrypoint_num_cpus: float | None = None
    entrypoint_num_gpus: float | None = None
    entrypoint_memory: int | None = None
    entrypoint_resources: dict[str, float] | None = None
    driver_agent_http_address: str | None = None
    driver_node_id: str | None = None
    driver_exit_code: int | None = None

    def __post_init__(self) -> None:
        self.status = JobStatus(self.status)

    def to_json(self) -> dict[str, Any]:
        """What can be written as JSON; the environment is a text, `runtime_env_json`."""
        said = dataclasses.asdict(self)
        said["status"] = self.status.value
        said["error_type"] = self.error_type and JobErrorType(self.error_type).value
        environment = said.pop("runtime_env")
        if environment is not None:
            said["runtime_env_json"] = json.dumps(environment)
        json.dumps(said)  # what cannot be written is told here
        return said

    @classmethod
    def from_json(cls, json_dict: dict[str, Any]) -> JobInfo:
        """Of what `to_json` gave."""
        said = dict(json_dict)
        said["error_type"] = JobErrorType(said["error_type"]) if said.get("error_type") else None
        environment = said.pop("runtime_env_json", None)
        if environment is not None:
            said["runtime_env"] = json.loads(environment)
        return cls(**said)


@dataclass
class JobDetails:
    """A job of either type. Times are milliseconds since 1970."""

    type: JobType
    status: JobStatus
    entrypoint: str
    job_id: str | None = None
    submission_id: str | None = None
    driver_info: DriverInfo | None = None
    message: str | None = None
    error_type: str | None = None
    start_time: int | None = None
    end_time: int | None = None
    metadata: dict[str, str] | None = None
    runtime_env: dict[str, Any] | None = None
    driver_agent_http_address: str | None = None
    driver_node_id: str | None = None
    driver_exit_code: int | None = None
    entrypoint_num_cpus: float | None = None
    entrypoint_num_gpus: float | None = None
    entrypoint_memory: int | None = None
    entrypoint_resources: dict[str, float] | None = None

    def __post_init__(self) -> None:
        self.type, self.status = JobType(self.type), JobStatus(self.status)
        if isinstance(self.driver_info, dict):
            self.driver_info = DriverInfo(**self.driver_info)

    @classmethod
    def of(cls, said: dict[str, Any]) -> JobDetails:
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in said.items() if name in known})

    def dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)
