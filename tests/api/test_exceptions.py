"""The exception classes by themselves: shapes, pickling, the two-faced task error."""

from __future__ import annotations

import pickle

import pytest
from oxiray import _errors, _native, exceptions
from oxiray.exceptions import ActorDiedError, RayError, RayTaskError


def described(error, name="f"):
    try:
        raise error
    except BaseException as caught:
        return _errors.describe(caught, name)[0]


@pytest.mark.parametrize(
    "error",
    [
        exceptions.RayActorError("aa", "text"),
        exceptions.ActorDiedError("text", b"\xaa"),
        exceptions.ActorUnavailableError("text", b"\xaa"),
        exceptions.ObjectLostError("aa", None, "site"),
        exceptions.OwnerDiedError("aa"),
        exceptions.GetTimeoutError("text"),
        exceptions.WorkerCrashedError("text"),
        exceptions.OutOfMemoryError("text"),
        exceptions.TaskUnschedulableError("text"),
        exceptions.RaySystemError("text"),
        exceptions.TaskCancelledError("aa", "text"),
        exceptions.ObjectReconstructionFailedError("aa", None, "text"),
        exceptions.RuntimeEnvSetupError("text"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_engine_errors_survive_pickling(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
    assert isinstance(again, RayError)


@pytest.mark.parametrize(
    "cause",
    [
        ValueError("x"),
        KeyError("k"),
        OSError(2, "no", "file"),
        UnicodeDecodeError("a", b"", 0, 1, "r"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_rebuilt_errors_are_both(cause):
    error = _errors.rebuild(described(cause))
    assert isinstance(error, type(cause)) and isinstance(error, RayTaskError)
    assert error.args == cause.args
    assert str(error).startswith("ray::f() (pid=")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, type(cause)) and str(again) == str(error)


class Final(Exception):
    def __init_subclass__(cls):
        raise TypeError("no subclasses")


class Frozen(Exception):
    def __setattr__(self, name, value):
        raise AttributeError("frozen")


@pytest.mark.parametrize("cause", [Final("x"), Frozen("x"), KeyboardInterrupt(), SystemExit(1)])
def test_classes_that_cannot_be_combined_are_plain_task_errors(cause):
    error = _errors.rebuild(described(cause))
    assert type(error) is RayTaskError
    assert type(error.cause) is type(cause)


class Rude(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    def __reduce__(self):
        raise RuntimeError("no pickle")


def test_describe_never_raises():
    error = _errors.rebuild(described(Rude()))
    assert isinstance(error, RayTaskError) and "Rude" in str(error)


def test_codes_of_the_engine():
    """Each failure of the engine's one table can be raised, says its words, and travels on."""
    table = _native.failures()
    assert len(table) == len({number for _, number, *_ in table})
    for name, _, _, exception, about in table:
        data = described(ValueError("what happened")) if about == "exception" else b"\x01\x02"
        if name == "TaskError":
            error = _errors.rebuild(data)
        else:
            error = _errors.engine_error(exception, about, "what happened", data)
        assert isinstance(error, getattr(exceptions, exception)), name
        for each in (error, pickle.loads(pickle.dumps(error))):
            assert isinstance(each, RayError) and "what happened" in str(each), name


@pytest.mark.parametrize(
    ("name", "number", "word", "exception", "about"),
    [
        ("TaskError", 0, "TASK_EXECUTION_EXCEPTION", "RayTaskError", "exception"),
        ("OwnerDied", 3, "OWNER_DIED", "OwnerDiedError", "object"),
        ("ActorCreation", 10, "ACTOR_CREATION_FAILED", "ActorDiedError", "exception"),
        ("GetTimeout", 11, "OBJECT_FETCH_TIMED_OUT", "GetTimeoutError", "nothing"),
    ],
)
def test_numbers_that_files_and_peers_have_stay(name, number, word, exception, about):
    assert (name, number, word, exception, about) in _native.failures()


def test_the_ids_that_errors_carry():
    def made(exception, about):
        return _errors.engine_error(exception, about, "why", b"\x01\x02")

    assert made("ActorDiedError", "actor").actor_id == "0102"
    assert made("ActorUnavailableError", "actor").actor_id == "0102"
    assert made("ObjectLostError", "object").object_ref_hex == "0102"
    assert made("TaskCancelledError", "task").task_id == "0102"


def test_an_actors_constructor_error():
    error = _errors.engine_error(
        "ActorDiedError", "exception", "", described(ValueError("bad start"), "A.__init__")
    )
    assert isinstance(error, ActorDiedError) and error.actor_init_failed
    assert "ray::A.__init__()" in str(error) and "bad start" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)


def test_all_names_of_ray_are_there():
    names = """RayError CrossLanguageError TaskCancelledError RayTaskError LocalRayletDiedError
    WorkerCrashedError RayActorError ActorDiedError ActorUnavailableError RaySystemError
    AuthenticationError UserCodeException ObjectStoreFullError OutOfDiskError OutOfMemoryError
    NodeDiedError ObjectLostError ObjectFetchTimedOutError RpcError ReferenceCountingAssertionError
    ObjectFreedError OwnerDiedError ObjectReconstructionFailedError GetTimeoutError
    PlasmaObjectNotAvailable AsyncioActorExit RuntimeEnvSetupError TaskPlacementGroupRemoved
    ActorPlacementGroupRemoved PendingCallsLimitExceeded TaskUnschedulableError
    ActorUnschedulableError ObjectRefStreamEndOfStreamError
    StreamingGeneratorReplayInconsistentError OufOfBandObjectRefSerializationException
    RayChannelError RayChannelTimeoutError RayCgraphCapacityExceeded RayDirectTransportError
    UnserializableException ActorAlreadyExistsError ActorHandleNotFoundError""".split()
    assert len(names) == 42
    for name in names:
        assert issubclass(getattr(exceptions, name), RayError)


@pytest.mark.parametrize("data", [b"", b"\0", b"damaged"])
def test_what_cannot_be_read_is_a_task_error(data):
    assert type(_errors.rebuild(data)) is RayTaskError
    assert isinstance(_errors.engine_error("ActorDiedError", "exception", "", data), ActorDiedError)


@pytest.mark.parametrize("kind", ["ObjectLostError", "OwnerDiedError", "ObjectFreedError"])
def test_lost_objects_without_an_id(kind):
    assert "object ." not in str(getattr(exceptions, kind)())


def test_errors_as_bytes_and_back():
    error = RayTaskError("f", "the traceback", KeyError("k"))
    again = RayError.from_bytes(error.to_bytes())
    assert type(again) is RayTaskError and again.cause.args == ("k",)
    died = RayError.from_bytes(ActorDiedError().to_bytes())
    assert type(died) is ActorDiedError


class Unreadable(RayError):
    def __reduce__(self):
        return int, ("not a number",)


def test_an_error_that_cannot_be_made_again_keeps_its_text():
    again = RayError.from_bytes(Unreadable("told").to_bytes())
    assert isinstance(again, exceptions.UnserializableException)
    assert "told" in str(again)


def test_both_at_once():
    both = RayTaskError("f", "text", KeyError("k")).make_dual_exception_instance()
    assert isinstance(both, KeyError) and isinstance(both, RayTaskError)
    with pytest.raises(TypeError, match="without a cause"):
        RayTaskError("f", "text", None).make_dual_exception_instance()
