"""The decorator `remote`, on functions and classes, bare or with options."""

from __future__ import annotations

from . import _options
from ._actor import ActorClass, ActorMethod
from ._generic import P, R, T
from ._remote_function import RemoteFunction

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, overload

    from ._native import ObjectRef

    class _Decorator(Protocol):
        """Of options that leave the number of returns at one."""

        @overload
        def __call__(self, target: type[T], /) -> ActorClass[T]: ...  # type: ignore[overload-overlap]
        @overload
        def __call__(self, target: Callable[P, R], /) -> RemoteFunction[P, ObjectRef[R]]: ...

    class _DecoratorOfMany(Protocol):
        """What `remote` returns depends on a number, which no type knows."""

        def __call__(self, target: Callable[P, Any], /) -> RemoteFunction[P, Any]: ...


_USAGE = (
    "remote is used bare, as in '@remote', or with keyword options, as in "
    "'@remote(num_returns=2, resources={\"TPU\": 1})'"
)


class WrongUse(TypeError, AssertionError):
    """A `TypeError`; and what Ray raises instead, for who catches that."""


if TYPE_CHECKING:

    @overload
    def remote(target: type[T], /) -> ActorClass[T]: ...  # type: ignore[overload-overlap]
    @overload
    def remote(target: Callable[P, R], /) -> RemoteFunction[P, ObjectRef[R]]: ...
    @overload
    def remote(*, num_returns: int | str, **options: Any) -> _DecoratorOfMany: ...
    @overload
    def remote(**options: Any) -> _Decorator: ...


def remote(*args: Any, **options: Any) -> Any:
    """Makes a function's calls, or a class's instances, run in worker processes.

    Use it bare (`@remote`) or with options (`@remote(num_cpus=2)`).
    """
    if len(args) == 1 and not options and callable(args[0]):
        return _make(args[0], {})
    if args:
        raise WrongUse(f"{_USAGE}. It got {args[0]!r}" + (" with options" if options else ""))
    if not options:
        raise WrongUse(f"{_USAGE}. It got empty parentheses")
    _options.check_known(options)
    return lambda target: _make(target, options)


def _make(
    target: Callable[..., Any], options: dict[str, Any]
) -> RemoteFunction[..., Any] | ActorClass[Any]:
    if isinstance(target, (RemoteFunction, ActorClass)):
        raise TypeError(f"{target!r} is remote already; use .options() to change its options")
    if isinstance(target, ActorMethod):
        raise TypeError(f"{target!r} is an actor's method: call it with .remote()")
    if isinstance(target, type):
        return ActorClass(target, _options.check("actor", options))
    if not callable(target):
        raise TypeError(f"remote is applied to a function or a class, not to {target!r}")
    return RemoteFunction(target, _options.check("task", options))
