"""Helpers beside the core."""

from __future__ import annotations

from .._named_actors import list_named_actors

__all__ = ["inspect_serializability", "list_named_actors"]


def inspect_serializability(base_obj: object, name: str | None = None) -> tuple[bool, set[object]]:
    """Whether the object can be pickled; if not, prints and returns what inside it cannot."""
    import cloudpickle

    try:
        cloudpickle.dumps(base_obj, protocol=5)
        return True, set()
    except Exception:
        from .._unpicklable import find

        culprit = find(base_obj, name or "value")
        print(f"Cannot be pickled: {culprit}")
        return False, {culprit}
