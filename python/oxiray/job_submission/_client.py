"""`JobSubmissionClient`: hands jobs in to a cluster over the address of its dashboard."""

from __future__ import annotations

import json
import os
import tempfile
import urllib.parse
from collections.abc import AsyncIterator
from typing import Any

from .. import _native, _settings
from ._connection import Connection, Refused
from ._details import JobDetails, JobStatus

_LOG_INTERVAL_S = 0.5


class JobSubmissionClient:
    """Hands in jobs, and asks about them.

    Args:
        address: of the dashboard, `https://HOST:8265`, with `/?token=...` as `oxiray dashboard`
            prints it, or without: then the token is OXIRAY_DASHBOARD_TOKEN's, or that of a cluster
            of this machine. Unless given, RAY_API_SERVER_ADDRESS or the cluster of this machine.
        headers: sent with every request; `{"Authorization": "Bearer TOKEN"}` has the token.
        metadata: of all jobs that are handed in.
        verify: of an `https://` address. True: who is there must have the token, or a certificate
            that this machine trusts; False: it is not checked; or the path of a certificate.
    """

    def __init__(
        self,
        address: str | None = None,
        create_cluster_if_needed: bool = False,
        cookies: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        headers: dict[str, Any] | None = None,
        verify: str | bool | None = True,
    ) -> None:
        for name, value, kind in (
            ("address", address, str),
            ("cookies", cookies, dict),
            ("metadata", metadata, dict),
            ("headers", headers, dict),
        ):
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__name__}, got {type(value)}")
        if create_cluster_if_needed and not _native.started_nodes():
            raise ConnectionError("There is no cluster: start one with `oxiray start --head`")
        self._default_metadata = metadata or {}
        where, token = _where(address)
        self._headers = {str(name): str(value) for name, value in (headers or {}).items()}
        if cookies:
            pairs = "; ".join(f"{name}={value}" for name, value in cookies.items())
            self._headers["Cookie"] = pairs
        if token and "Authorization" not in self._headers:
            self._headers["Authorization"] = f"Bearer {token}"
        token = token or self._headers.get("Authorization", "").removeprefix("Bearer ")
        self._connection = Connection(where, token, verify)
        self.get_version()  # who does not answer is told at once

    def get_address(self) -> str:
        return self._connection.address

    def get_version(self) -> str:
        return str(self._ask("GET", "/api/version")["version"])

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

    def _ask(self, method: str, path: str, body: Any = None, size: int | None = None) -> Any:
        headers = dict(self._headers)
        if size is not None:
            headers.update({"Content-Length": str(size), "Content-Type": "application/zip"})
        elif body is not None:
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        return json.loads(self._connection.ask(method, path, body, headers) or b"{}")


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _where(address: str | None) -> tuple[str, str]:
    """The dashboard's address, and the token if it is known."""
    given = address or _settings.text("RAY_API_SERVER_ADDRESS")
    token = _settings.text("OXIRAY_DASHBOARD_TOKEN")
    if given and "://" in given:
        scheme = given.partition("://")[0]
        if scheme not in ("http", "https"):
            raise ConnectionError(
                f"JobSubmissionClient(address={given!r}): the address of the dashboard begins with "
                "http:// or https://; `oxiray dashboard` prints it"
            )
        parts = urllib.parse.urlsplit(given)
        where = f"{parts.scheme}://{parts.netloc}"
        token = dict(urllib.parse.parse_qsl(parts.query)).get("token") or token
        return where, token or _own_token(parts.netloc)
    from .. import _address

    node = _address.resolve(given or "auto")
    assert node is not None
    found = _native.dashboard_url(node.session_dir)
    if not found:
        raise ConnectionError(
            f"The dashboard of the cluster at {node.address}, which takes jobs, is not on this "
            "machine; `oxiray dashboard` on the head machine prints its address."
        )
    return _where(found)


def _own_token(netloc: str) -> str:
    """That of a cluster of this machine, if its dashboard is there."""
    port = netloc.rpartition(":")[2]
    for node in _native.started_nodes():
        where, _, token = (_native.dashboard_url(node["session_dir"]) or "").partition("/?token=")
        if where.rpartition(":")[2] == port:
            return token
    return ""
