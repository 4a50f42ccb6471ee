"""Errors of tasks and of workers, as the getter sees them."""

from __future__ import annotations

import os
import signal
import sys
import threading

import oxiray as ray
import pytest
from oxiray.exceptions import RayError, RayTaskError, TaskCancelledError, WorkerCrashedError

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup, ExceptionGroup

pytestmark = pytest.mark.usefixtures("cluster")


class Custom(Exception):
    """Its constructor does not take its own args: it pickles, but does not load."""

    def __init__(self, code, reason):
        super().__init__(f"{reason} ({code})")
        self.code = code


def helper():
    raise ValueError("deep down")


@ray.remote
def fail():
    helper()


def test_an_error_is_its_own_type_and_a_task_error():
    with pytest.raises(ValueError) as caught:
        ray.get(fail.remote())
    error = caught.value
    assert isinstance(error, RayTaskError) and isinstance(error, RayError)
    assert isinstance(error.cause, ValueError) and error.cause.args == ("deep down",)


def test_the_traceback_is_the_users():
    with pytest.raises(RayTaskError) as caught:
        ray.get(fail.remote())
    text = str(caught.value)
    assert text.startswith("ray::fail() (pid=")
    assert "in fail" in text and "in helper" in text and text.endswith("ValueError: deep down")
    assert "/oxiray/" not in text


def test_attributes_of_the_error_are_there():
    @ray.remote
    def missing():
        open("/does/not/exist")

    with pytest.raises(FileNotFoundError) as caught:
        ray.get(missing.remote())
    assert caught.value.errno == 2 and caught.value.filename == "/does/not/exist"


def test_an_exception_whose_constructor_cannot_be_replayed():
    @ray.remote
    def custom():
        raise Custom(42, "reason")

    with pytest.raises(Custom) as caught:
        ray.get(custom.remote())
    assert caught.value.code == 42


def test_errors_travel_through_dependent_tasks():
    @ray.remote
    def use(value):
        return value

    with pytest.raises(ValueError, match="deep down"):
        ray.get(use.remote(use.remote(fail.remote())))


def test_an_error_names_the_tasks_that_it_ran_through():
    @ray.remote
    class Taker:
        def __init__(self, value=None):
            pass

        def take(self, value):
            return value

    @ray.remote
    def between(value):
        return value

    ran_through = between.options(name="second").remote(between.remote(fail.remote()))
    with pytest.raises(ValueError) as caught:
        ray.get(Taker.remote().take.remote(ran_through))
    lines = str(caught.value).splitlines()
    names = [line.split(" ")[0] for line in lines if line.startswith("ray::")]
    assert names == ["ray::take()", "ray::second()", "ray::between()", "ray::fail()"]
    assert "was not run, because an argument could not be computed" in lines[0]
    assert caught.value.function_name == "take" and "deep down" in lines[-1]
    with pytest.raises(ray.exceptions.ActorDiedError) as caught:
        ray.get(Taker.remote(ran_through).take.remote(1))
    assert "an argument of its constructor could not be computed:\nray::fail()" in str(caught.value)


def test_a_long_chain_of_errors_is_told_in_short():
    @ray.remote
    def link(value):
        return value

    ref = fail.remote()
    for number in range(100):
        ref = link.options(name=f"link{number}").remote(ref)
    with pytest.raises(ValueError) as caught:
        ray.get(ref)
    text = str(caught.value)
    for told in ("ray::link99() was", "others were", "ray::link0() was", "ray::fail()"):
        assert told in text
    assert "ray::link50()" not in text and text.count("ray::") == 16


def test_what_lost_an_argument_is_said_with_who_wanted_it():
    @ray.remote(max_retries=0)
    def dies():
        os._exit(3)

    @ray.remote
    def wants(value):
        return value

    with pytest.raises(ray.exceptions.WorkerCrashedError) as caught:
        ray.get(wants.remote(dies.remote()))
    said = "wants was not run, because an argument could not be computed: dies was lost"
    assert said in str(caught.value) and "exit code 3" in str(caught.value)


def test_errors_travel_through_nested_tasks():
    @ray.remote
    def outer():
        return ray.get(fail.remote())

    with pytest.raises(ValueError) as caught:
        ray.get(outer.remote())
    assert "ray::outer()" in str(caught.value) and "ray::fail()" in str(caught.value)


def test_one_error_fails_a_get_of_many():
    with pytest.raises(ValueError):
        ray.get([ray.put(1), fail.remote()])


def test_all_returns_carry_the_error():
    @ray.remote(num_returns=2)
    def fail_twice():
        raise KeyError("k")

    for ref in fail_twice.remote():
        with pytest.raises(KeyError):
            ray.get(ref)


def test_chained_exceptions_are_shown():
    @ray.remote
    def chain():
        try:
            _ = 1 / 0
        except ZeroDivisionError as error:
            raise RuntimeError("outer") from error

    with pytest.raises(RuntimeError) as caught:
        ray.get(chain.remote())
    assert "ZeroDivisionError" in str(caught.value) and "direct cause" in str(caught.value)


def test_an_exception_that_cannot_be_pickled_still_arrives():
    @ray.remote
    def fail():
        error = ValueError("with a lock")
        error.args = (threading.Lock(),)
        raise error

    with pytest.raises(RayTaskError, match="ValueError"):
        ray.get(fail.remote())


def test_base_exceptions_are_errors_of_the_task():
    @ray.remote
    def stop():
        raise SystemExit(3)

    with pytest.raises(RayError):
        ray.get(stop.remote(), timeout=60)
    assert ray.get(ray.remote(lambda: 1).remote()) == 1


