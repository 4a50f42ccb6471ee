"""`get_task` and its like: everything about one, by its id or the beginning of it."""

from __future__ import annotations

import json
from typing import Any, Protocol, TypeVar

from ._list import list_objects
from ._observer import ask, miss
from ._rows import (
    KINDS,
    ActorState,
    JobState,
    NodeState,
    ObjectState,
    PlacementGroupState,
    Row,
    TaskState,
    WorkerState,
)

_TIMEOUT_S = 30
R = TypeVar("R", bound=Row)
R_co = TypeVar("R_co", bound=Row, covariant=True)


class _Gets(Protocol[R_co]):
    """What `get_task` and its like are."""

    def __call__(
        self,
        id: Any,
        address: str | None = None,
        timeout: int = _TIMEOUT_S,
        _explain: bool = False,
    ) -> R_co | None: ...


def _gets(kind: type[R], about: str) -> _Gets[R]:
    (resource,) = (name for name, each in KINDS.items() if each is kind)

    def get(
        id: Any, address: str | None = None, timeout: int = _TIMEOUT_S, _explain: bool = False
    ) -> R | None:
        # Ids of the API's own classes, and references, say theirs.
        text = id.hex() if hasattr(id, "hex") else str(id)
        found, missing = ask(address, lambda observer: observer.get(resource, text), timeout)
        miss(missing, raise_on_missing_output=False)
        return None if found is None else kind(json.loads(found))

    get.__name__ = get.__qualname__ = f"get_{resource.removesuffix('s').replace('-', '_')}"
    get.__doc__ = about
    return get


get_task = _gets(TaskState, "A task: by its id, or by a reference that it returns.")
get_actor = _gets(ActorState, "An actor.")
get_node = _gets(NodeState, "A node.")
get_worker = _gets(WorkerState, "A driver or worker.")
get_job = _gets(JobState, "A program.")
get_placement_group = _gets(PlacementGroupState, "A placement group.")


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
