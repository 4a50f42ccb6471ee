"""Keys and values of the cluster, as Ray's own libraries use them: small, and kept by the head.

In a cluster they outlive drivers, and the head's restarts; in a session of one driver they end
with it.
"""

from __future__ import annotations

from oxiray import _native

_DEFAULT_NAMESPACE = "default"


def _internal_kv_initialized() -> bool:
    return _native.is_running()


def _internal_kv_get(key: str | bytes, *, namespace: str | bytes | None = None) -> bytes | None:
    """The value of a key, or None."""
    return _ask("get", key, None, False, namespace)[0]


def _internal_kv_exists(key: str | bytes, *, namespace: str | bytes | None = None) -> bool:
    """Whether a key has a value."""
    return _internal_kv_get(key, namespace=namespace) is not None


def _internal_kv_put(
    key: str | bytes,
    value: str | bytes,
    overwrite: bool = True,
    *,
    namespace: str | bytes | None = None,
) -> bool:
    """Sets a key; whether it existed. One that must not be overwritten keeps its value."""
    existed = _internal_kv_exists(key, namespace=namespace)
    _, count, _ = _ask("put", key, _bytes("value", value), overwrite, namespace)
    return existed or count == 0


def _internal_kv_del(
    key: str | bytes, *, del_by_prefix: bool = False, namespace: str | bytes | None = None
) -> int:
    """Removes a key, or all that begin with it; how many there were."""
    return _ask("delete", key, None, del_by_prefix, namespace)[1]


def _internal_kv_list(prefix: str | bytes, *, namespace: str | bytes | None = None) -> list[bytes]:
    """The keys that begin with `prefix`."""
    _, count, keys = _ask("list", prefix, None, False, namespace)
    if len(keys) < count:
        raise ValueError(f"{count} keys begin with {prefix!r}, too many; use a longer prefix")
    return keys


def _ask(
    verb: str, key: str | bytes, value: bytes | None, wide: bool, namespace: str | bytes | None
) -> tuple[bytes | None, int, list[bytes]]:
    if isinstance(namespace, bytes):
        namespace = namespace.decode()
    name = _DEFAULT_NAMESPACE if namespace is None else namespace
    return _native.key_value(verb, name, _bytes("key", key), value, wide)


def _bytes(what: str, given: str | bytes) -> bytes:
    if isinstance(given, str):
        return given.encode()
    if not isinstance(given, bytes):
        raise TypeError(f"the {what} must be a string or bytes, not {given!r}")
    return given
