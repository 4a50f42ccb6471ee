"""Keys and values of the cluster, as Ray's own libraries use them: kept by the head.

A message has room for 100 KB. A larger value is kept in parts, in a namespace beside its own, and
the key has a label that says where: so a reader has either the old value whole or the new one.

In a cluster they outlive drivers, and the head's restarts; in a session of one driver they end
with it.
"""

from __future__ import annotations

import os

from oxiray import _native

_DEFAULT_NAMESPACE = "default"
# Longer values are kept in parts of this length.
_PART = 64 * 1024
_PARTS_OF = "\0parts of "
_LABEL = b"\0oxiray-parts:"
# So often a value is replaced while it is read, at most.
_MOST_TRIES = 100


def _internal_kv_initialized() -> bool:
    return _native.is_running()


def _internal_kv_get(key: str | bytes, *, namespace: str | bytes | None = None) -> bytes | None:
    """The value of a key, or None."""
    for _ in range(_MOST_TRIES):
        value = _ask("get", key, None, False, namespace)[0]
        if value is None or not value.startswith(_LABEL):
            return value
        name, count = _label(value)
        parts = [
            _ask("get", _part(name, at), None, False, _beside(namespace))[0] for at in range(count)
        ]
        whole = [part for part in parts if part is not None]
        if len(whole) == count:
            return b"".join(whole)
    raise RuntimeError(f"the value of {key!r} is replaced faster than it can be read")


def _internal_kv_exists(key: str | bytes, *, namespace: str | bytes | None = None) -> bool:
    """Whether a key has a value."""
    return _ask("get", key, None, False, namespace)[0] is not None


def _internal_kv_put(
    key: str | bytes,
    value: str | bytes,
    overwrite: bool = True,
    *,
    namespace: str | bytes | None = None,
) -> bool:
    """Sets a key; whether it existed. One that must not be overwritten keeps its value."""
    before = _ask("get", key, None, False, namespace)[0]
    if before is not None and not overwrite:
        return True
    kept = _kept(_bytes("value", value), namespace)
    _, count, _ = _ask("put", key, kept, overwrite, namespace)
    _forget_parts(before if count else kept, namespace)
    return before is not None or count == 0


def _internal_kv_del(
    key: str | bytes, *, del_by_prefix: bool = False, namespace: str | bytes | None = None
) -> int:
    """Removes a key, or all that begin with it; how many there were."""
    keys = _internal_kv_list(key, namespace=namespace) if del_by_prefix else [_bytes("key", key)]
    removed = 0
    for one in keys:
        value = _ask("get", one, None, False, namespace)[0]
        removed += _ask("delete", one, None, False, namespace)[1]
        _forget_parts(value, namespace)
    return removed


def _internal_kv_list(prefix: str | bytes, *, namespace: str | bytes | None = None) -> list[bytes]:
    """The keys that begin with `prefix`."""
    _, count, keys = _ask("list", prefix, None, False, namespace)
    if len(keys) < count:
        raise ValueError(f"{count} keys begin with {prefix!r}, too many; use a longer prefix")
    return keys


def _kept(value: bytes, namespace: str | bytes | None) -> bytes:
    """What is kept under the key: the value, or the label of its parts, which are there then."""
    if len(value) <= _PART and not value.startswith(_LABEL):
        return value
    name = os.urandom(16).hex()
    count = -(-len(value) // _PART)
    for at in range(count):
        part = value[at * _PART : (at + 1) * _PART]
        _ask("put", _part(name, at), part, True, _beside(namespace))
    return _LABEL + f"{name}:{count}".encode()


def _forget_parts(value: bytes | None, namespace: str | bytes | None) -> None:
    if value is not None and value.startswith(_LABEL):
        name, _ = _label(value)
        _ask("delete", name, None, True, _beside(namespace))


def _label(value: bytes) -> tuple[str, int]:
    name, count = value.removeprefix(_LABEL).decode().split(":")
    return name, int(count)


def _part(name: str, at: int) -> str:
    return f"{name}:{at:08}"


def _beside(namespace: str | bytes | None) -> str:
    if isinstance(namespace, bytes):
        namespace = namespace.decode()
    return _PARTS_OF + (_DEFAULT_NAMESPACE if namespace is None else namespace)


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
