"""`StateApiClient`: the functions of this package as one object, for one address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ... import _address, _native
from ..._address import StartedNode
from ..._version import ray_version
from . import _get, _list, _summary
from ._asked import GetApiOptions, ListApiOptions, SummaryApiOptions
from ._resources import StateResource, SummaryResource

_GET: dict[str, Callable[..., Any]] = {
    "actors": _get.get_actor,
    "jobs": _get.get_job,
    "nodes": _get.get_node,
    "objects": _get.get_objects,
    "placement_groups": _get.get_placement_group,
    "tasks": _get.get_task,
    "workers": _get.get_worker,
}
_LIST: dict[str, Callable[..., Any]] = {
    "actors": _list.list_actors,
    "cluster_events": _list.list_cluster_events,
    "jobs": _list.list_jobs,
    "nodes": _list.list_nodes,
    "objects": _list.list_objects,
    "placement_groups": _list.list_placement_groups,
    "runtime_envs": _list.list_runtime_envs,
    "tasks": _list.list_tasks,
    "workers": _list.list_workers,
}
_SUMMARY: dict[str, Callable[..., Any]] = {
    "actors": _summary.summarize_actors,
    "objects": _summary.summarize_objects,
    "tasks": _summary.summarize_tasks,
}
_SUMMARY_BY = {"actors": "class", "objects": "callsite", "tasks": "func_name"}


class StateApiClient:
    """Asks the session of one address. Nothing goes over HTTP: cookies and headers are not used."""

    def __init__(
        self,
        address: str | None = None,
        cookies: dict[str, Any] | None = None,
        headers: dict[str, Any] | None = None,
    ) -> None:
        self._address = address

    def get_address(self) -> str:
        """What was given; else where the dashboard of the session is that is asked, as in Ray, or
        the session's directory if it has none."""
        if self._address is not None:
            return self._address
        if _native.is_running():
            directory: str = _native.context()["session_dir"]
        else:
            directory = cast("StartedNode", _address.resolve("auto")).session_dir
        return (_native.dashboard_url(directory) or directory).partition("/?")[0]

    def get_version(self) -> str:
        """The version of Ray whose functions these are."""
        return ray_version

    def get(
        self,
        resource: StateResource,
        id: Any,
        options: GetApiOptions | None = None,
        _explain: bool = False,
    ) -> Any:
        """One row, or None; of objects a list."""
        options = options or GetApiOptions()
        return _of(_GET, resource)(id, self._address, options.timeout)

    def list(
        self,
        resource: StateResource,
        options: ListApiOptions | None = None,
        raise_on_missing_output: bool = True,
        _explain: bool = False,
    ) -> Any:
        """Rows."""
        options = options or ListApiOptions()
        return _of(_LIST, resource)(
            self._address,
            options.filters,
            limit=options.limit,
            timeout=options.timeout,
            detail=options.detail,
            raise_on_missing_output=raise_on_missing_output,
            _explain=_explain,
        )

    def summary(
        self,
        resource: SummaryResource,
        *,
        options: SummaryApiOptions | None = None,
        raise_on_missing_output: bool = True,
        _explain: bool = False,
    ) -> dict[str, Any]:
        """How many there are of each name, by state."""
        summarize, options = _of(_SUMMARY, resource), options or SummaryApiOptions()
        name = str(getattr(resource, "value", resource))
        if options.summary_by not in (None, _SUMMARY_BY[name]):
            raise ValueError(f"a summary of {name} is by {_SUMMARY_BY[name]!r} here, and no other")
        missing = raise_on_missing_output
        if options.filters:
            return _summary.summarize_some(
                name, self._address, options.filters, options.timeout, missing
            )
        found: dict[str, Any] = summarize(
            self._address, options.timeout, raise_on_missing_output=missing
        )
        return found


def _of(functions: dict[str, Callable[..., Any]], resource: Any) -> Callable[..., Any]:
    name = getattr(resource, "value", resource)
    if name not in functions:
        raise ValueError(f"{name!r} is not among {', '.join(functions)}")
    return functions[name]
