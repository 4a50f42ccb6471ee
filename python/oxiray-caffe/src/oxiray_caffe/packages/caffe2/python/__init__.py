"""`workspace`: named blobs that a whole session shares. `model_helper`: a net's description."""

from __future__ import annotations

from . import model_helper, workspace

__all__ = ["model_helper", "workspace"]
