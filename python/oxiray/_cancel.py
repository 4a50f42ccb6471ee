"""`cancel`: what a task is to return is not wanted any more."""

from __future__ import annotations

from typing import Any

from . import _native


def cancel(ray_waitable: Any, *, force: bool = False, recursive: bool = True) -> None:
    """Cancels the task that is to return this.

    One that has not begun does not begin. One that runs gets a `KeyboardInterrupt`; with `force`
    its process ends. Of calls of actors that have begun, coroutines are cancelled; others are only
    told: `is_canceled()` of their runtime context is true from then on, and what they return is let
    go. `get` raises `TaskCancelledError`. What has ended is left alone. With `recursive`, what the
    task has submitted is cancelled, too.
    """
    if isinstance(ray_waitable, _native.ObjectRefGenerator):
        ray_waitable = ray_waitable.completed()
    if not isinstance(ray_waitable, _native.ObjectRef):
        raise TypeError(
            "ray.cancel() takes the ObjectRef or ObjectRefGenerator that a task or an actor's "
            f"method returned, not {type(ray_waitable).__name__}"
        )
    for name, value in (("force", force), ("recursive", recursive)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False, not {value!r}")
    _native.cancel(ray_waitable, force, recursive)
