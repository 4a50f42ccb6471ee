"""Connecting by Ray Client, which is not here: see `client_builder`."""

from __future__ import annotations

from typing import Any, NoReturn

from ..client_builder import refuse


def connect(
    conn_str: str,
    secure: bool = False,
    metadata: list[tuple[str, str]] | None = None,
    connection_retries: int = 3,
    job_config: Any = None,
    namespace: str | None = None,
    *,
    ignore_version: bool = False,
    _credentials: Any = None,
    ray_init_kwargs: dict[str, Any] | None = None,
) -> NoReturn:
    refuse()


def disconnect() -> None:
    """There is never a connection to end."""
