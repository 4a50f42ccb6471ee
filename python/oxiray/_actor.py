"""Actors: the decorated class, the handle, and the handle's methods.

An actor lives as long as anyone holds its native `ActorRef`. A handle's methods hold the ref, never
the handle: no reference cycle may keep an actor alive until the garbage collector comes by.
"""

from __future__ import annotations

from . import _concurrency, _named_actors, _native, _options, _parameters, _session, _strategy
from ._generic import Generic, P, R, T
from ._remote_function import default_returns, dump_definition, own_environment, refuse_stream

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, Concatenate, NoReturn, Protocol, overload

    from ._ids import ActorID
    from .dag import ClassMethodNode, ClassNode

    # Each method's returns, and its own max_task_retries, enable_task_events, concurrency_group and
    # how far it may yield ahead of its reader, if it has them.
    Methods = dict[str, Any]

    class RemoteMethod(Generic[P, R]):
        """What a method with `@method` is to type checkers: called in its class, as it is; called
        by a handle, as `remote`."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        def options(self, **options: Any) -> RemoteMethod[P, R]: ...
        def bind(self, *args: Any, **kwargs: Any) -> ClassMethodNode: ...

        remote: _native.RemoteCall[P, _native.ObjectRef[R]]

    class _MethodDecorator(Protocol):
        @overload
        def __call__(
            self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /
        ) -> RemoteMethod[P, R]: ...
        @overload
        def __call__(self, method: Callable[Concatenate[Any, P], R], /) -> RemoteMethod[P, R]: ...


# What every actor answers to beside its own methods; see `_worker.find_method`.
_EVERY_ACTOR: Methods = {
    "__ray_terminate__": (1, None, None, None, None, ""),
    "__ray_ready__": (1, None, None, None, None, ""),
    "__ray_call__": (1, None, None, None, None, None),
}


class ActorClassInheritanceException(TypeError):
    """A class was derived from an actor class instead of from the plain class."""


if TYPE_CHECKING:
    from typing import TypeAlias

    # As in Ray: whose methods are marked with `@method` are known with their types.
    ActorProxy: TypeAlias = "ActorHandle[T] | type[T]"

if TYPE_CHECKING:

    @overload
    def method(
        method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /
    ) -> RemoteMethod[P, R]: ...
    @overload
    def method(method: Callable[Concatenate[Any, P], R], /) -> RemoteMethod[P, R]: ...
    @overload
    def method(**options: Any) -> _MethodDecorator: ...


def method(*args: Any, **options: Any) -> Any:
    """Sets options of an actor's method: `@method(num_returns=2)`. Bare, it sets none, and lets
    type checkers know the method by its handle."""
    if len(args) == 1 and not options and callable(args[0]):
        return args[0]
    if args or not options:
        raise TypeError("method is used with keyword options, as in '@method(num_returns=2)'")
    checked = _options.check("method", options)

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        refuse_stream(function, checked.get("num_returns"), function.__name__)
        function.__ray_method_options__ = checked  # type: ignore[attr-defined]
        return function

    return mark


class ActorClass(Generic[T]):
    """A class whose instances are actors: `A.remote(...)` starts one and returns its handle."""

    def __init__(
        self, cls: type[T], options: dict[str, Any], shipped: _ShippedClass | None = None
    ) -> None:
        self.__ray_actor_class__ = cls
        self._options = options
        self._shipped = shipped or _ShippedClass(cls)
        self._placement, self._held = _options.actor_resources(options)
        needs = self._held, self._placement
        self._strategy = _strategy.encode(options, needs, cls.__name__)
        self.__name__ = cls.__name__
        self.__qualname__ = cls.__qualname__
        self.__module__ = cls.__module__
        self.__doc__ = cls.__doc__

    def remote(self, *args: Any, **kwargs: Any) -> ActorProxy[T]:
        """Starts an actor; its constructor runs in a worker of its own."""
        import pickle

        shipped, options = self._shipped, self._options
        shipped.check_arguments(args, kwargs)
        if _session.is_local:
            from ._local_mode import start_actor

            return start_actor(self.__ray_actor_class__, options, args, kwargs)
        class_name = self.__ray_actor_class__.__name__
        retries = options.get("max_task_retries") or 0
        recorded = options.get("enable_task_events", True)
        calling = _concurrency.calling(self.__ray_actor_class__, options)
        shipped.check_groups(calling)
        about = class_name, shipped.methods, retries, recorded, calling.parts()
        name = options.get("name")
        if name is None:
            _refuse_without_name(options)
        elif options.get("get_if_exists"):
            existing = _named_actors.find(name, options.get("namespace"))
            if existing is not None:
                return existing
        definition = shipped.payload(_concurrency.limits(self.__ray_actor_class__, options))
        if _session.is_traced:
            from ._tracing import submitting

            with submitting(f"{class_name}.__init__", "actor") as carried:
                kwargs = {**kwargs, **carried}
        ref = _native.create_actor(
            pickle.dumps((definition, about), 5),
            class_name,
            args,
            kwargs,
            self._placement,
            self._held,
            max_restarts=options.get("max_restarts") or 0,
            detached=(options.get("lifetime") or _default_lifetime()) == "detached",
            named=None if name is None else _named_actors.name_tag(name, options, about),
            strategy=self._strategy,
            captured=_strategy.is_captured(options),
            priority=options.get("priority") or 0,
            environment=own_environment(options),
            recorded=recorded,
        )
        if ref is not None:
            return ActorHandle(ref, *about)
        assert name is not None, "only a name can be taken"
        if options.get("get_if_exists"):  # another was quicker
            existing = _named_actors.find(name, options.get("namespace"))
            return existing if existing is not None else self.remote(*args, **kwargs)
        raise _named_actors.taken(name, options)

    def options(self, **options: Any) -> ActorClass[T]:
        """The same class with other options."""
        if "concurrency_groups" in options:
            raise ValueError(
                "Setting 'concurrency_groups' is not supported in '.options()': they belong to "
                "the class, in @remote(concurrency_groups={...})"
            )
        merged = {**self._options, **_options.check("actor", options)}
        return ActorClass(self.__ray_actor_class__, merged, self._shipped)

    def _remote(
        self, args: Any = None, kwargs: dict[str, Any] | None = None, **options: Any
    ) -> Any:
        """An older way to call with options, which programs still use."""
        call = self.options(**options) if options else self
        return call.remote(*(args or ()), **(kwargs or {}))

    def bind(self, *args: Any, **kwargs: Any) -> ClassNode:
        """A node of a graph: an actor, to be started when the graph is executed (`ray.dag`)."""
        from .dag import ClassNode

        return ClassNode(self.__ray_actor_class__, args, kwargs, self._options)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        name = self.__ray_actor_class__.__name__
        raise TypeError(
            f"Actors cannot be instantiated directly. Instead of '{name}()', use '{name}.remote()'."
        )

    def __mro_entries__(self, bases: tuple[Any, ...]) -> NoReturn:
        raise ActorClassInheritanceException(
            "Inheriting from actor classes is not currently supported. Derive from the plain class "
            f"{self.__ray_actor_class__.__name__!r}, and decorate the derived class with @remote."
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        cls: type[T] = self.__ray_actor_class__
        value: Any = getattr(cls, name, None)
        kind = next((type(vars(base)[name]) for base in cls.__mro__ if name in vars(base)), None)
        if kind is staticmethod:
            # Not the function itself: found through the module, it would be pickled as a name, and
            # every worker would have to import that module.
            return lambda *args, **kwargs: value(*args, **kwargs)
        # Constants of the class are within reach too. Its methods need an instance.
        if value is None or (callable(value) and kind is not classmethod):
            hint = f". {name!r} is a method: call it by a handle" if callable(value) else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._shipped.methods} - {"__init__"})

    @property
    def __ray_metadata__(self) -> _Metadata:
        """What programs read of an actor's class, though it is private in Ray."""
        return _Metadata(self.__ray_actor_class__)

    def __repr__(self) -> str:
        return f"<oxiray.ActorClass {self.__ray_actor_class__.__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return ActorClass, (self.__ray_actor_class__, self._options)


