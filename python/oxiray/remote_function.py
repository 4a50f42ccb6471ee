"""Public face of remote functions, under Ray's module name."""

from ._remote_function import RemoteFunction

__all__ = ["RemoteFunction"]
