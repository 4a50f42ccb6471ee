"""The functions of this package, by the module that Ray has them in."""

from __future__ import annotations

from . import *  # noqa: F403
from . import __all__ as __all__
