"""Where Ray's own tests expect something of its own, it is so here too."""

from __future__ import annotations

import gc
import pickle
import re
import sys
import weakref

import oxiray as ray
import pytest
from conftest import wait_until

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.parametrize(("code", "said"), [(0, "0"), (3, "3"), ("a reason", "'a reason'")])
def test_sys_exit_in_a_task_ends_its_worker(code, said):
    @ray.remote(max_retries=1)
    def leave():
        sys.exit(code)

    with pytest.raises(ray.exceptions.WorkerCrashedError, match="sys.exit.*exit code " + said):
        ray.get(leave.remote())
    assert ray.get(ray.remote(abs).remote(-1)) == 1


def test_a_task_that_exits_is_tried_again(tmp_path):
    @ray.remote
    def leave_once():
        mark = tmp_path / "was here"
        if not mark.exists():
            mark.touch()
            sys.exit(1)
        return "back"

    assert ray.get(leave_once.remote()) == "back"


def test_references_of_bytes():
    ref = ray.put([1, 2])
    assert ray.ObjectRef.size() == len(ref.binary())
    for again in (
        ray.ObjectRef(ref.binary()),
        ray.ObjectRef.from_binary(ref.binary()),
        ray.ObjectRef.from_hex(ref.hex()),
    ):
        assert again == ref and hash(again) == hash(ref)
        assert ray.get(again) == [1, 2], "this process knows the value"
        assert ray.get(ray.remote(sum).remote(again)) == 3
    del ref
    assert ray.get(again) == [1, 2], "it is held by either"

    nil, other = ray.ObjectRef.nil(), ray.ObjectRef.from_random()
    assert nil.is_nil() and nil == ray.ObjectRef.nil() and not other.is_nil()
    assert pickle.loads(pickle.dumps(other)) == other
    for unknown in (nil, other):
        for use in (ray.get, lambda ref: ray.wait([ref]), ray.cancel, ray.remote(abs).remote):
            with pytest.raises(ValueError, match="made of bytes, and names no value"):
                use(unknown)
        with pytest.raises(ValueError, match="made of bytes"):
            ray.get([ray.put(1), unknown])
    with pytest.raises(ValueError, match="28 bytes, not 3"):
        ray.ObjectRef(b"abc")
    with pytest.raises(ValueError, match="fromhex"):
        ray.ObjectRef.from_hex("no")


def test_references_of_bytes_need_no_session(driver):
    driver(
        """
        import oxiray as ray
        assert ray.ObjectRef.nil().is_nil()
        ray.ObjectRef.from_random().hex()
        assert not ray.is_initialized()
        """
    )


def test_what_waits_for_futures_keeps_no_value():
    class Value:
        pass

    made = Value()
    ref = ray.put(b"x" * 10)
    gone = weakref.ref(made)

    def callback(value, kept=made):
        pass

    ref._on_completed(callback)
    del callback, made

    def is_gone():
        gc.collect()
        return gone() is None

    wait_until(is_gone, message="the callback is held")


def test_an_error_in_a_callback_is_said(capfd):
    def callback(value):
        raise ValueError("of the callback")

    ray.put(1)._on_completed(callback)
    said = []

    def is_said():
        said.append(capfd.readouterr().err)
        return "of the callback" in "".join(said)

    wait_until(is_said)


class WithHelpers:
    limit = 7

    @staticmethod
    def twice(x):
        return 2 * x

    @classmethod
    def made(cls, x):
        instance = cls()
        instance.x = x
        return instance

    def method(self):
        return Remote.twice(self.limit), Remote.made(3).x


Remote = ray.remote(WithHelpers)


def test_static_and_class_methods_of_an_actors_class():
    assert Remote.limit == 7 and Remote.twice(4) == 8 and Remote.made(1).x == 1
    assert ray.get(Remote.remote().method.remote()) == (14, 3)
    with pytest.raises(AttributeError, match="'method' is a method: call it by a handle"):
        _ = Remote.method
    assert {"method", "remote", "options", "bind"} <= set(dir(Remote))
    assert Remote.__ray_metadata__.class_name == "WithHelpers"


