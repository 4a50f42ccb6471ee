"""What makes classes generic to type checkers, without importing `typing` when a program starts."""

from __future__ import annotations

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from typing import Any, Generic

    # With defaults, so that `ActorHandle` alone means one of any class.
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)  # the arguments of a function or method
    R = TypeVar("R", default=Any)  # what it returns
    Ref = TypeVar("Ref", covariant=True, default=Any)  # what its `remote` returns
    T = TypeVar("T", default=Any)  # a class whose instances are actors
else:
    P = R = Ref = T = None

    class Generic:
        """A base whose subclasses can be subscripted, as `ActorHandle[T]` is in annotations."""

        __class_getitem__ = classmethod(type(list[int]))


__all__ = ["Generic", "P", "R", "Ref", "T"]
