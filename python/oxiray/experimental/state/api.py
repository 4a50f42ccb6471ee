"""`ray.util.state` by its older name."""

from __future__ import annotations

from ...util.state import *  # noqa: F403
