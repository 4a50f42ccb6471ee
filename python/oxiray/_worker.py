"""What the native module asks of Python in a worker: definitions, methods, split returns."""

from __future__ import annotations

import contextlib
import pickle
import sys
from collections.abc import Callable, Generator, Iterable
from types import AsyncGeneratorType, FunctionType, GeneratorType, MethodType
from typing import Any

from . import _devices, _imported, _native, _threads, _title

set_devices = _devices.expose
set_threads = _threads.give
tell_imports = _imported.tell

# It is before every line.
_LONGEST_NAME = 80

LoadedFunction = tuple[Callable[..., Any], str, int, bool | tuple[type[BaseException], ...]]


def load_function(payload: bytes, actor: object) -> LoadedFunction:
    """The function, its name, how many calls a worker serves, and which exceptions to retry.

    A method with options of its caller's has its name in place of the function."""
    _imported.begin_work()
    function, name, max_calls, retried = pickle.loads(payload)
    if actor is None:
        _title.set_title(name)
    if isinstance(function, str):
        function, _ = find_method(actor, function)
    elif _tracing is not None:
        function = _tracing.traced(function, f"{function.__module__}.{name}", "function")
    return function, name, max_calls, retried


# The module of that name, if the calls of this process have spans.
_tracing: Any = None

# Of the actor that this process is: what its handles are made of, and itself; its class, until its
# constructor has returned.
own_about: tuple[Any, ...] = ()
own_instance: object = None


def load_class(payload: bytes) -> tuple[type, list[int], bool]:
    """An actor's class, how many calls may run at once in each lane, and whether on event loops."""
    global own_about, own_instance
    _imported.begin_work()
    definition, own_about = pickle.loads(payload)
    _title.set_title(own_about[0])
    loaded: tuple[type, list[int], bool] = pickle.loads(definition)
    own_instance = loaded[0]
    if _tracing is None:
        return loaded
    made = _tracing.traced(loaded[0], f"{own_about[0]}.__init__", "actor")
    return made, *loaded[1:]  # type: ignore[return-value]


def shown_name(actor: object) -> str | None:
    """What an actor's output is shown with, if its class says so by `__repr__`."""
    global own_instance
    own_instance = actor
    if type(actor).__repr__ is object.__repr__:
        return None
    return shortened(repr(actor))


def shortened(text: str) -> str:
    if len(text) > _LONGEST_NAME:
        text = text[: _LONGEST_NAME - 1] + "…"
    return "".join(letter if letter.isprintable() else " " for letter in text)


# Where the modules of this worker's runtime environment are.
environment_paths: list[str] = []


def join_job(sys_path: list[str], settings: str) -> None:
    """Finds modules where its environment says, then where the driver does, then where it did; logs
    as the driver says."""
    sys.path[:] = list(dict.fromkeys([*environment_paths, *sys_path, *sys.path]))
    _imported.give_way_to(sys.path)
    apply_settings(settings)


def apply_settings(settings: str) -> None:
    """What the driver says of its workers (`job_config.settings_of`)."""
    if not settings:
        return
    import json

    told = json.loads(settings)
    if told.get("logging") is not None:
        from ._logging_config import LoggingConfig

        LoggingConfig.from_dict(told["logging"])._apply()
    if told.get("tracing") is not None:
        global _tracing
        from . import _tracing

        _tracing.begin(told["tracing"])


def listen_for_cancel(number: int) -> None:
    """Lets this signal stop the task that it is meant for, as Ctrl-C would."""
    import signal

    def stop(*_: object) -> None:
        if _native.is_to_stop():
            raise KeyboardInterrupt

    signal.signal(number, stop)


def tell(text: str) -> None:
    """Says something of the engine's own where this worker prints."""
    if sys.stderr is not None:
        print(f"(oxiray) {text}", file=sys.stderr, flush=True)


def find_method(instance: object, name: str) -> tuple[Callable[..., Any], Any]:
    """The method `name` of an actor's instance, and which exceptions to retry; every actor has two
    of our own."""
    if name == "__ray_ready__":
        return lambda: True, False
    if name == "__ray_call__":
        return lambda function, *args, **kwargs: function(instance, *args, **kwargs), False
    method = getattr(instance, name)
    if name in getattr(instance, "__dict__", {}) and hasattr(type(instance), name):
        # An attribute has the method's name: callers mean the method.
        method = getattr(type(instance), name)
        method = MethodType(method, instance) if isinstance(method, FunctionType) else method
    options = getattr(method, "__ray_method_options__", {})
    if _tracing is not None:
        method = _tracing.traced(method, f"{own_about[0]}.{name}", "actor")
    return method, options.get("retry_exceptions", False)


