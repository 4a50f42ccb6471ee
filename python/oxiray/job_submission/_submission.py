"""Which cluster a client means, and its connection to the cluster's dashboard."""

from __future__ import annotations

import dataclasses
import importlib
import json
import urllib.parse
from typing import Any

from .. import _native, _settings
from ._connection import Connection


@dataclasses.dataclass
class ClusterInfo:
    """Where a cluster's dashboard is, and what is sent with every request to it."""

    address: str
    cookies: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    headers: dict[str, Any] | None = None


def get_job_submission_client_cluster_info(
    address: str,
    *,
    create_cluster_if_needed: bool | None = False,
    cookies: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    headers: dict[str, Any] | None = None,
    _use_tls: bool | None = False,
    **kwargs: Any,
) -> ClusterInfo:
    """Of an address without its `http://`. Other packages have a function of this name, to which
    addresses that begin with the name of their module lead."""
    scheme = "https" if _use_tls else "http"
    return ClusterInfo(f"{scheme}://{address}", cookies, metadata, headers)


def parse_cluster_info(
    address: str | None = None,
    create_cluster_if_needed: bool = False,
    cookies: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    headers: dict[str, Any] | None = None,
    **kwargs: Any,
) -> ClusterInfo:
    """The cluster that an address means; its token, if it is known, is among the headers.

    `MODULE://ADDRESS` is asked of that module, which may take more arguments than these.
    """
    given = address or _settings.text("RAY_API_SERVER_ADDRESS") or _own_dashboard(address)
    module, separator, inner = given.partition("://")
    if separator and module not in ("http", "https"):
        info = _asked_of_module(module, given)(
            inner,
            create_cluster_if_needed=create_cluster_if_needed,
            cookies=cookies,
            metadata=metadata,
            headers=headers,
            **kwargs,
        )
        return ClusterInfo(info.address, info.cookies, info.metadata, info.headers)
    where, token = _where(given if separator else _own_dashboard(given))
    sent = {str(name): str(value) for name, value in (headers or {}).items()}
    if token:
        sent.setdefault("Authorization", f"Bearer {token}")
    module, _, inner = where.partition("://")
    return get_job_submission_client_cluster_info(
        inner,
        create_cluster_if_needed=create_cluster_if_needed,
        cookies=cookies,
        metadata=metadata,
        headers=sent,
        _use_tls=module == "https",
        **kwargs,
    )


class SubmissionClient:
    """A client of a cluster's dashboard; see `JobSubmissionClient` for its arguments."""

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
        info = parse_cluster_info(
            address, create_cluster_if_needed, cookies, metadata, headers, **kwargs
        )
        self._default_metadata = info.metadata or {}
        self._headers = {str(name): str(value) for name, value in (info.headers or {}).items()}
        if info.cookies:
            pairs = "; ".join(f"{name}={value}" for name, value in info.cookies.items())
            self._headers["Cookie"] = pairs
        token = self._headers.get("Authorization", "").removeprefix("Bearer ")
        self._connection = Connection(info.address, token, verify)

    def get_address(self) -> str:
        return self._connection.address

    def get_version(self) -> str:
        return str(self._ask("GET", "/api/version")["version"])

    def _ask(self, method: str, path: str, body: Any = None, size: int | None = None) -> Any:
        headers = dict(self._headers)
        if size is not None:
            headers.update({"Content-Length": str(size), "Content-Type": "application/zip"})
        elif body is not None:
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        return json.loads(self._connection.ask(method, path, body, headers) or b"{}")


def _asked_of_module(name: str, address: str) -> Any:
    if name == "ray":  # which is a package, but none that knows clusters by their address
        raise ConnectionError(
            f"address={address!r}: the address of the dashboard begins with http:// or https://; "
            "`oxiray dashboard` prints it"
        )
    try:
        module = importlib.import_module(name)
        return module.get_job_submission_client_cluster_info
    except ImportError:
        why = f"Module: {name} does not exist."
    except AttributeError:
        why = f"Module: {name} does not have `get_job_submission_client_cluster_info`."
    raise RuntimeError(
        f"{why} It is what comes before :// in the address {address}; that of a dashboard begins "
        "with http:// or https://, as `oxiray dashboard` prints it"
    )


def _where(given: str) -> tuple[str, str]:
    """The dashboard's address without its token, and the token if it is known."""
    parts = urllib.parse.urlsplit(given)
    token = dict(urllib.parse.parse_qsl(parts.query)).get("token")
    token = token or _settings.text("OXIRAY_DASHBOARD_TOKEN") or _own_token(parts.netloc)
    return f"{parts.scheme}://{parts.netloc}", token


def _own_dashboard(address: str | None) -> str:
    """That of a cluster of this machine."""
    from .. import _address

    node = _address.resolve(address or "auto")
    assert node is not None
    found = _native.dashboard_url(node.session_dir)
    if not found:
        raise ConnectionError(
            f"The dashboard of the cluster at {node.address}, which takes jobs, is not on this "
            "machine; `oxiray dashboard` on the head machine prints its address."
        )
    return found


def _own_token(netloc: str) -> str:
    """That of a cluster of this machine, if its dashboard is there."""
    port = netloc.rpartition(":")[2]
    for node in _native.started_nodes():
        where, _, token = (_native.dashboard_url(node["session_dir"]) or "").partition("/?token=")
        if where.rpartition(":")[2] == port:
            return token
    return ""
