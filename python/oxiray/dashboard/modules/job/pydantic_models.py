"""By Ray's place for it: what there is to say of a job of either type."""

from __future__ import annotations

from ....job_submission import DriverInfo, JobDetails, JobType

__all__ = ["DriverInfo", "JobDetails", "JobType"]
