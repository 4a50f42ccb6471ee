"""Results as they come: of refs that are there, and of a function over many items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._native import ObjectRef, get, wait

__all__ = ["as_completed", "map_unordered"]


def as_completed(
    refs: Sequence[ObjectRef], *, chunk_size: int = 10, yield_obj_refs: bool = False, **kwargs: Any
) -> Iterator[Any]:
    """Yields the values of `refs` as they are ready, `chunk_size` of them at a time.

    With `yield_obj_refs` the refs themselves. Other keywords are those of `wait`.
    """
    _check(chunk_size, kwargs)
    pending = list(refs)
    while pending:
        ready, pending = wait(pending, num_returns=min(chunk_size, len(pending)), **kwargs)
        yield from ready if yield_obj_refs else get(ready)


def map_unordered(
    fn: Any,
    items: Iterable[Any],
    *,
    backpressure_size: int | None = 100,
    chunk_size: int = 10,
    yield_obj_refs: bool = False,
    **kwargs: Any,
) -> Iterator[Any]:
    """Yields the results of the remote function `fn` on each item, as they are ready.

    At most `backpressure_size` tasks are under way; None: all at once. Other arguments are those of
    `as_completed`.
    """
    if backpressure_size is not None and backpressure_size <= 0:
        raise ValueError(f"backpressure_size must be positive or None, not {backpressure_size!r}")
    _check(chunk_size, kwargs)
    pending: list[ObjectRef] = []
    for item in items:
        while backpressure_size is not None and len(pending) >= backpressure_size:
            count = min(chunk_size, len(pending))
            ready, pending = wait(pending, num_returns=count, **kwargs)
            yield from ready if yield_obj_refs else get(ready)
        pending.append(fn.remote(item))
    yield from as_completed(pending, chunk_size=chunk_size, yield_obj_refs=yield_obj_refs, **kwargs)


def _check(chunk_size: int, options: dict[str, Any]) -> None:
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size!r}")
    if "num_returns" in options:
        raise ValueError("num_returns has no meaning here: use chunk_size")
