"""By Ray's place for it: a client of the dashboard, and how it finds the cluster."""

from __future__ import annotations

from ...job_submission._arguments import parse_runtime_env_args
from ...job_submission._submission import (
    ClusterInfo,
    SubmissionClient,
    get_job_submission_client_cluster_info,
    parse_cluster_info,
)

__all__ = [
    "ClusterInfo",
    "SubmissionClient",
    "get_job_submission_client_cluster_info",
    "parse_cluster_info",
    "parse_runtime_env_args",
]
