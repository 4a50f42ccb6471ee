"""What a program may do before and after the tasks of a Dask graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from ..._native import wait

HOOKS = (
    "ray_presubmit",
    "ray_postsubmit",
    "ray_pretask",
    "ray_posttask",
    "ray_postsubmit_all",
    "ray_finish",
)

Hooks = dict[str, list[Callable[..., Any]]]


class RayDaskCallback:
    """Functions to be called while a graph runs; used as a context manager, by all graphs in it.

    A subclass defines some of `_ray_presubmit(task, key, deps)`, whose result, unless None, is
    taken instead of running the task; `_ray_postsubmit(task, key, deps, object_ref)`;
    `_ray_pretask(key, object_refs)` and `_ray_posttask(key, result, pre_state)`, which run in the
    worker; `_ray_postsubmit_all(object_refs, dsk)`; `_ray_finish(result)`. Or they are arguments.
    """

    active: ClassVar[set[RayDaskCallback]] = set()

    def __init__(self, **hooks: Callable[..., Any] | None) -> None:
        unknown = sorted(set(hooks) - set(HOOKS))
        if unknown:
            raise TypeError(f"RayDaskCallback has no {unknown[0]!r}: there are {', '.join(HOOKS)}")
        for name, hook in hooks.items():
            if hook is not None:
                setattr(self, f"_{name}", hook)

    def __enter__(self) -> RayDaskCallback:
        RayDaskCallback.active.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        RayDaskCallback.active.discard(self)

    def register(self) -> None:
        """Lets all graphs use it, from now on."""
        RayDaskCallback.active.add(self)

    def unregister(self) -> None:
        RayDaskCallback.active.discard(self)


def unpack_ray_callbacks(cbs: Iterable[RayDaskCallback] | RayDaskCallback | None) -> Hooks:
    """The functions of these callbacks, by what they are for."""
    if isinstance(cbs, RayDaskCallback):
        cbs = [cbs]
    found: Hooks = {name: [] for name in HOOKS}
    for callback in cbs or ():
        for name in HOOKS:
            hook = getattr(callback, f"_{name}", None)
            if hook is not None:
                found[name].append(hook)
    return found


@contextmanager
def local_ray_callbacks(
    callbacks: Iterable[RayDaskCallback] | RayDaskCallback | None = None,
) -> Iterator[list[RayDaskCallback]]:
    """The callbacks of one graph: these, and those that are registered."""
    own = [callbacks] if isinstance(callbacks, RayDaskCallback) else list(callbacks or ())
    yield [*own, *(one for one in RayDaskCallback.active if one not in own)]


class ProgressBarCallback(RayDaskCallback):
    """Says on the terminal how many tasks are done."""

    def _ray_postsubmit_all(self, object_refs: list[Any], dsk: Any) -> None:
        left, total = list(object_refs), len(object_refs)
        while left:
            _, left = wait(left, num_returns=1)
            sys.stderr.write(f"\r{total - len(left)} of {total} tasks")
            sys.stderr.flush()
        sys.stderr.write("\n")
