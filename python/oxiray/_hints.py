"""What somebody may have meant who gave `get` something else than references."""

from __future__ import annotations

from typing import Any


def of_get(value: Any) -> str:
    """A sentence that follows the refusal; empty, if there is nothing to say."""
    from . import _native
    from ._actor import ActorClass, ActorHandle, ActorMethod
    from ._remote_function import RemoteFunction

    if isinstance(value, (RemoteFunction, ActorMethod)):
        return ". Call it with .remote(), which returns an ObjectRef"
    if isinstance(value, _native.RemoteCall):
        return ". Call it, as in f.remote(), which returns an ObjectRef"
    if isinstance(value, ActorClass):
        return ". Make an actor with .remote(), and call a method of that"
    if isinstance(value, ActorHandle):
        return ". Call a method of the actor, as in actor.method.remote()"
    if isinstance(value, dict):
        return ". Get its values: dict(zip(d, get(list(d.values()))))"
    if hasattr(value, "__iter__") and not isinstance(value, (str, bytes)):
        return ". Make a list of it"
    return ""
