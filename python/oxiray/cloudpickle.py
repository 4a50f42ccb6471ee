"""The cloudpickle by which functions and classes travel, under the name that Ray has for it."""

from __future__ import annotations

from cloudpickle import *  # noqa: F403
from cloudpickle import CloudPickler, __version__, dump, dumps, load, loads
from cloudpickle.cloudpickle import DEFAULT_PROTOCOL

Pickler = CloudPickler

__all__ = [
    "DEFAULT_PROTOCOL",
    "CloudPickler",
    "Pickler",
    "__version__",
    "dump",
    "dumps",
    "load",
    "loads",
]
