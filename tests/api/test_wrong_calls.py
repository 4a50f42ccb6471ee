"""Wrong calls of functions, actors and methods are refused where they are made."""

from __future__ import annotations

import pickle
import threading
import warnings

import oxiray as ray
import pytest
from oxiray import _large, _parameters


@ray.remote
def function(a, b=1, /, c=2, *, d, e=3):
    return a, b, c, d, e


@ray.remote
class Worker:
    def __init__(self, size, *, kind="x"):
        self.size = size

    def work(self, item, times=1):
        return item * times

    def collect(self, *items, **named):
        return len(items) + len(named)

    def only_named(self, *, key):
        return key

    @staticmethod
    def still(x):
        return x

    @classmethod
    def of_class(cls, x):
        return x

    def nothing(self):
        return None


@pytest.fixture
def worker(cluster):
    return Worker.remote(3)


def refused(says):
    return pytest.raises(TypeError, match=says)


def test_constructors(cluster):
    with refused(r"Worker\(\) cannot be called.*missing a required argument: 'size'"):
        Worker.remote()
    with refused("too many positional arguments"):
        Worker.remote(1, 2)
    with refused(r"unexpected keyword argument 'sort'.*\(size, \*, kind=\.\.\.\)"):
        Worker.remote(1, sort="y")
    assert ray.get(Worker.remote(1, kind="y").work.remote(2)) == 2


def test_methods(worker):
    with refused(r"Worker.work\(\).*'item'.*\(item, times=\.\.\.\)"):
        worker.work.remote()
    with refused("too many"):
        worker.work.remote(1, 2, 3)
    with refused("unexpected keyword argument 'time'"):
        worker.work.remote(1, time=2)
    with refused("'key'"):
        worker.only_named.remote()
    with refused("too many"):
        worker.nothing.remote(1)
    with refused("'x'"):
        worker.still.remote()
    with refused("'x'"):
        worker.of_class.remote()
    assert ray.get(worker.work.remote("ab", times=2)) == "abab"
    assert ray.get(worker.collect.remote(1, 2, a=3)) == 3
    assert ray.get(worker.only_named.remote(key=4)) == 4
    assert ray.get([worker.still.remote(5), worker.of_class.remote(6)]) == [5, 6]
    with refused("too many"):
        worker.work.options(name="other").remote(1, 2, 3)


def test_a_handle_that_travelled_knows(worker):
    @ray.remote
    def call(handle):
        try:
            handle.work.remote()
        except TypeError as error:
            return str(error)

    assert "item, times=..." in ray.get(call.remote(worker))
    named = Worker.options(name="known").remote(1)
    ray.get(named.nothing.remote())
    with refused("item, times"):
        ray.get_actor("known").work.remote()


def test_functions(cluster):
    assert ray.get(function.remote(1, 2, c=3, d=4)) == (1, 2, 3, 4, 3)
    for wrong in [{}, {"d": 1, "f": 2}]:
        with refused("function"):
            function.remote(1, **wrong)
    with refused("function"):
        function.remote(a=1, d=2)


def test_classes_that_say_nothing_are_not_guessed(cluster):
    class Made:
        def __new__(cls, *args):
            return super().__new__(cls)

        def __init__(self, a):
            self.a = a

        def get(self):
            return self.a

    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(ray.remote(Made).remote().get.remote())


def test_the_text_of_parameters():
    def f(a, b=1, /, c=2, *rest, d, e=3, **more):
        pass

    text = _parameters.written(f)
    assert text == "a, b=, /, c=, *rest, d, e=, **more"
    assert _parameters.written(f, 1) == "b=, /, c=, *rest, d, e=, **more"
    assert _parameters.written(len) is None and _parameters.arity(None) is None
    assert _parameters.arity("a, b=") == (1, 2) and _parameters.arity("*rest") == (0, None)
    assert _parameters.arity("") == (0, 0)
    _parameters.Binder("f", text)(1, 2, 3, 4, d=5, x=6)
    with refused("'d'"):
        _parameters.Binder("f", text)(1)