class _Metadata:
    """Of an actor's class."""

    def __init__(self, cls: type) -> None:
        self.modified_class = cls
        self.class_name = cls.__name__


class _ShippedClass:
    """An actor's class pickled for workers, once a session, and its methods' return counts."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.methods = _methods_of(cls)
        text = _constructor_parameters(cls)
        self._constructor = None if text is None else _parameters.Binder(cls.__name__, text)
        self._session = -1
        self._payloads: dict[tuple[int, ...], bytes] = {}

    def payload(self, limits: list[int]) -> bytes:
        """With how many calls may run at once in each lane, and whether on event loops."""
        from . import _session

        if self._session != _session.number:
            self._session = _session.number
            self._payloads.clear()
        payload = self._payloads.get(tuple(limits))
        if payload is None:
            parts = self.cls, limits, _concurrency.is_async(self.cls)
            payload = dump_definition(parts, self.cls, "actor", self.cls.__name__)
            self._payloads[tuple(limits)] = payload
        return payload

    def check_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raises what the constructor itself would raise for a wrong call."""
        if self._constructor is not None:
            self._constructor(*args, **kwargs)

    def check_groups(self, calling: _concurrency.Calling) -> None:
        """Refuses methods in groups that the class does not have."""
        for name, (*_, group, _ahead, _takes) in self.methods.items():
            calling.lane(group, f"{self.cls.__name__}.{name}")


