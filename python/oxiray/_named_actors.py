"""Names of actors: unique in a namespace, from creation until the actor is dead for good."""

from __future__ import annotations

from . import _native

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from typing import Any

    from ._actor import ActorHandle

# What a handle is made from, beside the reference (class, methods, retries), travels as JSON: who
# finds an actor by name need not unpickle what another wrote.
LONGEST_NAME = 1000
_LONGEST_ABOUT = 100_000


def name_tag(name: str, options: dict[str, Any], about: tuple[Any, ...]) -> tuple[str, str, bytes]:
    import json

    _check_length("name", name)
    encoded = json.dumps(about).encode()
    if len(encoded) > _LONGEST_ABOUT:
        raise ValueError(
            f"The class of the actor {name!r} has too many methods to be found by name"
        )
    return name, _namespace(options.get("namespace")), encoded


def _check_length(what: str, text: str) -> None:
    if len(text.encode(errors="replace")) > LONGEST_NAME:
        raise ValueError(f"The {what} of an actor can have {LONGEST_NAME} bytes: {text[:40]!r}...")


def _namespace(namespace: str | None) -> str:
    if namespace is None:
        return str(_native.context()["namespace"])
    _check_length("namespace", namespace)
    return namespace


def find(name: str, namespace: str | None = None) -> ActorHandle | None:
    """The actor of that name, if there is one."""
    _check_length("name", name)
    from . import _session

    if _session.is_local:
        from . import _local_mode

        return _local_mode.find(name, namespace)
    found = _native.find_actor(name, _namespace(namespace))
    if found is None:
        return None
    import json

    from ._actor import ActorHandle

    ref, about = found
    return ActorHandle(ref, *json.loads(about))


def taken(name: str, options: dict[str, Any]) -> ValueError:
    from .exceptions import ActorAlreadyExistsError

    return ActorAlreadyExistsError(
        f"The name {name!r} is already taken by another actor in the namespace "
        f"{_namespace(options.get('namespace'))!r}. Use get_actor() to call that one, "
        "get_if_exists=True to take whichever there is, or another name."
    )


def get_actor(name: str, namespace: str | None = None) -> ActorHandle:
    """A handle of the actor that was created with this name."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"get_actor() takes the name of an actor, not {name!r}")
    if namespace is not None and (not isinstance(namespace, str) or not namespace):
        raise ValueError(f"get_actor(namespace=) must be a string that is not empty: {namespace!r}")
    found = find(name, namespace)
    if found is None:
        raise ValueError(
            f"Failed to look up actor with name {name!r}: there is none in the namespace "
            f"{_namespace(namespace)!r}. It must have been created with the option name=, and it "
            "ends with its last handle unless lifetime='detached'."
        )
    return found


def list_named_actors(all_namespaces: bool = False) -> list[Any]:
    """Names of the actors of this namespace; of all, as dicts with their namespaces."""
    if all_namespaces:
        pairs = _native.actor_names("")
        return [{"namespace": namespace, "name": name} for namespace, name in pairs]
    return [name for _, name in _native.actor_names(_namespace(None))]
