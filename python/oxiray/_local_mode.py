"""`init(local_mode=True)`: tasks and actors run in the driver, one after the other, for debugging.

A session is there all the same: it keeps the values, and raises the errors where they are got. A
call runs when it is made, so a breakpoint in it is in the driver, and so is what it prints.
"""

from __future__ import annotations

import inspect
from typing import Any

from . import _native, _options
from ._actor import _EVERY_ACTOR, ActorHandle, _methods_of
from ._native import ObjectRef, get, put
from ._remote_function import RemoteFunction

WARNING = (
    "init(local_mode=True) runs tasks and actors in this process, one after the other: nothing is "
    "parallel, and resources, retries and restarts have no effect. Use it to debug, then leave it "
    "out"
)

# Those with names, by namespace and name.
_actors: dict[tuple[str, str], LocalHandle] = {}


def forget() -> None:
    """Another session begins."""
    _actors.clear()


def find(name: str, namespace: str | None) -> LocalHandle | None:
    """A named actor of this process."""
    return _actors.get((namespace or _native.context()["namespace"], name))


class LocalCall:
    """What stands at `f.remote` meanwhile."""

    def __init__(self, function: Any, name: str, num_returns: int | str) -> None:
        self._function, self._name, self._num_returns = function, name, num_returns

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return run(self._function, self._name, self._num_returns, args, kwargs)


def run(
    function: Any, name: str, num_returns: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Calls a function as a worker would; the references of what it returned or raised."""
    if not isinstance(num_returns, int):
        raise NotImplementedError(
            f"{name} is a generator, which local_mode cannot run: leave it out"
        )
    try:
        result = function(*map(_value, args), **{key: _value(v) for key, v in kwargs.items()})
        if inspect.iscoroutine(result):
            import asyncio

            result = asyncio.run(result)
        if num_returns == 1:
            return put(result)
        from ._worker import unpack_returns

        refs = [put(one) for one in unpack_returns(result, num_returns, name)]
        return refs or None
    except Exception as error:
        refs = _failed(error, name, max(num_returns, 1))
        return refs if num_returns > 1 else refs[0]


def _value(argument: Any) -> Any:
    return get(argument) if isinstance(argument, ObjectRef) else argument


def _failed(error: Exception, name: str, count: int) -> list[ObjectRef[Any]]:
    """References by which `get` raises an error: those of a task that raises it."""

    def fail() -> None:
        raise error

    made: Any = RemoteFunction(fail, {"max_retries": 0, "num_cpus": 0, "name": name})
    call = _native.RemoteCall(
        made._shipped.payload,
        name,
        name,
        1,
        _options.task_resources(made._options),
        0,
        None,
        lambda: None,
        ahead=0,
        strategy=None,
        captured=False,
        priority=0,
        environment=None,
        recorded=False,
    )
    return [call() for _ in range(count)]


class LocalMethod:
    """A method of an actor of this process."""

    def __init__(self, handle: LocalHandle, name: str, num_returns: int | str) -> None:
        self._handle, self._name, self._num_returns = handle, name, num_returns

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        return self._handle._ray_run(self._name, self._num_returns, args, kwargs)

    def options(self, **options: Any) -> LocalMethod:
        checked = _options.check("method", options)
        num_returns = checked.get("num_returns")
        return LocalMethod(
            self._handle, self._name, self._num_returns if num_returns is None else num_returns
        )


class LocalHandle(ActorHandle[Any]):
    """A handle of an actor of this process."""

    def __init__(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._ray_class_name = cls.__name__
        self._ray_methods = _methods_of(cls)
        self._ray_instance: Any = None
        self._ray_failure: Any = None
        self._ray_is_dead = False
        try:
            given = {key: _value(value) for key, value in kwargs.items()}
            self._ray_instance = cls(*map(_value, args), **given)
        except Exception as error:
            self._ray_failure = error

    def __getattr__(self, name: str) -> Any:
        methods = self.__dict__.get("_ray_methods", {})
        found = methods.get(name, _EVERY_ACTOR.get(name))
        if found is None:
            hint = _options.did_you_mean(name, methods)
            raise AttributeError(
                f"The actor {self._ray_class_name!r} has no method {name!r}.{hint}"
            )
        return LocalMethod(self, name, found[0])

    def _ray_run(
        self, name: str, num_returns: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        from ._worker import find_method

        function = f"{self._ray_class_name}.{name}"

        def call(*args: Any, **kwargs: Any) -> Any:
            from .exceptions import ActorDiedError

            if self._ray_failure is not None:
                raise self._ray_failure
            if self._ray_is_dead:
                raise ActorDiedError(f"The actor {self._ray_class_name} was killed")
            return find_method(self._ray_instance, name)[0](*args, **kwargs)

        return run(call, function, num_returns, args, kwargs)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"Actor({self._ray_class_name}, in this process)"

    def __reduce__(self) -> Any:
        raise TypeError("An actor of local_mode cannot be pickled: it is in this process alone")


def start_actor(
    cls: type, options: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> LocalHandle:
    """`A.remote(...)`, here."""
    name = options.get("name")
    if name is not None:
        namespace = options.get("namespace") or _native.context()["namespace"]
        existing = _actors.get((namespace, name))
        if existing is not None and options.get("get_if_exists"):
            return existing
        if existing is not None:
            from ._named_actors import taken

            raise taken(name, options)
    made = LocalHandle(cls, args, kwargs)
    if name is not None:
        _actors[namespace, name] = made
    return made


def kill_here(handle: LocalHandle) -> None:
    handle._ray_is_dead = True
    for key in [key for key, one in _actors.items() if one is handle]:
        del _actors[key]
