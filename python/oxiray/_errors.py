"""Errors on their way between processes: described where they happen, rebuilt where they are got.

The native module calls these three. `describe` never raises: an exception that cannot be pickled
still arrives, as a `RayTaskError` that has its text and traceback but no cause.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _settings

if TYPE_CHECKING:
    from traceback import TracebackException

    from .exceptions import RayTaskError

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Of a node that is alone and has no address.
_LOCAL_IP = "127.0.0.1"


class ActorExit(BaseException):
    """Raised by `exit_actor()`; not an Exception, so that no method swallows it by accident."""


def describe(error: BaseException, name: str) -> tuple[bytes, str, str]:
    """What the getter needs to raise `error`, which the task or method `name` raised here.

    Then for the record: the exception's name and its text.
    """
    kind = type(error).__name__
    try:
        return _describe(error, name)
    except BaseException as fault:
        text = f"{kind} (it could not be described: {type(fault).__name__})"
        parts = (name, text, None, None, os.getpid(), _node_ip(), "")
        return pickle.dumps(parts, protocol=5), kind, text


def _describe(error: BaseException, name: str) -> tuple[bytes, str, str]:
    try:
        text = _remote_traceback(error)
    except BaseException as fault:
        text = f"{type(error).__name__}: (its traceback could not be made: {type(fault).__name__})"
    if "ray" in sys.modules:  # users of the alias know the exceptions by that name
        text = text.replace("\noxiray.exceptions.", "\nray.exceptions.")
    actor_id = _actor_id()
    place = f"pid={os.getpid()}, ip={_node_ip()}"
    if actor_id:
        place += f", actor_id={actor_id}, repr={_actor_repr()}"
    text = f"ray::{name}() ({place})\n{text}{_what_to_do(error)}"
    # A task that fails because a task it called failed passes on the first cause.
    cause = getattr(error, "cause", None) if _is_task_error(error) else error
    parts = (name, text, *_pickled(cause), os.getpid(), _node_ip(), actor_id)
    recorded = text.encode(errors="backslashreplace").decode()
    return pickle.dumps(parts, protocol=5), type(cause or error).__name__, recorded


def _what_to_do(error: BaseException) -> str:
    """A line about what a program meets in a worker that it does not meet at home."""
    if isinstance(error, ModuleNotFoundError):
        places = ", ".join(place for place in sys.path if place)
        return (
            f"\n(This worker looks for modules in {places}. Let the module be in one of them on "
            "every node, or ship it: runtime_env={'py_modules': [...]} or 'working_dir'.)"
        )
    hint = of_read_only(error)
    return f"\n{hint}" if hint else ""


def of_read_only(error: BaseException) -> str:
    """What is said after NumPy's error about an array that cannot be written to."""
    if isinstance(error, ValueError) and str(error).endswith("is read-only"):
        return (
            "(Arrays that were passed or got are read-only views of memory that others read: "
            "copy() gives one to write to.)"
        )
    return ""


def _node_ip() -> str:
    """Where this process's node is reached by the others."""
    from . import _native

    address: str = _native.context()["address"]
    return address.rpartition(":")[0] or _LOCAL_IP


def rebuild(data: bytes, path: str = "") -> BaseException:
    """The exception to raise in the getter; it ran through the tasks of `path`, a line each."""
    return _task_error(data, path).as_instanceof_cause()


def handed_on(cause: BaseException, name: str, text: str) -> BaseException:
    """What the task `name` fails with whose argument failed by `cause`: `text` says which way."""
    from .exceptions import RayTaskError

    return RayTaskError(name, text, cause).as_instanceof_cause()


def unhandled(about: str, message: str, data: bytes) -> str | None:
    """What is said of a task's error that went with its last reference and that nobody has got."""
    if _settings.is_on("OXIRAY_IGNORE_UNHANDLED_ERRORS"):
        return None
    text = _task_error(data, message).traceback_str if about == "exception" else message
    return f"Unhandled error (suppress with RAY_IGNORE_UNHANDLED_ERRORS=1): {text}"


