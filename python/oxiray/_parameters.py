"""What arguments a function or method takes, in a text that travels with handles of actors.

`a, /, b=, *rest, c=, **more`: `=` stands for any default. So a wrong call is refused where it
is made, also by who does not have the class.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from typing import Any

    # Positional arguments taken, least and most.
    Arity = tuple[int, int | None]

_VARIADIC, _KEYWORDS = 0x04, 0x08  # inspect.CO_*


def written(function: Any, skipped: int = 0) -> str | None:
    """The parameters of a function but for the first `skipped`; None: it does not say."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__") or code.co_argcount < skipped:
        return None
    names = code.co_varnames
    placed, named = code.co_argcount, code.co_kwonlyargcount
    first_default = placed - len(getattr(function, "__defaults__", None) or ())
    defaults = getattr(function, "__kwdefaults__", None) or {}
    parts = [
        f"{name}=" if at >= first_default else name
        for at, name in enumerate(names[:placed])
        if at >= skipped
    ]
    only_placed = code.co_posonlyargcount - skipped
    if only_placed > 0:
        parts.insert(only_placed, "/")
    after = placed + named
    if code.co_flags & _VARIADIC:
        parts.append(f"*{names[after]}")
        after += 1
    elif named:
        parts.append("*")
    parts += [f"{name}=" if name in defaults else name for name in names[placed:][:named]]
    if code.co_flags & _KEYWORDS:
        parts.append(f"**{names[after]}")
    return ", ".join(parts)


def arity(text: str | None) -> Arity | None:
    """Of calls with positional arguments alone; None: nothing is known."""
    if text is None:
        return None
    least = most = 0
    is_named = False
    for part in filter(None, text.split(", ")):
        if part.startswith("**"):
            break
        if part == "/":
            continue
        if part.startswith("*"):
            is_named = True
            if part != "*":
                most = sys.maxsize
        elif is_named:
            if not part.endswith("="):
                return sys.maxsize, None  # it must be named: every call is looked at
        else:
            most += most < sys.maxsize
            least += not part.endswith("=")
    return least, None if most == sys.maxsize else most


class Binder:
    """Raises the TypeError that a wrong call of the function itself would raise."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text
        self._signature: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        if self._signature is None:
            self._signature = _signature(self._text)
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"{self._name}() cannot be called like this: {error}. Its parameters are "
                f"({self._text.replace('=', '=...')})"
            ) from None


def _signature(text: str) -> Any:
    from inspect import Parameter, Signature

    parameters: list[Parameter] = []
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for part in filter(None, text.split(", ")):
        name = part.strip("*=")
        if part == "/":
            parameters = [one.replace(kind=Parameter.POSITIONAL_ONLY) for one in parameters]
        elif part.startswith("**"):
            parameters.append(Parameter(name, Parameter.VAR_KEYWORD))
        elif part.startswith("*"):
            kind = Parameter.KEYWORD_ONLY
            if name:
                parameters.append(Parameter(name, Parameter.VAR_POSITIONAL))
        else:
            default = None if part.endswith("=") else Parameter.empty
            parameters.append(Parameter(name, kind, default=default))
    return Signature(parameters)
