"""`@remote` on functions: what `f` becomes, and how it is shipped to workers.

`f.remote` is a native object, made at its first use and kept in the instance: a call runs no Python
frame of ours.
"""

from __future__ import annotations

import sys

from . import _native, _options, _strategy

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

# Larger functions are nearly always a captured data set, which belongs into an argument.
MAX_PAYLOAD = 95 * 1024 * 1024

# inspect.CO_*
_VARIADIC, _GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x04, 0x20, 0x80, 0x200


class RemoteFunction:
    """A function whose calls run in workers: `f.remote(...)` submits one and returns its ref."""

    remote: _native.RemoteCall  # made by __getattr__

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        shipped: _Shipped | None = None,
    ) -> None:
        _refuse_unsupported(function, options)
        self._function = function
        self._options = options
        self._shipped = shipped or _Shipped(function, options)
        for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
            try:
                setattr(self, name, getattr(function, name))
            except AttributeError:
                continue
        self.__wrapped__ = function

    def __getattr__(self, name: str) -> Any:
        if name != "remote" or "_shipped" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        options = self._options
        num_returns, max_retries = options.get("num_returns"), options.get("max_retries")
        call = _native.RemoteCall(
            self._shipped.payload,
            options.get("name") or None,
            self._shipped.name,
            1 if num_returns is None else num_returns,
            _options.task_resources(options),
            3 if max_retries is None else max_retries,
            _arity(self._function),
            _Binder(self._function, self._shipped.name),
            strategy=_strategy.encode(options),
            priority=options.get("priority") or 0,
            recorded=options.get("enable_task_events", True),
        )
        self.__dict__["remote"] = call
        return call

    def options(self, **options: Any) -> RemoteFunction:
        """The same function with other options."""
        merged = {**self._options, **_options.check("task", options)}
        same = all(merged.get(name) == self._options.get(name) for name in _Shipped.OPTIONS)
        return RemoteFunction(self._function, merged, self._shipped if same else None)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        name = f"{getattr(self._function, '__module__', '')}.{self._shipped.name}".lstrip(".")
        raise TypeError(
            f"Remote functions cannot be called directly. Instead of running '{name}()', "
            f"try '{name}.remote()'."
        )

    def __repr__(self) -> str:
        return f"<oxiray.RemoteFunction {self._shipped.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # By the function, not by the native call: closures capture remote functions, and a
        # recursive one captures itself.
        return RemoteFunction, (self._function, self._options)


def _arity(function: Callable[..., Any]) -> tuple[int, int | None] | None:
    """Positional arguments that a function takes, least and most; None: it does not say."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        return None
    needed = set(code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount])
    if needed - set(getattr(function, "__kwdefaults__", None) or {}):
        return sys.maxsize, None  # keyword-only ones without a default: every call is looked at
    least = code.co_argcount - len(getattr(function, "__defaults__", None) or ())
    return least, None if code.co_flags & _VARIADIC else code.co_argcount


class _Binder:
    """Raises the TypeError that such a call of the function itself would raise.

    Apart from `RemoteFunction`, because the native call holds it: a cycle through that would
    never be collected.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        self._signature: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        if self._signature is None:
            import inspect

            self._signature = inspect.signature(self._function)
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}() cannot be called like this: {error}") from None


class _Shipped:
    """A function pickled for workers, once a session however many options it is called with."""

    OPTIONS = ("max_calls", "retry_exceptions")

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self.max_calls = options.get("max_calls") or 0
        self.retry_exceptions = options.get("retry_exceptions") or False
        self._session = -1
        self._payload = b""

    def payload(self) -> bytes:
        from . import _session

        # A new session pickles again: what the function refers to may have changed since.
        if self._session != _session.number:
            parts = (self.function, self.name, self.max_calls, self.retry_exceptions)
            self._payload = dump_definition(parts, self.function, "function", self.name)
            self._session = _session.number
        return self._payload


def dump_definition(parts: object, definition: object, what: str, name: str) -> bytes:
    """`parts` pickled by value; errors name the function or class and what it captured."""
    import cloudpickle

    try:
        payload: bytes = cloudpickle.dumps(parts, protocol=5)
    except Exception as error:
        from ._unpicklable import explain

        raise explain(f"the {what} {name}", definition, error, name) from error
    if "tensorflow" in sys.modules:
        from . import _tensorflow_mode

        payload = _tensorflow_mode.carry(payload)
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(
            f"The {what} {name} is too large to ship to workers ({len(payload) >> 20} MiB, the "
            f"limit is {MAX_PAYLOAD >> 20} MiB). It probably captures a large value: pass that as "
            "an argument, after storing it once with put()."
        )
    return payload


def _refuse_unsupported(function: Callable[..., Any], options: dict[str, Any]) -> None:
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    name = getattr(function, "__name__", "?")
    if flags & (_COROUTINE | _ASYNC_GENERATOR):
        raise ValueError(
            f"'async def' should not be used for remote functions: wrap the call in {name} with "
            "asyncio.run()."
        )
    # With a fixed number of returns, what a generator yields fills them.
    if flags & _GENERATOR and options.get("num_returns") is None:
        raise ValueError(
            f"{name} is a generator: give num_returns=, the number of values it yields. "
            "Streaming generators are not supported yet."
        )