def engine_error(exception: str, about: str, message: str, data: bytes) -> BaseException:
    """What a failure of the engine is raised as; `crates/wire/src/frame/failure.rs` has them all.

    `exception` names it, `about` says what `data` is.
    """
    from . import exceptions

    kind = getattr(exceptions, exception)
    return _MADE_BY[about](kind, message, data)  # type: ignore[no-any-return]


# Each as Ray's constructors want it.
_MADE_BY: dict[str, Callable[[Any, str, bytes], Any]] = {
    "nothing": lambda kind, message, _: kind(message),
    "exception": lambda kind, _, data: kind(_task_error(data, "")),
    "task": lambda kind, message, data: kind(data.hex() or None, message),
    "actor": lambda kind, message, data: kind(message, data or None),
    "object": lambda kind, message, data: kind(data.hex(), None, message),
}


def _task_error(data: bytes, path: str) -> RayTaskError:
    from .exceptions import RayTaskError

    try:
        name, text, whole, parts, pid, ip, actor_id = pickle.loads(data)
    except Exception:  # the native side sends no description where it could make none
        return RayTaskError("unknown", "An exception that could not be described", None)
    for waiting in path.splitlines():
        name = waiting
        who = "others" if waiting == "..." else f"ray::{waiting}()"
        verb = "were" if waiting == "..." else "was"
        text = f"{who} {verb} not run, because an argument could not be computed:\n{text}"
    return RayTaskError(
        name, text, _unpickled(whole, parts), pid=pid, ip=ip, actor_id=actor_id or None
    )


def _pickled(cause: BaseException | None) -> tuple[bytes | None, bytes | None]:
    """The exception as it pickles itself, and its parts for when that fails or cannot be undone.

    The second is for exceptions that carry something unpicklable, which is left out, and for the
    many classes whose `__init__` does not take its own `args`: they pickle, but do not load.
    """
    if cause is None:
        return None, None
    import cloudpickle

    def attempt(value: object) -> bytes | None:
        try:
            return cloudpickle.dumps(value, protocol=5)  # type: ignore[no-any-return]
        except BaseException:
            return None

    whole = attempt(cause)
    try:
        state, args = vars(cause), cause.args
    except Exception:  # properties of the user's class
        return whole, None
    if whole is None:
        state = {key: value for key, value in state.items() if attempt(value) is not None}
    return whole, attempt((type(cause), args, state))


def _unpickled(whole: bytes | None, parts: bytes | None) -> BaseException | None:
    try:
        if whole is not None:
            error = pickle.loads(whole)
            if isinstance(error, BaseException):
                return error
    except Exception:
        pass
    try:
        if parts is not None:
            kind, args, state = pickle.loads(parts)
            error = BaseException.__new__(kind)
            error.args = args
            error.__dict__.update(state)
            return error  # type: ignore[no-any-return]
    except Exception:
        pass
    return None


def _remote_traceback(error: BaseException) -> str:
    from traceback import TracebackException

    report = TracebackException.from_exception(error, compact=True)
    _trim(report)
    lines = [line for line in report.format() if line != "Traceback (most recent call last):\n"]
    return "".join(lines).rstrip("\n")


def _trim(report: TracebackException | None) -> None:
    """Drops the engine's own frames, also in the exceptions it holds or was raised from."""
    while report is not None:
        frames = [frame for frame in report.stack if not frame.filename.startswith(_PACKAGE)]
        del report.stack[:]
        report.stack.extend(frames)
        # Groups of exceptions came with Python 3.11.
        for member in getattr(report, "exceptions", None) or ():
            _trim(member)
        _trim(report.__cause__)
        report = report.__context__


def _is_task_error(error: BaseException) -> bool:
    from .exceptions import RayTaskError

    return isinstance(error, RayTaskError)


def _actor_repr() -> str:
    from . import _worker

    try:
        return _worker.shortened(repr(_worker.own_instance))
    except Exception as fault:  # of the user's own __repr__
        return f"({type(fault).__name__})"


def _actor_id() -> str:
    try:
        from . import _native

        actor_id = _native.context()["actor_id"]
        return actor_id.hex() if actor_id else ""
    except Exception:
        return ""
