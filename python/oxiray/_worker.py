"""What the native module asks of Python in a worker: definitions, methods, split returns."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

from . import _devices, _native

set_devices = _devices.expose

# It is before every line.
_LONGEST_NAME = 80

LoadedFunction = tuple[Callable[..., Any], str, int, bool | tuple[type[BaseException], ...]]


def load_function(payload: bytes) -> LoadedFunction:
    """The function, its name, how many calls a worker serves, and which exceptions to retry."""
    return pickle.loads(payload)  # type: ignore[no-any-return]


def load_class(payload: bytes) -> tuple[type, list[int], bool]:
    """An actor's class, how many calls may run at once in each lane, and whether on event loops."""
    return pickle.loads(payload)  # type: ignore[no-any-return]


def shown_name(actor: object) -> str | None:
    """What an actor's output is shown with, if its class says so by `__repr__`."""
    if type(actor).__repr__ is object.__repr__:
        return None
    text = repr(actor)
    if len(text) > _LONGEST_NAME:
        text = text[: _LONGEST_NAME - 1] + "…"
    return "".join(letter if letter.isprintable() else " " for letter in text)


def join_job(sys_path: list[str]) -> None:
    """Finds modules where the driver does, and then where this worker did."""
    sys.path[:] = list(dict.fromkeys([*sys_path, *sys.path]))


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


def find_method(instance: object, name: str) -> tuple[Callable[..., Any], bool]:
    """The method `name` of an actor's instance, and which exceptions to retry; every actor has two
    of our own."""
    if name == "__ray_ready__":
        return lambda: True, False
    if name == "__ray_call__":
        return lambda function, *args, **kwargs: function(instance, *args, **kwargs), False
    return getattr(instance, name), False


def refuse_coroutine(result: Any, name: str) -> None:
    """Raises what is wrong with a value that cannot be returned, if it is a coroutine."""
    if type(result).__name__ == "coroutine":
        result.close()
        raise TypeError(
            f"{name} returned a coroutine that was never awaited: make it 'async def' and await "
            "the coroutine in it, or run it with asyncio.run()"
        )


def unpack_returns(result: Any, num_returns: int, name: str) -> list[Any]:
    """The values of a task that was declared to return several."""
    if num_returns == 0:
        return []
    try:
        iterator = iter(result)
    except TypeError:
        raise ValueError(
            f"{name} was declared with num_returns={num_returns} but returned a single "
            f"{type(result).__name__}"
        ) from None
    values = list(iterator)
    if len(values) != num_returns:
        raise ValueError(f"{name} returned {len(values)} objects, but num_returns={num_returns}.")
    return values