# So long may an actor take to clean up, as with Ray; then its process ends all the same.
_LONGEST_CLEANUP_S = 30


def end_actor(instance: object) -> None:
    """Lets an actor clean up that ends in good order, if its class says how."""
    clean_up = getattr(type(instance), "__ray_shutdown__", None)
    if clean_up is None:
        return
    import os
    import threading
    import traceback

    limit = threading.Timer(_LONGEST_CLEANUP_S, os._exit, (1,))
    limit.daemon = True
    limit.start()
    try:
        clean_up(instance)
    except BaseException:
        tell(f"__ray_shutdown__ raised an exception:\n{traceback.format_exc().rstrip()}")
    finally:
        limit.cancel()


def explain_unpicklable(result: Any, name: str) -> None:
    """Says of a value that cannot be pickled what its function should have done, if we know."""
    if type(result).__name__ == "coroutine":
        result.close()
        raise TypeError(
            f"{name} returned a coroutine that was never awaited: make it 'async def' and await "
            "the coroutine in it, or run it with asyncio.run()"
        )
    if isinstance(result, AsyncGeneratorType):
        raise _only_streams(name, 1)


def _only_streams(name: str, num_returns: int) -> TypeError:
    return TypeError(
        f"{name} is an async generator and was declared with num_returns={num_returns}: what it "
        "yields can only be read as a stream. Leave num_returns out, or make it a plain generator."
    )


def as_generator(made: Any, kind: str) -> Generator[Any, None, None]:
    """The generator that a call which yields has made."""
    if isinstance(made, GeneratorType):
        return made
    if isinstance(made, AsyncGeneratorType):
        return _in_own_loop(made)
    raise no_generator(made, kind)


def no_generator(made: object, kind: str) -> ValueError:
    return ValueError(
        f'Functions with @ray.remote(num_returns="{kind}" must return a generator, not a '
        f"{type(made).__name__}"
    )


def _in_own_loop(made: AsyncGeneratorType[Any, None]) -> Generator[Any, None, None]:
    """What an async generator makes, on an event loop of its own."""
    if sys.version_info >= (3, 11):
        from asyncio import Runner
    else:
        from ._loop_runner import LoopRunner as Runner

    with Runner() as runner:
        try:
            while True:
                try:
                    item = runner.run(anext(made))  # type: ignore[arg-type]
                except StopAsyncIteration:
                    return
                yield item
        finally:
            runner.run(made.aclose())


def gathered(ids: list[bytes], owner: int) -> Any:
    """What a task returns that was to yield everything before it returns."""
    from ._generators import DynamicObjectRefGenerator

    return DynamicObjectRefGenerator(_native.rebuild_ref(item, owner) for item in ids)


def unpack_returns(result: Any, num_returns: int, name: str) -> Iterable[Any]:
    """The values of a task that was declared to return several; those of a generator as it makes
    them."""
    if num_returns == 0:
        return []
    if isinstance(result, GeneratorType):
        return _as_made(result, num_returns)
    if isinstance(result, AsyncGeneratorType):
        raise _only_streams(name, num_returns)
    try:
        values = list(result)
    except TypeError:
        raise TypeError(
            f"{name} was declared with num_returns={num_returns} but returned a single "
            f"{type(result).__name__}, which is not iterable"
        ) from None
    if len(values) != num_returns:
        raise _miscounted(len(values), num_returns)
    return values


def _as_made(made: Generator[Any, None, None], num_returns: int) -> Generator[Any, None, None]:
    """Runs it to its end; one that yields more is stopped where it does."""
    count = 0
    with contextlib.closing(made):
        for value in made:
            if count == num_returns:
                raise ValueError(f"Task returned more than num_returns={num_returns} objects.")
            count += 1
            yield value
    if count < num_returns:
        raise _miscounted(count, num_returns)


def _miscounted(count: int, num_returns: int) -> ValueError:
    return ValueError(f"Task returned {count} objects, but num_returns={num_returns}.")


def tell_unheard(error: BaseException, name: str, num_returns: int) -> None:
    """Says what a generator raised after all its values were made: no reference is left for it."""
    import traceback

    text = "".join(traceback.format_exception(error)).rstrip()
    tell(
        f"Unhandled error: {name} raised an exception after all of its num_returns={num_returns} "
        f"values had been made, which are kept:\n{text}"
    )
