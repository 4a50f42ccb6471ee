"""The cloudpickle by which functions and classes travel, under the name that Ray has for it."""

from __future__ import annotations

from typing import IO, Any

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
    "dump_debug",
    "dumps",
    "dumps_debug",
    "load",
    "loads",
]


def dump_debug(obj: Any, file: IO[bytes], *args: Any, **kwargs: Any) -> None:
    """As `dump`; the error says which part of the object cannot be pickled."""
    file.write(dumps_debug(obj, *args, **kwargs))


def dumps_debug(obj: Any, *args: Any, **kwargs: Any) -> bytes:
    """As `dumps`; the error says which part of the object cannot be pickled."""
    from pickle import PicklingError

    try:
        said: bytes = dumps(obj, *args, **kwargs)
        return said
    except (TypeError, PicklingError) as error:
        raise type(error)(f"{error}\n{_why(obj)}") from error


def _why(obj: Any) -> str:
    from io import StringIO

    from .util.check_serialize import inspect_serializability

    said = StringIO()
    inspect_serializability(obj, print_file=said)
    return said.getvalue()
