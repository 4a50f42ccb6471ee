"""`get_task` and its like: everything about one, by its id or the beginning of it."""

from __future__ import annotations

import json
from typing import Any, cast

from ._list import list_objects
from ._observer import ask, miss
from ._rows import (
    KINDS,
    ActorState,
    JobState,
    NodeState,
    ObjectState,
    Row,
    TaskState,
    WorkerState,
)

_TIMEOUT_S = 30


def _one(resource: str, name: Any, address: str | None, timeout: float) -> Row | None:
    # Ids of the API's own classes, and references, say theirs.
    text = name.hex() if hasattr(name, "hex") else str(name)
    found, missing = ask(address, lambda observer: observer.get(resource, text), timeout)
    miss(missing, raise_on_missing_output=False)
    return None if found is None else KINDS[resource](json.loads(found))


def get_task(
    id: Any, address: str | None = None, timeout: int = _TIMEOUT_S, _explain: bool = False
) -> TaskState | None:
    """A task: by its id, or by a reference that it returns."""
    return cast("TaskState | None", _one("tasks", id, address, timeout))


def get_actor(
    id: Any, address: str | None = None, timeout: int = _TIMEOUT_S, _explain: bool = False
) -> ActorState | None:
    """An actor."""
    return cast("ActorState | None", _one("actors", id, address, timeout))


def get_objects(
    id: Any, address: str | None = None, timeout: int = _TIMEOUT_S, _explain: bool = False
) -> list[ObjectState]:
    """An object, as each process holds it; whom it belongs to comes first."""
    text = id.hex() if hasattr(id, "hex") else str(id)
    return list_objects(
        address,
        [("object_id", "=", text)],
        limit=None,
        timeout=timeout,
        detail=True,
        raise_on_missing_output=False,
    )


get_object = get_objects  # by the name that the others have


def get_placement_group(
    id: Any, address: str | None = None, timeout: int = _TIMEOUT_S, _explain: bool = False
) -> Row | None:
    """Nothing: there are no placement groups here."""
    return None


def get_node(
    id: Any, address: str | None = None, timeout: int = _TIMEOUT_S, _explain: bool = False
) -> NodeState | None:
    """A node."""
    return cast("NodeState | None", _one("nodes", id, address, timeout))


def get_worker(
    id: Any, address: str | None = None, timeout: int = _TIMEOUT_S, _explain: bool = False
) -> WorkerState | None:
    """A driver or worker."""
    return cast("WorkerState | None", _one("workers", id, address, timeout))


def get_job(
    id: Any, address: str | None = None, timeout: int = _TIMEOUT_S, _explain: bool = False
) -> JobState | None:
    """A program."""
    return cast("JobState | None", _one("jobs", id, address, timeout))
