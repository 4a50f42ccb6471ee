"""Jobs: programs that are handed in to a cluster from outside, and run there."""

from __future__ import annotations

from ._client import JobSubmissionClient
from ._details import DriverInfo, JobDetails, JobErrorType, JobInfo, JobStatus, JobType

__all__ = [
    "DriverInfo",
    "JobDetails",
    "JobErrorType",
    "JobInfo",
    "JobStatus",
    "JobSubmissionClient",
    "JobType",
]
