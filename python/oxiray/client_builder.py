"""Ray Client, a driver outside the cluster: names that say what is here instead.

A driver here is always on a machine of the cluster: `oxiray start --address=...` makes any machine
part of it, with no CPUs if it is to run nothing.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["ClientBuilder", "ClientContext", "client"]

_INSTEAD = (
    "Ray Client, by which a driver outside the cluster uses it, is not here: make this machine "
    "part of the cluster with `oxiray start --address=HOST:PORT --token=... --num-cpus=0`, and "
    'call init(address="auto") (docs/compatibility.md)'
)


class ClientContext:
    """What connecting by Ray Client would return."""

    def __init__(
        self,
        dashboard_url: str | None,
        python_version: str,
        ray_version: str,
        ray_commit: str,
        _num_clients: int,
        _context_to_restore: Any,
    ) -> None:
        refuse()


class ClientBuilder:
    """Describes a connection by Ray Client."""

    def __init__(self, address: str | None) -> None:
        self.address = address
        self._options: dict[str, Any] = {}

    def env(self, env: dict[str, Any]) -> ClientBuilder:
        self._options["runtime_env"] = env
        return self

    def namespace(self, namespace: str) -> ClientBuilder:
        self._options["namespace"] = namespace
        return self

    def connect(self) -> NoReturn:
        refuse()


def client(address: str | None = None, _deprecation_warn_enabled: bool = True) -> ClientBuilder:
    """A connection by Ray Client, which cannot be made."""
    return ClientBuilder(address)


def refuse() -> NoReturn:
    raise NotImplementedError(_INSTEAD)
