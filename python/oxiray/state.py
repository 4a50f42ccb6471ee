"""`ray.state`, as older programs import it."""

from __future__ import annotations

from ._private.state import *  # noqa: F403
from ._private.state import __all__

__all__ = [*__all__]
