"""`JobSubmissionClient`: hands jobs in to a cluster over the address of its dashboard."""

from __future__ import annotations

import os
import tempfile
import urllib.parse
from collections.abc import AsyncIterator
from typing import Any

from .. import _native
from ._connection import Refused
from ._details import JobDetails, JobStatus
from ._submission import SubmissionClient

_LOG_INTERVAL_S = 0.5


class JobSubmissionClient(SubmissionClient):
    """Hands in jobs, and asks about them.

    Args:
        address: of the dashboard, `https://HOST:8265`, with `/?token=...` as `oxiray dashboard`
            prints it, or without: then the token is OXIRAY_DASHBOARD_TOKEN's, or that of a cluster
            of this machine. Unless given, RAY_API_SERVER_ADDRESS or the cluster of this machine.
        headers: sent with every request; `{"Authorization": "Bearer TOKEN"}` has the token.
        metadata: of all jobs that are handed in.
        verify: of an `https://` address. True: who is there must have the token, or a certificate
            that this machine trusts; False: it is not checked; or the path of a certificate.
        kwargs: for the module that an address `MODULE://...` names.
    """

    def __init__(
        self,
        address: str | None = None,
        create_cluster_if_needed: bool = False,
        cookies: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        headers: dict[str, Any] | None = None,
        verify: str | bool | None = True,
        **kwargs: Any,
    ) -> None:
        for name, value, kind in (
            ("address", address, str),
            ("cookies", cookies, dict),
            ("metadata", metadata, dict),
            ("headers", headers, dict),
        ):
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__name__}, got {type(value)}")
        if create_cluster_if_needed and address is None and not _native.started_nodes():
            raise ConnectionError("There is no cluster: start one with `oxiray start --head`")
        super().__init__(
            address, create_cluster_if_needed, cookies, metadata, headers, verify, **kwargs
        )
        self.get_version()  # who does not answer is told at once

    def submit_job(
        self,
        *,
        entrypoint: str,
        job_id: str | None = None,
        runtime_env: dict[str, Any] | None = None,
        metadata: dict[str, str] | None = None,
        submission_id: str | None = None,
        entrypoint_num_cpus: float | None = None,
        entrypoint_num_gpus: float | None = None,
        entrypoint_memory: int | None = None,
        entrypoint_resources: dict[str, float] | None = None,
        entrypoint_label_selector: dict[str, str] | None = None,
    ) -> str:
        """Hands in a job: a command to run on the cluster. Returns its id, and does not wait."""
        wanted = {
            "entrypoint": entrypoint,
            "submission_id": submission_id or job_id,
            "runtime_env": self._with_packages(runtime_env),
            "metadata": {**self._default_metadata, **(metadata or {})},
            "entrypoint_num_cpus": entrypoint_num_cpus,
            "entrypoint_num_gpus": entrypoint_num_gpus,
            "entrypoint_memory": entrypoint_memory,
            "entrypoint_resources": entrypoint_resources,
            "entrypoint_label_selector": entrypoint_label_selector,
        }
        said = self._ask("POST", "/api/jobs/", wanted)
        return str(said["submission_id"])

    def stop_job(self, job_id: str) -> bool:
        """Ends a job; whether it was not over."""
        return bool(self._ask("POST", f"/api/jobs/{_quoted(job_id)}/stop")["stopped"])

    def delete_job(self, job_id: str) -> bool:
        """Forgets a job that is over."""
        return bool(self._ask("DELETE", f"/api/jobs/{_quoted(job_id)}")["deleted"])

    def get_job_info(self, job_id: str) -> JobDetails:
        return JobDetails.of(self._ask("GET", f"/api/jobs/{_quoted(job_id)}"))

    def list_jobs(self) -> list[JobDetails]:
        """Jobs that were handed in, and programs that connected by themselves."""
        return [JobDetails.of(said) for said in self._ask("GET", "/api/jobs/")]

    def get_job_status(self, job_id: str) -> JobStatus:
        return self.get_job_info(job_id).status

    def get_job_logs(self, job_id: str) -> str:
        """All that the job's driver has printed."""
        whole, after = "", ""
        while True:
            said = self._logs(job_id, after)
            whole += str(said["logs"])
            if not said["logs"] or said["after"] == after:
                return whole
            after = said["after"]

    async def tail_job_logs(self, job_id: str) -> AsyncIterator[str]:
        """What the job's driver prints, as it comes, until the job is over."""
        import asyncio

        after, was_over = "", False
        while True:
            said = await asyncio.to_thread(self._logs, job_id, after)
            after = said["after"] or after
            if said["logs"]:
                yield said["logs"]
            elif was_over:
                return
            else:
                # Once more: it may have printed between this answer and its end.
                was_over = said["is_over"]
                if not was_over:
                    await asyncio.sleep(_LOG_INTERVAL_S)

    def _logs(self, job_id: str, after: str) -> dict[str, Any]:
        query = f"?{urllib.parse.urlencode({'after': after})}" if after else ""
        said: dict[str, Any] = self._ask("GET", f"/api/jobs/{_quoted(job_id)}/logs{query}")
        return said

    def _with_packages(self, runtime_env: dict[str, Any] | None) -> dict[str, Any]:
        """The environment with what it names of this machine brought to the cluster."""
        from .. import _environment, _packages

        given = _environment.check("runtime_env", runtime_env)
        if given is None:
            return {}
        with tempfile.TemporaryDirectory(prefix="oxiray-packages-") as folder:
            said = _environment.packed(given, _packages.Folder(folder))
            for name in os.listdir(folder):
                self._upload(os.path.join(folder, name), name)
        return said

    def _upload(self, path: str, name: str) -> None:
        place = f"/api/packages/gcs/{_quoted(name)}"
        try:
            self._ask("GET", place)
            return
        except Refused as error:
            if error.status != 404:
                raise
        with open(path, "rb") as file:
            self._ask("PUT", place, file, os.path.getsize(path))


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")
