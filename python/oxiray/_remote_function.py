"""`@remote` on functions: what `f` becomes, and how it is shipped to workers.

`f.remote` is a native object, made at its first use and kept in the instance: a call runs no Python
frame of ours.
"""

from __future__ import annotations

import sys

from . import _native, _options, _parameters, _strategy
from ._generic import Generic, P, Ref

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .dag import FunctionNode

# Larger functions are nearly always a captured data set, which belongs into an argument.
MAX_PAYLOAD = 95 * 1024 * 1024
# And those that are larger than this are said once.
_LARGE_PAYLOAD = 10 * 1024 * 1024

# inspect.CO_*
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


class RemoteFunction(Generic[P, Ref]):
    """A function whose calls run in workers: `f.remote(...)` submits one and returns its ref."""

    remote: _native.RemoteCall[P, Ref]  # made by __getattr__

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        shipped: _Shipped | None = None,
    ) -> None:
        _refuse_unsupported(function, options)
        if options.get("num_gpus") and options.get("max_calls") is None:
            # Libraries keep memory of the GPU until their process ends.
            options = {**options, "max_calls": 1}
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
        from . import _session

        options = self._options
        if _session.is_local:  # not kept: it is over with the session
            from ._local_mode import LocalCall

            count = options.get("num_returns")
            count = default_returns(self._function) if count is None else count
            return LocalCall(self._function, self._shipped.name, count)
        if _session.is_traced:  # not kept either
            from ._tracing import TracedCall

            name, text = self._shipped.name, _parameters.written(self._function)
            bind = None if text is None else _parameters.Binder(name, text)
            name = f"{getattr(self._function, '__module__', '')}.{name}"
            return TracedCall(self._native_call(is_checked=False), bind, name, "function")
        call = self.__dict__["remote"] = self._native_call(is_checked=True)
        return call

    def _native_call(self, *, is_checked: bool) -> _native.RemoteCall[P, Ref]:
        """`is_checked`: arguments that the function does not take are refused at the call."""
        options = self._options
        needs = _options.task_resources(options)
        num_returns, max_retries = options.get("num_returns"), options.get("max_retries")
        parameters = _parameters.written(self._function) if is_checked else None
        return _native.RemoteCall(
            self._shipped.payload,
            options.get("name") or None,
            self._shipped.name,
            default_returns(self._function) if num_returns is None else num_returns,
            needs,
            3 if max_retries is None else max_retries,
            _parameters.arity(parameters),
            _parameters.Binder(self._shipped.name, parameters or ""),
            ahead=options.get("_generator_backpressure_num_objects") or 0,
            strategy=_strategy.encode(options, (needs,), self._shipped.name),
            captured=_strategy.is_captured(options),
            priority=options.get("priority") or 0,
            environment=own_environment(options),
            recorded=options.get("enable_task_events", True),
        )

    def options(self, **options: Any) -> RemoteFunction[P, Ref]:
        """The same function with other options."""
        if "max_calls" in options:
            raise ValueError(
                "Setting 'max_calls' is not supported in '.options()'. It belongs to the function, "
                "in @remote(max_calls=...)"
            )
        merged = {**self._options, **_options.check("task", options)}
        same = all(merged.get(name) == self._options.get(name) for name in _Shipped.OPTIONS)
        return RemoteFunction(self._function, merged, self._shipped if same else None)

    def _remote(
        self, args: Any = None, kwargs: dict[str, Any] | None = None, **options: Any
    ) -> Any:
        """An older way to call with options, which programs still use."""
        call = self.options(**options) if options else self
        return call.remote(*(args or ()), **(kwargs or {}))

    def bind(self, *args: Any, **kwargs: Any) -> FunctionNode:
        """A node of a graph: this call, to be made when the graph is executed (`ray.dag`)."""
        from .dag import FunctionNode

        return FunctionNode(self._function, args, kwargs, self._options)

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


def own_environment(options: dict[str, Any]) -> Callable[[str], str] | None:
    if not options.get("runtime_env"):
        return None
    from . import _environment

    return _environment.own(options)


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
            self._payload = dump_definition(parts, self.function, "remote function", self.name)
            self._session = _session.number
        return self._payload


def dump_definition(parts: object, definition: object, what: str, name: str) -> bytes:
    """`parts` pickled by value; errors name the function or class and what it captured."""
    import cloudpickle

    try:
        payload: bytes = cloudpickle.dumps(parts, protocol=5)
    except Exception as error:
        from ._unpicklable import explain
        from .exceptions import OufOfBandObjectRefSerializationException

        if isinstance(error, OufOfBandObjectRefSerializationException):
            raise  # It says what to do.

        raise explain(f"the {what} {name}", definition, error, name) from error
    if "tensorflow" in sys.modules:
        from . import _tensorflow_mode

        payload = _tensorflow_mode.carry(payload)
    if _LARGE_PAYLOAD < len(payload) <= MAX_PAYLOAD:
        import warnings

        warnings.warn(
            f"The {what} {name} is very large ({len(payload) >> 20} MiB), and every worker that "
            "runs it gets a copy. It probably captures a large value: pass that as an argument, "
            "after storing it once with put().",
            stacklevel=2,
        )
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(
            f"The {what} {name} is too large to ship to workers "
            f"({len(payload) >> 20} MiB, the "
            f"limit is {MAX_PAYLOAD >> 20} MiB). It probably captures a large value: pass that as "
            "an argument, after storing it once with put()."
        )
    return payload


def _refuse_unsupported(function: Callable[..., Any], options: dict[str, Any]) -> None:
    flags = _flags(function)
    name = getattr(function, "__name__", "?")
    if flags & _COROUTINE:
        raise ValueError(
            f"'async def' should not be used for remote functions: wrap the call in {name} with "
            "asyncio.run()."
        )
    refuse_stream(function, options.get("num_returns"), name)


def _flags(function: Any) -> int:
    while hasattr(function, "func") and not hasattr(function, "__code__"):
        function = function.func  # functools.partial
    return getattr(getattr(function, "__code__", None), "co_flags", 0)


def default_returns(function: Any) -> int | str:
    """What a function or method returns that does not say: what a generator yields is a stream."""
    return "streaming" if _flags(function) & (_GENERATOR | _ASYNC_GENERATOR) else 1


def refuse_stream(function: Any, num_returns: object, name: str) -> None:
    """Refuses a stream of what yields nothing, as far as that is seen."""
    if not isinstance(num_returns, str) or not hasattr(function, "__code__"):
        return
    if default_returns(function) != "streaming":
        raise ValueError(
            f"num_returns='{num_returns}' can only be used with generator functions, and {name} "
            "yields nothing: leave it out, or let the function yield its values."
        )