def test_wrong_use_of_the_decorator_is_what_either_expects():
    for error in (TypeError, AssertionError):
        with pytest.raises(error, match="remote is used bare"):
            ray.remote()
        with pytest.raises(error, match="remote is used bare"):
            ray.remote(3)


def test_a_function_that_captures_much_says_so_once(cluster):
    ballast = bytes(12 << 20)

    @ray.remote
    def large():
        return len(ballast)

    with pytest.warns(UserWarning, match=r"function large is very large \(12 MiB\).*put\(\)"):
        ref = large.remote()
    assert ray.get(ref) == len(ballast)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ray.get(large.remote())


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda worker: function, r"RemoteFunction\. Call it with \.remote\(\)"),
        (lambda worker: function.remote, r"RemoteCall\. Call it, as in f\.remote\(\)"),
        (lambda worker: worker.work, r"ActorMethod\. Call it with \.remote\(\)"),
        (lambda worker: worker, r"ActorHandle\. Call a method of the actor"),
        (lambda worker: Worker, r"ActorClass\. Make an actor with \.remote\(\)"),
        (lambda worker: {"a": ray.put(1)}, r"dict\. Get its values"),
        (lambda worker: {ray.put(1)}, r"set\. Make a list of it"),
        (lambda worker: (ref for ref in [ray.put(1)]), r"generator\. Make a list of it"),
        (lambda worker: None, "not NoneType$"),
        (lambda worker: "text", "not str$"),
    ],
    ids=str,
)
def test_what_is_got_that_is_no_reference(worker, make, says):
    with pytest.raises(ValueError, match=says):
        ray.get(make(worker))


def test_what_is_asked_of_a_reference_that_its_value_has(worker):
    ref = ray.put([1])
    with pytest.raises(AttributeError, match=r"no attribute 'append'.*get\(\) gives that"):
        ref.append(2)
    assert not hasattr(ref, "__array__") and not hasattr(ref, "__iter__")
    with pytest.raises(AttributeError, match=r"no method 'size'\. .*a method can return it"):
        _ = worker.size
    with pytest.raises(AttributeError, match=r"no method 'worc'\. Did you mean 'work'"):
        _ = worker.worc


def test_options_of_something_else(worker):
    with pytest.raises(ValueError, match=r"'max_restarts' .* It is an option of actors"):
        function.options(max_restarts=1)
    with pytest.raises(ValueError, match=r"'num_cpus' .* an option of remote functions and actors"):
        worker.work.options(num_cpus=1)
    with refused(r"is an actor's method: call it with \.remote\(\)"):
        ray.remote(worker.work)


def test_an_argument_that_cannot_be_serialised_is_named_once(worker):
    says = r"^Could not serialize the argument 0 of work: <unlocked _thread\.lock"
    with refused(says):
        worker.work.remote(threading.Lock())


@pytest.fixture
def unsaid(cluster, monkeypatch):
    monkeypatch.setattr(_large, "_is_said", False)
    monkeypatch.setattr(_large, "_is_last", lambda _: False)


class Much:
    """A value that can be referred to weakly, as arrays and frames can."""

    def __init__(self):
        self.bytes = bytes(5 << 20)


@pytest.mark.parametrize(
    "make",
    [Much, lambda: bytes(5 << 20), lambda: [bytes(5 << 20)], lambda: {"a": bytes(5 << 20)}],
    ids=["object", "bytes", "list", "dict"],
)
def test_a_large_argument_that_is_passed_again_and_again_is_said_once(unsaid, make):
    take = ray.remote(lambda value: None)
    value = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        take.remote(value)
    with pytest.warns(UserWarning, match=r"of 5 MiB is passed to calls of <lambda>.*put\(\)"):
        take.remote(value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        take.remote(value)


def test_large_arguments_that_are_passed_once_are_not_said(unsaid):
    take = ray.remote(lambda *values, **named: None)
    ref = ray.put(bytes(5 << 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(3):
            take.remote(bytes([number]) * (5 << 20))
            take.remote(Much())
            take.remote([bytes([number]) * (5 << 20)])
            take.remote(ref, value=bytes(1 << 20))


def test_a_handle_is_still_small(worker):
    assert len(pickle.dumps(worker)) < 2000
