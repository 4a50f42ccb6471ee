"""Actors: the decorated class, the handle, and the handle's methods.

An actor lives as long as anyone holds its native `ActorRef`. A handle's methods hold the ref, never
the handle: no reference cycle may keep an actor alive until the garbage collector comes by.
"""

from __future__ import annotations

from . import _concurrency, _named_actors, _native, _options, _strategy
from ._remote_function import dump_definition

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from ._ids import ActorID

    # Each method's number of returns, and its own max_task_retries, enable_task_events and
    # concurrency_group if it has them.
    Methods = dict[str, Any]

# What every actor answers to beside its own methods; see `_worker.find_method`.
_EVERY_ACTOR: Methods = {
    "__ray_terminate__": (1, None, None, None),
    "__ray_ready__": (1, None, None, None),
    "__ray_call__": (1, None, None, None),
}


class ActorClassInheritanceException(TypeError):
    """A class was derived from an actor class instead of from the plain class."""


def method(*args: Any, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Sets options of an actor's method: `@method(num_returns=2)`."""
    if args or not options:
        raise TypeError("method is used with keyword options, as in '@method(num_returns=2)'")
    checked = _options.check("method", options)

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__ray_method_options__ = checked  # type: ignore[attr-defined]
        return function

    return mark


class ActorClass:
    """A class whose instances are actors: `A.remote(...)` starts one and returns its handle."""

    def __init__(
        self, cls: type, options: dict[str, Any], shipped: _ShippedClass | None = None
    ) -> None:
        self.__ray_actor_class__ = cls
        self._options = options
        self._shipped = shipped or _ShippedClass(cls)
        self._placement, self._held = _options.actor_resources(options)
        self._strategy = _strategy.encode(options)
        self.__name__ = cls.__name__
        self.__qualname__ = cls.__qualname__
        self.__module__ = cls.__module__
        self.__doc__ = cls.__doc__

    def remote(self, *args: Any, **kwargs: Any) -> ActorHandle:
        """Starts an actor; its constructor runs in a worker of its own."""
        shipped, options = self._shipped, self._options
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
        ref = _native.create_actor(
            shipped.payload(_concurrency.limits(self.__ray_actor_class__, options)),
            class_name,
            args,
            kwargs,
            self._placement,
            self._held,
            max_restarts=options.get("max_restarts") or 0,
            detached=options.get("lifetime") == "detached",
            named=None if name is None else _named_actors.name_tag(name, options, about),
            strategy=self._strategy,
            priority=options.get("priority") or 0,
            recorded=recorded,
        )
        if ref is not None:
            return ActorHandle(ref, *about)
        assert name is not None, "only a name can be taken"
        if options.get("get_if_exists"):  # another was quicker
            existing = _named_actors.find(name, options.get("namespace"))
            return existing if existing is not None else self.remote(*args, **kwargs)
        raise _named_actors.taken(name, options)

    def options(self, **options: Any) -> ActorClass:
        """The same class with other options."""
        if "concurrency_groups" in options:
            raise ValueError(
                "Setting 'concurrency_groups' is not supported in '.options()': they belong to "
                "the class, in @remote(concurrency_groups={...})"
            )
        merged = {**self._options, **_options.check("actor", options)}
        return ActorClass(self.__ray_actor_class__, merged, self._shipped)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        name = self.__ray_actor_class__.__name__
        raise TypeError(
            f"Actors cannot be instantiated directly. Instead of '{name}()', use '{name}.remote()'."
        )

    def __mro_entries__(self, bases: tuple[Any, ...]) -> NoReturn:
        raise ActorClassInheritanceException(
            f"Inheriting from the actor class '{self.__ray_actor_class__.__name__}' is not "
            "supported. Derive from the plain class, and decorate the derived class with @remote."
        )

    def __getattr__(self, name: str) -> Any:
        # Constants of the class stay within reach. Its functions do not: found through the module,
        # they would be pickled as names, and every worker would have to import that module.
        value = None if name.startswith("_") else getattr(self.__ray_actor_class__, name, None)
        if value is None or callable(value):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return value

    def __repr__(self) -> str:
        return f"<oxiray.ActorClass {self.__ray_actor_class__.__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return ActorClass, (self.__ray_actor_class__, self._options)


class _ShippedClass:
    """An actor's class pickled for workers, once a session, and its methods' return counts."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.methods = _methods_of(cls)
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
            payload = dump_definition(parts, self.cls, "class", self.cls.__name__)
            self._payloads[tuple(limits)] = payload
        return payload

    def check_groups(self, calling: _concurrency.Calling) -> None:
        """Refuses methods in groups that the class does not have."""
        for name, (*_, group) in self.methods.items():
            calling.lane(group, f"{self.cls.__name__}.{name}")


def owner_of_put(owner: object) -> _native.ActorRef:
    """The actor that `put(_owner=)` names."""
    if not isinstance(owner, ActorHandle):
        raise TypeError(f"put(_owner=) must be an actor's handle, not {owner!r}")
    return owner._ray_ref


class ActorHandle:
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
            raise AttributeError(f"The actor {owner!r} has no method {name!r}")
        num_returns, retries, recorded, group = found
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
            self._ray_calling,
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
        "_calling",
        "_function",
        "_given",
        "_group",
        "_name",
        "_num_returns",
        "_recorded",
        "_ref",
        "_retries",
        "remote",
    )

    def __init__(
        self,
        ref: _native.ActorRef,
        name: str,
        function: str,  # the method, with its class
        given: str | None,  # another name for the timeline to call it
        num_returns: int,
        max_task_retries: int,
        recorded: bool,
        group: str | None,
        calling: _concurrency.Calling,
    ) -> None:
        self._ref = ref
        self._name = name
        self._function = function
        self._given = given
        self._num_returns = num_returns
        self._retries = max_task_retries
        self._recorded = recorded
        self._group = group
        self._calling = calling
        self.remote = ref.method(
            name,
            function,
            given,
            num_returns,
            max_task_retries,
            recorded,
            lane=calling.lane(group, function),
            order=calling.order,
            max_pending=calling.max_pending,
        )

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
            self._calling,
        )

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
            self._calling,
        )


def _refuse_without_name(options: dict[str, Any]) -> None:
    if options.get("get_if_exists"):
        raise ValueError("get_if_exists=True needs a name: give the option name=, too")
    if options.get("namespace") is not None:
        raise ValueError("namespace= is where a name is valid: give the option name=, too")


def kill(actor: ActorHandle, *, no_restart: bool = True) -> None:
    """Ends an actor at once, without letting it finish what it does."""
    if not isinstance(actor, ActorHandle):
        raise ValueError(f"kill() takes an actor's handle, not {type(actor)}")
    _native.kill_actor(actor._ray_ref, bool(no_restart))


def exit_actor() -> NoReturn:
    """Ends the actor that calls it, after what it was called for before."""
    if not (_native.is_running() and _native.context()["actor_id"]):
        raise TypeError("exit_actor() can only be called inside an actor's method")
    from ._errors import ActorExit

    raise ActorExit


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
                1 if num_returns is None else num_returns,
                options.get("max_task_retries"),
                options.get("enable_task_events"),
                options.get("concurrency_group"),
            )
    return methods
