"""`ray.worker`, as older programs import it."""

from __future__ import annotations

from ._private.worker import *  # noqa: F403
from ._private.worker import __all__, global_worker

__all__ = [*__all__, "global_worker"]
