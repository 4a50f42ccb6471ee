"""joblib on a session's actors: `register_ray()`, then `parallel_config(backend="ray")`."""

from __future__ import annotations

from typing import Any

__all__ = ["register_ray"]


def register_ray() -> None:
    """Makes the backend "ray" known to joblib."""
    try:
        from joblib import register_parallel_backend
    except ImportError as error:
        raise ImportError("register_ray() needs joblib: pip install joblib") from error
    from ._joblib_backend import RayBackend

    register_parallel_backend("ray", RayBackend)


def __getattr__(name: str) -> Any:
    if name == "RayBackend":
        from ._joblib_backend import RayBackend

        return RayBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
