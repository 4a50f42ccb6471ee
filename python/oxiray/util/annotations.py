"""Marks of how stable a name is, as packages written for Ray put them on names of their own."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any

__all__ = ["AnnotationType", "Deprecated", "DeveloperAPI", "PublicAPI", "RayDeprecationWarning"]


class AnnotationType(Enum):
    """What is promised about a name."""

    PUBLIC_API = "PublicAPI"
    DEVELOPER_API = "DeveloperAPI"
    DEPRECATED = "Deprecated"
    UNKNOWN = "Unknown"


class RayDeprecationWarning(DeprecationWarning):
    """A name that will go was used. Unlike its base it is shown by default."""


if not any(entry[2] is RayDeprecationWarning for entry in warnings.filters):
    warnings.filterwarnings("default", category=RayDeprecationWarning)


def PublicAPI(*args: Any, **kwargs: Any) -> Any:
    """Marks a public function or class: `@PublicAPI`, or with `stability=` and `api_group=`."""
    if _is_bare(args, kwargs):
        return PublicAPI()(args[0])
    stability = _option("PublicAPI", args, kwargs, stability="stable", api_group="Others")
    if stability["stability"] not in ("stable", "beta", "alpha"):
        raise ValueError(
            f"stability must be 'stable', 'beta' or 'alpha', not {stability['stability']!r}"
        )

    def mark(obj: Any) -> Any:
        note = ""
        if stability["stability"] != "stable":
            note = f"PublicAPI ({stability['stability']}): may change before it is stable."
        return _marked(obj, AnnotationType.PUBLIC_API, note)

    return mark


def DeveloperAPI(*args: Any, **kwargs: Any) -> Any:
    """Marks what is for those who extend a library, and may change with a minor version."""
    if _is_bare(args, kwargs):
        return DeveloperAPI()(args[0])
    _option("DeveloperAPI", args, kwargs)
    note = "DeveloperAPI: may change with a minor version."
    return lambda obj: _marked(obj, AnnotationType.DEVELOPER_API, note)


def Deprecated(*args: Any, **kwargs: Any) -> Any:
    """Marks what will go. With `message=` it says why, with `warning=True` every use warns."""
    if _is_bare(args, kwargs):
        return Deprecated()(args[0])
    default = "It may go in a later version."
    options = _option("Deprecated", args, kwargs, message=default, warning=False)

    def mark(obj: Any) -> Any:
        marked = _marked(obj, AnnotationType.DEPRECATED, f"Deprecated: {options['message']}")
        if not options["warning"]:
            return marked
        if inspect.isclass(obj):
            obj.__init__ = _warning(obj.__init__, obj.__name__, options["message"])  # type: ignore[method-assign]
            return marked
        return _warning(marked, obj.__name__, options["message"])

    return mark


def _is_bare(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return len(args) == 1 and not kwargs and callable(args[0])


def _option(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], **defaults: Any) -> Any:
    unknown = sorted(set(kwargs) - set(defaults))
    if args or unknown:
        known = ", ".join(defaults) or "no arguments"
        raise TypeError(f"{name} takes only {known}: got {args or unknown}")
    return {**defaults, **kwargs}


def _marked(obj: Any, kind: AnnotationType, note: str) -> Any:
    if note:
        obj.__doc__ = f"{inspect.cleandoc(obj.__doc__ or '')}\n\n{note}".strip()
    obj._annotated = obj.__name__
    obj._annotated_type = kind
    return obj


def _warning(function: Callable[..., Any], name: str, message: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def warn_and_call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"{name} is deprecated. {message}", RayDeprecationWarning, stacklevel=2)
        return function(*args, **kwargs)

    return warn_and_call