def owner_of_put(owner: object) -> _native.ActorRef:
    """The actor that `put(_owner=)` names."""
    if not isinstance(owner, ActorHandle):
        raise TypeError(f"put(_owner=) must be an actor's handle, not {owner!r}")
    return owner._ray_ref


class ActorHandle(Generic[T]):
    """A reference to an actor; `handle.method.remote(...)` calls it."""

    def __init__(
        self,
        ref: _native.ActorRef,
        class_name: str,
        methods: Methods,
        max_task_retries: int,
        recorded: bool,
        calling: tuple[list[str], str, int | None],  # of `Calling.parts`
    ) -> None:
        self._ray_ref = ref
        self._ray_class_name = class_name
        self._ray_methods = methods
        self._ray_max_task_retries = max_task_retries
        self._ray_recorded = recorded
        self._ray_calling = _concurrency.Calling(*calling)

    def __getattr__(self, name: str) -> ActorMethod:
        methods = self.__dict__.get("_ray_methods", {})
        found = methods.get(name, _EVERY_ACTOR.get(name))
        if found is None:
            owner = self.__dict__.get("_ray_class_name", "?")
            hint = _options.did_you_mean(name, methods)
            if not hint and not name.startswith("_"):
                hint = " What else its object has is in the actor's process: a method can return it"
            raise AttributeError(f"The actor {owner!r} has no method {name!r}.{hint}")
        num_returns, retries, recorded, group, ahead, parameters = found
        if retries is None:
            retries = self._ray_max_task_retries
        if recorded is None:
            recorded = self._ray_recorded
        function = f"{self._ray_class_name}.{name}"
        made = ActorMethod(
            self._ray_ref,
            name,
            function,
            None,
            num_returns,
            retries,
            recorded,
            group,
            ahead,
            self._ray_calling,
            parameters=parameters,
        )
        self.__dict__[name] = made
        return made

    @property
    def _actor_id(self) -> ActorID:
        from ._ids import ActorID

        return ActorID(self._ray_ref.binary())

    _ray_actor_id = _actor_id

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._ray_methods})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActorHandle) and self._ray_ref == other._ray_ref

    def __hash__(self) -> int:
        return hash(self._ray_ref)

    def __repr__(self) -> str:
        return f"Actor({self._ray_class_name}, {self._ray_ref.hex()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ActorHandle, (
            self._ray_ref,
            self._ray_class_name,
            self._ray_methods,
            self._ray_max_task_retries,
            self._ray_recorded,
            self._ray_calling.parts(),
        )