def test_an_actors_error_shows_its_repr():
    @ray.remote
    class Named:
        def __init__(self, name="Nancy"):
            self.name = name
            assert name

        def __repr__(self):
            return self.name

        def fail(self):
            raise ValueError("no")

    actor = Named.remote()
    with pytest.raises(ValueError, match="no") as caught:
        ray.get(actor.fail.remote())
    assert re.search(r"actor_id=[0-9a-f]+, repr=Nancy\)", str(caught.value))
    with pytest.raises(ray.exceptions.ActorDiedError, match=r"repr=.*Named"):
        ray.get(Named.remote("").fail.remote())


def test_an_exception_whose_args_cannot_be_set_keeps_its_type():
    class ReadOnly(Exception):
        def __init__(self, text):
            self.text = text

        @property
        def args(self):
            return (self.text,)

    @ray.remote
    def fail():
        raise ReadOnly("boom")

    with pytest.raises(ReadOnly) as caught:
        ray.get(fail.remote())
    assert isinstance(caught.value, ray.exceptions.RayTaskError) and "boom" in str(caught.value)


def test_words_of_wrong_options():
    def function():
        pass

    class Class:
        pass

    wrong = [
        ({"max_retries": 0.5}, TypeError, "type of keyword 'max_retries' must be .*int.*float"),
        ({"num_returns": 0.5}, TypeError, "type of keyword 'num_returns' must be .*str.*float"),
        ({"max_calls": -1}, ValueError, "'max_calls' only accepts None, 0 or a positive integer"),
        ({"max_retries": -2}, ValueError, "only accepts None, 0, -1 or a positive integer, where"),
        ({"num_returns": -1}, ValueError, "only accepts None, a non-negative integer, 'streaming'"),
        ({"num_gpus": 1e-7}, ValueError, "precision of the fractional quantity of .*num_gpus"),
        ({"resources": {"a": 1e-7}}, ValueError, "precision of .*resource a cannot go beyond"),
    ]
    for options, error, words in wrong:
        with pytest.raises(error, match=words):
            ray.remote(**options)(function)
    with pytest.raises(ValueError, match=r"'max_calls' is not supported in '.options\(\)'"):
        ray.remote(function).options(max_calls=1)
    with pytest.raises(ValueError, match="Actor name cannot be an empty string"):
        ray.remote(Class).options(name="")
    with pytest.raises(ValueError, match="must be one of 'detached', 'non_detached'"):
        ray.remote(lifetime="long")(Class)


def test_tasks_with_gpus_have_a_worker_of_their_own():
    assert ray.remote(num_gpus=1)(abs)._options["max_calls"] == 1
    assert ray.remote(num_gpus=1, max_calls=3)(abs)._options["max_calls"] == 3
    assert "max_calls" not in ray.remote(abs)._options


def test_old_names_of_ids_are_told():
    context = ray.get_runtime_context()
    with pytest.warns(DeprecationWarning, match=r"Use get_node_id\(\) instead"):
        assert context.node_id.hex() == context.get_node_id()


def test_a_generator_that_yields_more_than_it_is_to_return():
    @ray.remote(num_returns=2)
    def count(to):
        yield from range(to)

    assert ray.get(count.remote(5)) == [0, 1]
    with pytest.raises(ValueError, match="returned 1 objects, but num_returns=2"):
        ray.get(count.remote(1))


def test_a_module_that_workers_lack_is_told_with_where_they_look():
    @ray.remote
    def imports():
        import no_such_module_anywhere  # noqa: F401

    with pytest.raises(ModuleNotFoundError) as caught:
        ray.get(imports.remote())
    assert re.search(r"looks for modules in .*site-packages.*py_modules", str(caught.value))


def test_read_only_arrays_say_what_to_do():
    numpy = pytest.importorskip("numpy")

    @ray.remote
    def write(array):
        array[0] = 1

    with pytest.raises(ValueError, match=r"read-only\n\(Arrays .*copy\(\) gives one"):
        ray.get(write.remote(numpy.zeros(100_000)))
