"""Ray Data is not here. One name is, for packages that import it and can do without: Modin.

It says so when it is called. Any other name is not there, as the whole library is not.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["from_pandas_refs"]

_WHY = "Ray Data is a library above Core, and not part of this (docs/compatibility.md)"


def from_pandas_refs(dfs: Any, **options: Any) -> NoReturn:
    raise NotImplementedError(f"from_pandas_refs() makes a Dataset: {_WHY}")


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {_WHY}")
