"""The exceptions users catch: Ray's names, hierarchy and constructor arguments.

A task's own exception arrives as an instance of its own class *and* of `RayTaskError`
(`RayTaskError.as_instanceof_cause`): both `except ValueError` and `except RayTaskError` work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Raised by `get`, these would end the program that gets.
_CANNOT_INHERIT = (KeyboardInterrupt, SystemExit)


class RayError(Exception):
    """Everything the engine raises."""

    def to_bytes(self) -> bytes:
        """For another process to read with `from_bytes`; not what Ray's own would read."""
        import traceback

        from .cloudpickle import dumps

        text = "".join(traceback.format_exception(self))
        said: bytes = dumps((dumps(self), text))
        return said

    @staticmethod
    def from_bytes(b: bytes) -> RayError:
        """Of what `to_bytes` gave. Where the class is not known it is an
        `UnserializableException` with the traceback."""
        from .cloudpickle import loads

        pickled, text = loads(b)
        try:
            error: RayError = loads(pickled)
        except Exception:  # whatever the user's class does when it is made again
            return UnserializableException(text)
        return error


class CrossLanguageError(RayError):
    """An error raised in another language."""

    def __init__(self, ray_exception: Any) -> None:
        super().__init__(str(ray_exception))
        self.ray_exception = ray_exception


class TaskCancelledError(RayError):
    """The task was cancelled before it finished."""

    def __init__(self, task_id: Any = None, error_message: str | None = None) -> None:
        self.task_id = task_id
        self.error_message = error_message
        super().__init__(task_id, error_message)

    def __str__(self) -> str:
        what = "This task" if self.task_id is None else f"Task {self.task_id}"
        return f"{what} or its dependency was cancelled. {self.error_message or ''}".rstrip()


class RayTaskError(RayError):
    """An exception raised by a task or an actor's method, with its remote traceback."""

    def __init__(
        self,
        function_name: str,
        traceback_str: str,
        cause: BaseException | None,
        proctitle: str | None = None,
        pid: int | None = None,
        ip: str | None = None,
        actor_repr: str | None = None,
        actor_id: str | None = None,
    ) -> None:
        self.function_name = function_name
        self.traceback_str = traceback_str
        self.cause = cause
        self.proctitle = proctitle or f"ray::{function_name}"
        self.pid = pid
        self.ip = ip
        self.actor_repr = actor_repr
        self._actor_id = actor_id
        # Not super(): in a class that is also the cause's, that would be the user's own __init__.
        Exception.__init__(self, function_name, traceback_str)

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self.proctitle, self.pid, self.ip, self.actor_repr, self._actor_id)
        plain = (self.function_name, self.traceback_str, self.cause, *state)
        return _rebuild_task_error, (plain, isinstance(self, _HasCause))

    def __str__(self) -> str:
        return self.traceback_str

    def make_dual_exception_type(self) -> type[RayTaskError]:
        """A class that is both `RayTaskError` and the cause's class.

        Raises TypeError where Python allows no such class (final classes, clashing layouts).
        """
        return _dual_type(type(self.cause))

    def make_dual_exception_instance(self) -> RayTaskError:
        """This error as an instance of that class; raises where the class cannot be."""
        cause = self.cause
        if cause is None:
            raise TypeError("an error without a cause has no class but its own")
        error = _bare(self.make_dual_exception_type(), cause)
        state = (self.proctitle, self.pid, self.ip, self.actor_repr, self._actor_id)
        plain = (self.function_name, self.traceback_str, cause, *state)
        RayTaskError.__init__(error, *plain)
        try:
            error.args = cause.args
        except AttributeError:  # the user's class has its own way to say them
            pass
        return error

    def as_instanceof_cause(self) -> RayTaskError:
        """This error as an instance of its cause's class too; itself where that cannot be."""
        cause = self.cause
        if cause is None or isinstance(self, _HasCause):
            return self
        if isinstance(cause, (RayTaskError, *_CANNOT_INHERIT)):
            return self
        try:
            return self.make_dual_exception_instance()
        except Exception:  # whatever the user's class does when it is subclassed or constructed
            return self


def _bare(dual: type[RayTaskError], cause: BaseException) -> RayTaskError:
    """An instance of `dual` on which no `__init__` ran; some classes insist on their own way."""
    ways: tuple[Callable[[], Any], ...] = (
        lambda: dual.__new__(dual),
        lambda: type(cause).__new__(dual, *cause.args),
        lambda: BaseException.__new__(dual),
    )
    for way in ways:
        try:
            made = way()
        except Exception:
            continue
        if isinstance(made, dual):
            return made
    raise TypeError(f"no instance of {dual.__name__} can be made")


class _HasCause:
    """Marks the classes made by `_dual_type`."""

    # What C-level attributes of the cause (OSError.errno and friends) would shadow is asked of it.
    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in _OWN_NAMES:
            return object.__getattribute__(self, name)
        cause = object.__getattribute__(self, "cause")
        if hasattr(cause, name):
            return getattr(cause, name)
        return object.__getattribute__(self, name)

    def __str__(self) -> str:
        return object.__getattribute__(self, "traceback_str")  # type: ignore[no-any-return]


