"""`ray.ray_constants`, as older programs import it."""

from __future__ import annotations

from ._private.ray_constants import *  # noqa: F403
