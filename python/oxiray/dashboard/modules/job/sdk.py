"""By Ray's place for it: the client that hands in jobs."""

from __future__ import annotations

from ....job_submission import JobDetails, JobStatus, JobSubmissionClient
from ..dashboard_sdk import SubmissionClient

__all__ = ["JobDetails", "JobStatus", "JobSubmissionClient", "SubmissionClient"]