@ray.remote(max_retries=0)
def die(how):
    print("last words", flush=True)
    if how == "exit":
        os._exit(3)
    if how == "segfault":
        import ctypes

        ctypes.string_at(0)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("how", "says"), [("exit", "3"), ("segfault", "SIGSEGV|11"), ("kill", "SIGKILL|9")]
)
def test_a_dying_worker_says_how_and_the_cluster_goes_on(how, says):
    with pytest.raises(WorkerCrashedError, match=says) as caught:
        ray.get(die.remote(how), timeout=60)
    assert "last words" in str(caught.value)
    assert ray.get([ray.remote(lambda x: x).remote(i) for i in range(20)]) == list(range(20))


def test_many_workers_die_at_once():
    refs = [die.remote("exit") for _ in range(12)]
    for ref in refs:
        with pytest.raises(WorkerCrashedError):
            ray.get(ref, timeout=60)
    assert ray.get(ray.remote(lambda: "alive").remote()) == "alive"


def test_retries_end():
    @ray.remote(max_retries=1)
    def always():
        os._exit(1)

    with pytest.raises(WorkerCrashedError):
        ray.get(always.remote(), timeout=60)


class Stubborn(Exception):
    def __new__(cls, needed):
        return super().__new__(cls, needed)


class Broken(Exception):
    @property
    def args(self):
        raise RuntimeError("no arguments for you")


@pytest.mark.parametrize(
    "error",
    [MemoryError("m"), ExceptionGroup("g", [ValueError("v")]), Stubborn("s"), OSError(2, "o")],
    ids=lambda error: type(error).__name__,
)
def test_exceptions_that_insist_on_their_own_way(error):
    @ray.remote(max_retries=0)
    def fail():
        raise error

    with pytest.raises(type(error)) as caught:
        ray.get(fail.remote())
    assert isinstance(caught.value, RayTaskError)


def test_an_exception_that_cannot_be_described():
    @ray.remote(max_retries=0)
    def fail():
        raise Broken

    with pytest.raises(RayTaskError, match="Broken"):
        ray.get(fail.remote())


def test_an_exception_group_can_be_split():
    @ray.remote
    def fail():
        raise ExceptionGroup("g", [ValueError(1), KeyError("k")])

    # As `except*` does it, which Python 3.10 has not.
    with pytest.raises(ExceptionGroup) as caught:
        ray.get(fail.remote())
    values, rest = caught.value.split(ValueError)
    keys, nothing = rest.split(KeyError)
    assert [error.args for error in values.exceptions + keys.exceptions] == [(1,), ("k",)]
    assert nothing is None


@pytest.mark.parametrize("yields", [False, True])
def test_what_lost_an_argument_has_failed_as_a_task(yields):
    """Whatever it was, as with Ray: it was the bare error, which `except RayTaskError` missed."""

    @ray.remote(max_retries=0)
    def dies():
        os._exit(1)

    @ray.remote
    def takes(value):
        return value

    @ray.remote
    def generates(value):
        yield value

    wanted = next(generates.remote(dies.remote())) if yields else takes.remote(dies.remote())
    with pytest.raises(RayTaskError) as caught:
        ray.get(takes.remote(wanted))
    error = caught.value
    assert isinstance(error, WorkerCrashedError) and isinstance(error.cause, WorkerCrashedError)
    assert str(error).startswith("takes was not run") and "dies was lost" in str(error.cause)


def test_an_exception_that_hides_its_arguments_has_its_traceback():
    @ray.remote
    def fail():
        raise Broken

    with pytest.raises(RayTaskError, match="Broken") as caught:
        ray.get(fail.remote())
    assert "in fail" in str(caught.value)


def test_exit_actor_in_the_constructor_is_meant():
    @ray.remote
    class Leaves:
        def __init__(self):
            ray.actor.exit_actor()

        def ping(self):
            return 1

    with pytest.raises(ray.exceptions.ActorDiedError) as caught:
        ray.get(Leaves.remote().ping.remote(), timeout=60)
    assert "exit_actor() was called" in str(caught.value)
    assert "ActorExit" not in str(caught.value) and not caught.value.actor_init_failed


@ray.remote
def raise_it(error):
    raise error


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration, GeneratorExit])
def test_what_ends_an_iteration_arrives_as_itself_and_as_a_task_error(kind):
    with pytest.raises(kind) as caught:
        ray.get(raise_it.remote(kind("no more")))
    assert isinstance(caught.value, RayTaskError)
    assert caught.value.args == ("no more",)
    assert isinstance(caught.value.cause, kind)


def test_the_value_of_a_stop_iteration_arrives():
    with pytest.raises(StopIteration) as caught:
        ray.get(raise_it.remote(StopIteration(7)))
    assert caught.value.value == 7


def test_a_keyboard_interrupt_of_its_own_cancels_a_task():
    with pytest.raises(TaskCancelledError, match="raise_it"):
        ray.get(raise_it.remote(KeyboardInterrupt()))
    assert ray.get(ray.remote(lambda: 1).remote()) == 1


def test_groups_of_base_exceptions():
    group = BaseExceptionGroup("both", [KeyboardInterrupt("a"), ValueError("b")])
    with pytest.raises(RayTaskError) as caught:
        ray.get(raise_it.remote(group))
    # An error that is an Exception, as a RayTaskError is, holds none that are not.
    assert [type(one) for one in caught.value.cause.exceptions] == [KeyboardInterrupt, ValueError]
    with pytest.raises(ExceptionGroup) as caught:
        ray.get(raise_it.remote(ExceptionGroup("one", [ValueError("b")])))
    assert isinstance(caught.value, RayTaskError)
