"""How rows, summaries and logs are asked for: the options of a `StateApiClient`."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

from ._list import DEFAULT_LIMIT

DEFAULT_RPC_TIMEOUT = 30
_Filters = list[tuple[str, str, Any]]


def _no_filters() -> _Filters:
    return []


def _check_timeout(timeout: float) -> None:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ValueError(f"timeout must be a number of seconds above 0, not {timeout!r}")


def _check_filters(filters: Any) -> _Filters:
    checked = list(filters or ())
    for each in checked:
        if not isinstance(each, (tuple, list)) or len(each) != 3:
            raise ValueError(f'a filter is a triple such as ("state", "=", "ALIVE"), not {each!r}')
        if each[1] not in ("=", "!="):
            raise ValueError(
                f"Unsupported filter predicate {each[1]} is given. Available predicates: =, !=."
            )
    return checked


@dataclasses.dataclass
class ListApiOptions:
    """Which rows are wanted. Drivers are no tasks here, and nothing is left to a server: the last
    two have no effect."""

    limit: int | None = DEFAULT_LIMIT
    timeout: int = DEFAULT_RPC_TIMEOUT
    detail: bool = False
    filters: _Filters | None = dataclasses.field(default_factory=_no_filters)
    exclude_driver: bool = True
    server_timeout_multiplier: float = 0.8

    def __post_init__(self) -> None:
        _check_timeout(self.timeout)
        self.filters = _check_filters(self.filters)

    def has_conflicting_filters(self) -> bool:
        """Whether a column is asked to have two values at once, which no row has."""
        wanted: dict[str, Any] = {}
        for key, predicate, value in self.filters or ():
            if predicate == "=" and wanted.setdefault(key, value) != value:
                warnings.warn(
                    f"No row has {key}={wanted[key]!r} and {key}={value!r}: there will be none.",
                    stacklevel=2,
                )
                return True
        return False


@dataclasses.dataclass
class GetApiOptions:
    """How one row is asked for."""

    timeout: int = DEFAULT_RPC_TIMEOUT
    server_timeout_multiplier: float = 0.8

    def __post_init__(self) -> None:
        _check_timeout(self.timeout)


@dataclasses.dataclass
class SummaryApiOptions:
    """Of which rows there is to be a summary."""

    timeout: int = DEFAULT_RPC_TIMEOUT
    filters: _Filters | None = dataclasses.field(default_factory=_no_filters)
    summary_by: str | None = None

    def __post_init__(self) -> None:
        _check_timeout(self.timeout)
        self.filters = _check_filters(self.filters)