_OWN_NAMES = frozenset(
    "function_name traceback_str cause proctitle pid ip actor_repr _actor_id args "
    "with_traceback add_note make_dual_exception_type as_instanceof_cause".split()
)
_dual_types: dict[type, type[RayTaskError]] = {}


def _dual_type(cause_type: type) -> type[RayTaskError]:
    made = _dual_types.get(cause_type)
    if made is None:
        name = f"RayTaskError({cause_type.__name__})"
        body = {"__module__": __name__, "__qualname__": name, "cause_cls": cause_type}
        made = type(name, (_HasCause, RayTaskError, cause_type), body)
        _dual_types[cause_type] = made
    return made


def _rebuild_task_error(plain: tuple[Any, ...], dual: bool) -> RayTaskError:
    error = RayTaskError(*plain)
    return error.as_instanceof_cause() if dual else error


class LocalRayletDiedError(RayError):
    """The node service of this machine ended."""

    def __str__(self) -> str:
        return _text(self, "The task's local node service died.")


class WorkerCrashedError(RayError):
    """The worker process died while it ran the task."""

    def __str__(self) -> str:
        return _text(self, "The worker died unexpectedly while executing this task.")


class RayActorError(RayError):
    """An actor's call failed for a reason outside of the method."""

    BASE_ERROR_MSG = "The actor experienced an error before finishing this task."

    def __init__(
        self,
        actor_id: str | None = None,
        error_msg: str = BASE_ERROR_MSG,
        actor_init_failed: bool = False,
        preempted: bool = False,
    ) -> None:
        super().__init__(actor_id, error_msg, actor_init_failed, preempted)
        self._actor_id = actor_id
        self.error_msg = error_msg
        self._actor_init_failed = actor_init_failed
        self._preempted = preempted

    def __str__(self) -> str:
        return self.error_msg

    @property
    def actor_id(self) -> str | None:
        return self._actor_id

    @property
    def actor_init_failed(self) -> bool:
        return self._actor_init_failed

    @property
    def preempted(self) -> bool:
        return self._preempted


class ActorDiedError(RayActorError):
    """The actor is dead; calls will not succeed any more."""

    BASE_ERROR_MSG = "The actor died unexpectedly before finishing this task."

    def __init__(
        self, cause: RayTaskError | str | None = None, actor_id: bytes | None = None
    ) -> None:
        named = actor_id.hex() if actor_id else None
        if isinstance(cause, RayTaskError):
            is_its_own = str(cause.function_name).endswith("__init__")
            message = "The actor died because " + (
                f"of an error raised in its creation task, {cause}"
                if is_its_own
                else f"an argument of its constructor could not be computed:\n{cause}"
            )
            super().__init__(cause._actor_id or named, message, actor_init_failed=True)
            self.__cause__ = cause.cause
        else:
            super().__init__(named, cause or self.BASE_ERROR_MSG)
        self.args = (cause, actor_id)

    @staticmethod
    def from_task_error(task_error: RayTaskError) -> ActorDiedError:
        return ActorDiedError(task_error)


class ActorUnavailableError(RayActorError):
    """The actor cannot be reached now; it may come back."""

    def __init__(self, error_message: str, actor_id: bytes | None = None) -> None:
        super().__init__(
            actor_id.hex() if actor_id else None,
            f"The actor is temporarily unavailable: {error_message}",
        )
        self.args = (error_message, actor_id)


class RaySystemError(RayError):
    """The engine itself failed."""

    def __init__(self, client_exc: Any, traceback_str: str | None = None) -> None:
        super().__init__(client_exc, traceback_str)
        self.client_exc = client_exc
        self.traceback_str = traceback_str

    def __str__(self) -> str:
        text = f"System error: {self.client_exc}"
        return text if not self.traceback_str else f"{text}\ntraceback: {self.traceback_str}"


class AuthenticationError(RayError):
    """The cluster's secret is missing or wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UserCodeException(RayError):
    """User code raised where the engine called it."""


class ObjectStoreFullError(RayError):
    """An object does not fit into the object store."""

    def __str__(self) -> str:
        return _text(self, "The object store is full.")


class OutOfDiskError(RayError):
    """The disk is full and objects can neither be stored nor spilled."""

    def __str__(self) -> str:
        return _text(self, "The local disk is full.")


class OutOfMemoryError(RayError):
    """The task was stopped because the machine ran out of memory."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class NodeDiedError(RayError):
    """The machine that the task ran on is gone."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class ObjectLostError(RayError):
    """An object's value is gone and was not made again."""

    _reason = "All copies of the object are lost."

    def __init__(
        self, object_ref_hex: str = "", owner_address: bytes | None = None, call_site: str = ""
    ) -> None:
        super().__init__(object_ref_hex, owner_address, call_site)
        self.object_ref_hex = object_ref_hex
        self.owner_address = owner_address
        self.call_site = call_site

    def __str__(self) -> str:
        what = f"object {self.object_ref_hex}" if self.object_ref_hex else "the object"
        head = f"Failed to retrieve {what}. "
        return head + self._reason + (f"\n{self.call_site}" if self.call_site else "")


