"""By Ray's place for it: what there is to say of a job that was handed in."""

from __future__ import annotations

from ....job_submission import JobErrorType, JobInfo, JobStatus

__all__ = ["JobErrorType", "JobInfo", "JobStatus"]
