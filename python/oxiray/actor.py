"""Public face of actors, under Ray's module name."""

from ._actor import (
    ActorClass,
    ActorClassInheritanceException,
    ActorHandle,
    ActorMethod,
    exit_actor,
    method,
)

__all__ = [
    "ActorClass",
    "ActorClassInheritanceException",
    "ActorHandle",
    "ActorMethod",
    "exit_actor",
    "method",
]
