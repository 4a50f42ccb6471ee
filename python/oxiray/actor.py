"""Public face of actors, under Ray's module name."""

from __future__ import annotations

from ._actor import (
    ActorClass,
    ActorClassInheritanceException,
    ActorHandle,
    ActorMethod,
    exit_actor,
    method,
)

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from typing import Any

    from ._actor import ActorProxy

__all__ = [
    "ActorClass",
    "ActorClassInheritanceException",
    "ActorHandle",
    "ActorMethod",
    "ActorProxy",
    "exit_actor",
    "method",
]


def __getattr__(name: str) -> Any:
    if name != "ActorProxy":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from typing import TypeVar, Union

    kind = TypeVar("kind")
    globals()[name] = Union[ActorHandle[kind], type[kind]]  # type: ignore[valid-type]  # noqa: UP007
    return globals()[name]