class ObjectFetchTimedOutError(ObjectLostError):
    _reason = "Fetching the object from another node took too long."


class RpcError(RayError):
    """A call between two processes of the engine failed."""

    def __init__(self, message: str, rpc_code: int | None = None) -> None:
        super().__init__(message, rpc_code)
        self.message = message
        self.rpc_code = rpc_code

    def __str__(self) -> str:
        return self.message


class ReferenceCountingAssertionError(ObjectLostError, AssertionError):
    _reason = "The object was freed while references to it were left: a fault of the engine."


class ObjectFreedError(ObjectLostError):
    _reason = "The object was freed by hand."


class OwnerDiedError(ObjectLostError):
    _reason = (
        "Its owner, the process that created the reference, has ended, and the value with it. "
        "Keep the process that called `.remote()` or `put()` alive while the reference is in use."
    )


class ObjectReconstructionFailedError(ObjectLostError):
    _reason = "The object was lost and could not be made again."

    def __init__(
        self,
        object_ref_hex: str = "",
        reason: Any = None,
        reason_message: str | None = None,
        owner_address: Any = None,
        call_site: str = "",
    ) -> None:
        super().__init__(object_ref_hex, owner_address, call_site)
        self.args = (object_ref_hex, reason, reason_message, owner_address, call_site)
        self.reason = reason
        self.reason_message = reason_message
        if reason_message:
            self._reason = f"{type(self)._reason} {reason_message}"


class GetTimeoutError(RayError, TimeoutError):
    """`get(timeout=)` ran out of time."""


class PlasmaObjectNotAvailable(RayError):
    """The object is not in the local object store."""


class AsyncioActorExit(RayError):
    """An asyncio actor leaves through `exit_actor()`."""


class RuntimeEnvSetupError(RayError):
    """The runtime environment could not be made."""

    def __init__(self, error_message: str | None = None) -> None:
        super().__init__(error_message)
        self.error_message = error_message

    def __str__(self) -> str:
        return f"Failed to set up runtime environment.\n{self.error_message or ''}".rstrip()


class TaskPlacementGroupRemoved(RayError):
    """The placement group of the task was removed."""


class ActorPlacementGroupRemoved(RayError):
    """The placement group of the actor was removed."""


class PendingCallsLimitExceeded(RayError):
    """More calls are pending on the actor than `max_pending_calls` allows."""


class TaskUnschedulableError(RayError):
    """No machine can ever run the task."""

    def __init__(self, error_message: str) -> None:
        super().__init__(error_message)
        self.error_message = error_message

    def __str__(self) -> str:
        return f"The task is not schedulable: {self.error_message}"


class ActorUnschedulableError(RayError):
    """No machine can ever hold the actor."""

    def __init__(self, error_message: str) -> None:
        super().__init__(error_message)
        self.error_message = error_message

    def __str__(self) -> str:
        return f"The actor is not schedulable: {self.error_message}"


class ObjectRefStreamEndOfStreamError(RayError):
    """A stream of references has no more of them."""


class StreamingGeneratorReplayInconsistentError(RaySystemError):
    """A generator that was run again gave other values."""


class OufOfBandObjectRefSerializationException(RayError):
    """A reference was pickled outside of the engine (the name is Ray's)."""


class RayChannelError(RaySystemError):
    """A channel of a compiled graph failed."""


class RayChannelTimeoutError(RayChannelError, TimeoutError):
    """A channel of a compiled graph took too long."""


class RayCgraphCapacityExceeded(RaySystemError):
    """A compiled graph holds too many results that were not fetched."""


class RayDirectTransportError(RaySystemError):
    """A direct transport of tensors failed."""


class UnserializableException(RayError):
    """An exception that could not be rebuilt here; its text is kept."""

    def __init__(self, original_stack_trace: str) -> None:
        super().__init__(original_stack_trace)
        self._original_stack_trace = original_stack_trace

    def __str__(self) -> str:
        return (
            "The exception could not be rebuilt in this process. As it was raised:\n"
            f"{self._original_stack_trace}"
        )


class ActorAlreadyExistsError(ValueError, RayError):
    """There is an actor of that name already."""

    def __init__(self, error_message: str) -> None:
        super().__init__(error_message)
        self.error_message = error_message


class ActorHandleNotFoundError(ValueError, RayError):
    """The actor of that handle is not known here."""

    def __init__(self, error_message: str) -> None:
        super().__init__(error_message)
        self.error_message = error_message


def _text(error: BaseException, default: str) -> str:
    return str(error.args[0]) if error.args and error.args[0] else default
