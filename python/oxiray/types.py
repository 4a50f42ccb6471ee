"""The type of references, for annotations."""

from __future__ import annotations

from ._native import ObjectRef

__all__ = ["ObjectRef"]