class ActorMethod:
    """One method of one actor."""

    __slots__ = (
        "_ahead",
        "_calling",
        "_function",
        "_given",
        "_group",
        "_name",
        "_num_returns",
        "_parameters",
        "_recorded",
        "_ref",
        "_retries",
        "_retry_exceptions",
        "remote",
    )

    def __init__(
        self,
        ref: _native.ActorRef,
        name: str,
        function: str,  # the method, with its class
        given: str | None,  # another name for the timeline to call it
        num_returns: int | str,
        max_task_retries: int,
        recorded: bool,
        group: str | None,
        ahead: int | None,
        calling: _concurrency.Calling,
        retry_exceptions: _options.Retried | None = None,  # the method's own, unless it is given
        parameters: str | None = None,  # of `_parameters.written`
    ) -> None:
        self._ref = ref
        self._name = name
        self._function = function
        self._given = given
        self._num_returns = num_returns
        self._retries = max_task_retries
        self._recorded = recorded
        self._group = group
        self._ahead = ahead
        self._calling = calling
        self._retry_exceptions = retry_exceptions
        self._parameters = parameters
        bind = None if parameters is None else _parameters.Binder(function, parameters)
        is_traced = _session.is_traced and not name.startswith("__ray_")
        self.remote: Any = ref.method(
            name,
            function,
            given,
            num_returns,
            max_task_retries,
            recorded,
            ahead=ahead or 0,
            lane=calling.lane(group, function),
            order=calling.order,
            max_pending=calling.max_pending,
            variant=self._variant(),
            arity=None if is_traced else _parameters.arity(parameters),
            bind=None if is_traced else bind,
        )
        if is_traced:
            from ._tracing import TracedCall

            self.remote = TracedCall(self.remote, bind, function, "actor")

    def _variant(self) -> bytes | None:
        """The method with options for its worker, as `_worker.load_function` has it."""
        retried = self._retry_exceptions
        if retried is None:
            return None
        parts = self._name, self._function, 0, retried
        return dump_definition(parts, retried, "option retry_exceptions of", self._function)

    def options(self, **options: Any) -> ActorMethod:
        """The same method with other options."""
        checked = _options.check("method", options)
        num_returns, retries = checked.get("num_returns"), checked.get("max_task_retries")
        return ActorMethod(
            self._ref,
            self._name,
            self._function,
            checked.get("name") or self._given,
            self._num_returns if num_returns is None else num_returns,
            self._retries if retries is None else retries,
            checked.get("enable_task_events", self._recorded),
            checked.get("concurrency_group") or self._group,
            checked.get("_generator_backpressure_num_objects", self._ahead),
            self._calling,
            checked.get("retry_exceptions", self._retry_exceptions),
            self._parameters,
        )

    def _remote(
        self, args: Any = None, kwargs: dict[str, Any] | None = None, **options: Any
    ) -> Any:
        """An older way to call with options, which programs still use."""
        call = self.options(**options) if options else self
        return call.remote(*(args or ()), **(kwargs or {}))

    def bind(self, *args: Any, **kwargs: Any) -> ClassMethodNode | tuple[ClassMethodNode, ...]:
        """A node of a graph: this call, to be made when the graph is executed (`ray.dag`); or one
        for each of its several returns."""
        from .dag.class_node import bind_method

        return bind_method(self, self._name, args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"Actor methods cannot be called directly. Instead of running 'object.{self._name}()', "
            f"try 'object.{self._name}.remote()'."
        )

    def __repr__(self) -> str:
        return f"<oxiray.ActorMethod {self._name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return ActorMethod, (
            self._ref,
            self._name,
            self._function,
            self._given,
            self._num_returns,
            self._retries,
            self._recorded,
            self._group,
            self._ahead,
            self._calling,
            self._retry_exceptions,
            self._parameters,
        )


def _default_lifetime() -> str:
    """Of actors that do not say: what the job says (`job_config.JobConfig`)."""
    settings = _native.context()["settings"]
    if not settings:
        return "non_detached"
    import json

    return str(json.loads(settings).get("actor_lifetime", "non_detached"))


def _refuse_without_name(options: dict[str, Any]) -> None:
    if options.get("get_if_exists"):
        raise ValueError("get_if_exists=True needs a name: give the option name=, too")
    if options.get("namespace") is not None:
        raise ValueError("namespace= is where a name is valid: give the option name=, too")


def kill(actor: ActorProxy[Any], *, no_restart: bool = True) -> None:
    """Ends an actor at once, without letting it finish what it does."""
    if not isinstance(actor, ActorHandle):
        raise ValueError(f"kill() takes an actor's handle, not {type(actor)}")
    if _session.is_local:
        from ._local_mode import LocalHandle, kill_here

        if isinstance(actor, LocalHandle):
            kill_here(actor)
            return
    _native.kill_actor(actor._ray_ref, bool(no_restart))


def exit_actor() -> NoReturn:
    """Ends the actor that calls it, after what it was called for before."""
    if not (_native.is_running() and _native.context()["actor_id"]):
        raise TypeError("exit_actor() can only be called inside an actor's method")
    import sys

    from ._errors import ActorExit

    # On a loop it may be called by a task that the user started: of what that raises, nobody hears.
    if "asyncio" in sys.modules and sys.modules["asyncio"]._get_running_loop() is not None:
        _native.exit_actor()

    raise ActorExit


def _constructor_parameters(cls: Any) -> str | None:
    """None where a class makes its instances in a way of its own, and says nothing of arguments."""
    if cls.__new__ is not object.__new__ or type(cls).__call__ is not type.__call__:
        return None
    return "" if cls.__init__ is object.__init__ else _parameters.written(cls.__init__, 1)


def _methods_of(cls: type) -> Methods:
    """Every method that callers may use, with its number of returns and its own retries, if any."""
    methods: Methods = {}
    for base in reversed(cls.__mro__):
        if base is object:
            continue
        for name, member in vars(base).items():
            function = getattr(member, "__func__", member)
            if isinstance(function, type) or not callable(function):
                methods.pop(name, None)
                continue
            options = getattr(function, "__ray_method_options__", {})
            num_returns = options.get("num_returns")
            methods[name] = (
                default_returns(function) if num_returns is None else num_returns,
                options.get("max_task_retries"),
                options.get("enable_task_events"),
                options.get("concurrency_group"),
                options.get("_generator_backpressure_num_objects"),
                _parameters.written(function, 0 if isinstance(member, staticmethod) else 1),
            )
    return methods
