"""Where objects are."""

from __future__ import annotations

from typing import Any

from .. import _native


def get_object_locations(
    obj_refs: list[_native.ObjectRef], timeout_ms: int = -1
) -> dict[_native.ObjectRef, dict[str, Any]]:
    """Of each object: the nodes that have it, its size in bytes, and whether it is on disk.

    Waits until every object is there, or until `timeout_ms` have passed; -1 waits for ever. An
    object that is not there then has no node and no size.
    """
    if not isinstance(obj_refs, (list, tuple)):
        raise TypeError(f"get_object_locations() takes a list of ObjectRefs, not {obj_refs!r}")
    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, (int, float)):
        raise TypeError(f"timeout_ms must be a number of milliseconds or -1, not {timeout_ms!r}")
    if timeout_ms != timeout_ms or (timeout_ms < 0 and timeout_ms != -1):
        raise ValueError(f"timeout_ms must be a number of milliseconds or -1, not {timeout_ms!r}")
    timeout = None if timeout_ms == -1 else timeout_ms / 1000
    return _described(list(obj_refs), timeout)


def get_local_object_locations(
    obj_refs: list[_native.ObjectRef],
) -> dict[_native.ObjectRef, dict[str, Any]]:
    """Like `get_object_locations`, from what this process knows now, without waiting."""
    if not isinstance(obj_refs, (list, tuple)):
        raise TypeError(
            f"get_local_object_locations() takes a list of ObjectRefs, not {obj_refs!r}"
        )
    return _described(list(obj_refs), 0.0)


def _described(
    refs: list[_native.ObjectRef], timeout: float | None
) -> dict[_native.ObjectRef, dict[str, Any]]:
    found = _native.locations(refs, timeout=timeout)
    nodes = _nodes_by_number() if refs else {}
    return {
        ref: {
            "node_ids": [] if size is None or node not in nodes else [nodes[node]],
            "object_size": size,
            "did_spill": on_disk,
        }
        for ref, (size, on_disk, node) in zip(refs, found, strict=True)
    }


def _nodes_by_number() -> dict[int, str]:
    return {node["number"]: node["id"].hex() for node in _native.cluster_view()["nodes"]}
