"""Actors: state, order, handles, ends of life."""

from __future__ import annotations

import gc
import os
import sys
import threading

import oxiray as ray
import pytest
from conftest import is_alive, wait_until
from oxiray.exceptions import ActorDiedError, RayActorError, RayTaskError
from rendezvous import Gate

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
class Counter:
    STEP = 1

    def __init__(self, start=0, *, name="counter"):
        self.value = start
        self.name = name

    def add(self, amount=STEP):
        self.value += amount
        return self.value

    def get(self):
        return self.value

    def pid(self):
        return os.getpid()

    @ray.method(num_returns=2)
    def two(self):
        return self.value, self.name

    @staticmethod
    def fixed():
        return "static"

    @classmethod
    def kind(cls):
        return cls.__name__

    def fail(self):
        raise ValueError("from the method")

    def leave(self):
        ray.actor.exit_actor()

    def crash(self):
        os._exit(7)


def test_state_stays():
    counter = Counter.remote(5)
    assert ray.get([counter.add.remote(), counter.add.remote(10), counter.get.remote()]) == [
        6,
        16,
        16,
    ]


def test_constructor_arguments_and_refs():
    counter = Counter.remote(ray.put(3), name="mine")
    assert ray.get(counter.two.remote()) == [3, "mine"]


def test_calls_run_in_the_order_of_their_caller():
    counter = Counter.remote()
    assert ray.get([counter.add.remote() for _ in range(2000)]) == list(range(1, 2001))


def test_order_holds_even_when_an_argument_is_late(gate):
    @ray.remote
    def late():
        gate.wait()
        return 100

    counter = Counter.remote()
    first = counter.add.remote(late.remote())
    second = counter.add.remote(1)
    gate.open()
    assert ray.get([first, second]) == [100, 101]


def test_method_options():
    counter = Counter.remote()
    assert ray.get(counter.two.options(num_returns=1).remote()) == (0, "counter")


def test_static_and_class_methods():
    counter = Counter.remote()
    assert ray.get([counter.fixed.remote(), counter.kind.remote()]) == ["static", "Counter"]


def test_each_actor_has_a_process():
    a, b = Counter.remote(), Counter.remote()
    pids = ray.get([a.pid.remote(), b.pid.remote()])
    assert len({*pids, os.getpid()}) == 3


def test_a_methods_error_leaves_the_actor_alive():
    counter = Counter.remote()
    with pytest.raises(ValueError, match="from the method") as caught:
        ray.get(counter.fail.remote())
    assert isinstance(caught.value, RayTaskError)
    assert ray.get(counter.get.remote()) == 0


def test_handles_go_to_tasks():
    @ray.remote
    def use(handle, times):
        return ray.get([handle.add.remote() for _ in range(times)])[-1]

    counter = Counter.remote()
    assert sorted(ray.get([use.remote(counter, 10), use.remote(counter, 10)]))[-1] == 20


def test_handles_go_into_closures_containers_and_other_actors():
    counter = Counter.remote()

    @ray.remote
    class User:
        def __init__(self, handles):
            self.handle = handles["counter"]

        def use(self):
            return ray.get(self.handle.add.remote())

        def give(self):
            return self.handle

    @ray.remote
    def closure():
        return ray.get(counter.add.remote())

    user = User.remote({"counter": counter})
    assert ray.get(user.use.remote()) == 1
    assert ray.get(closure.remote()) == 2
    back = ray.get(user.give.remote())
    assert back == counter and hash(back) == hash(counter)
    assert ray.get(back.add.remote()) == 3


def test_actors_make_actors():
    @ray.remote
    class Parent:
        def __init__(self):
            self.child = Counter.remote(40)

        def ask(self):
            return ray.get(self.child.add.remote(2))

    assert ray.get(Parent.remote().ask.remote()) == 42


def test_handle_shows_its_class_and_id():
    counter = Counter.remote()
    assert repr(counter) == f"Actor(Counter, {counter._actor_id.hex()})"
    assert "add" in dir(counter)


def test_inherited_methods():
    class Base:
        def hello(self):
            return "hello"

    @ray.remote
    class Derived(Base):
        def hello(self):
            return super().hello() + " again"

    assert ray.get(Derived.remote().hello.remote()) == "hello again"


def test_an_error_in_the_constructor_reaches_every_call():
    @ray.remote
    class Broken:
        def __init__(self):
            raise ValueError("no way")

        def method(self):
            pass

    broken = Broken.remote()
    for _ in range(2):
        with pytest.raises(ActorDiedError, match="no way") as caught:
            ray.get(broken.method.remote())
        assert isinstance(caught.value, RayActorError)


def test_the_actor_ends_with_its_last_handle():
    counter = Counter.remote()
    pid = ray.get(counter.pid.remote())
    gc.disable()  # by reference count, not by the collector
    try:
        del counter
        wait_until(lambda: not is_alive(pid), message="the actor's process ends")
    finally:
        gc.enable()


def test_calls_made_before_the_last_handle_went_are_served():
    refs = (lambda counter: [counter.add.remote() for _ in range(100)])(Counter.remote())
    assert ray.get(refs) == list(range(1, 101))


def test_a_handle_in_a_running_task_keeps_the_actor(gate):
    @ray.remote
    def hold(handle):
        gate.wait()
        return ray.get(handle.add.remote())

    counter = Counter.remote()
    ray.get(counter.add.remote())
    ref = hold.remote(counter)
    del counter
    gate.open()
    assert ray.get(ref) == 2


def test_kill(gate):
    @ray.remote
    class Stuck:
        def pid(self):
            return os.getpid()

        def wait(self):
            gate.wait()

    stuck = Stuck.remote()
    pid = ray.get(stuck.pid.remote())
    waiting = stuck.wait.remote()
    ray.kill(stuck)
    with pytest.raises(ActorDiedError):
        ray.get(waiting, timeout=30)
    with pytest.raises(ActorDiedError):
        ray.get(stuck.pid.remote(), timeout=30)
    wait_until(lambda: not is_alive(pid))


def test_terminate_lets_earlier_calls_finish():
    counter = Counter.remote()
    first = counter.add.remote()
    counter.__ray_terminate__.remote()
    assert ray.get(first) == 1
    with pytest.raises(ActorDiedError):
        ray.get(counter.get.remote(), timeout=30)


def test_exit_actor():
    counter = Counter.remote()
    assert ray.get(counter.add.remote()) == 1
    with pytest.raises(ActorDiedError):
        ray.get(counter.leave.remote(), timeout=30)
    with pytest.raises(ActorDiedError):
        ray.get(counter.get.remote(), timeout=30)


def test_a_crash_says_how():
    counter = Counter.remote()
    with pytest.raises(ActorDiedError, match="7"):
        ray.get(counter.crash.remote(), timeout=30)
    with pytest.raises(RayActorError):
        ray.get(counter.get.remote(), timeout=30)


def test_every_actor_answers_ready_and_call():
    counter = Counter.remote(2)
    assert ray.get(counter.__ray_ready__.remote()) is True
    assert ray.get(counter.__ray_call__.remote(lambda self, n: self.value * n, 21)) == 42


def test_runtime_context_in_an_actor():
    @ray.remote
    class Who:
        def ids(self):
            context = ray.get_runtime_context()
            return context.get_actor_id(), context.get_task_id()

    who = Who.remote()
    actor_id, task_id = ray.get(who.ids.remote())
    assert actor_id == who._actor_id.hex()
    assert len(task_id) == 48


def test_several_callers_each_in_order():
    @ray.remote
    class Log:
        def __init__(self):
            self.seen = []

        def note(self, who, i):
            self.seen.append((who, i))

        def all(self):
            return self.seen

    log = Log.remote()

    @ray.remote
    def write(who):
        return ray.get([log.note.remote(who, i) for i in range(200)]) is not None

    assert all(ray.get([write.remote(who) for who in range(3)]))
    seen = ray.get(log.all.remote())
    for who in range(3):
        assert [i for w, i in seen if w == who] == list(range(200))


def test_calls_from_threads():
    counter = Counter.remote()

    def run():
        ray.get([counter.add.remote() for _ in range(100)])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ray.get(counter.get.remote()) == 400


def test_more_actors_than_cpus():
    actors = [Counter.remote(i) for i in range(20)]
    assert ray.get([actor.get.remote() for actor in actors]) == list(range(20))


def test_a_class_is_shipped_by_value():
    """Workers need not import the module that an actor's class stands in."""
    loaded = ray.get(
        Counter.remote().__ray_call__.remote(lambda self: "test_actors" in sys.modules)
    )
    assert not loaded
    assert Counter.STEP == 1 and not hasattr(Counter, "add")


@pytest.mark.slow
def test_two_hundred_actors():
    actors = [Counter.remote(i) for i in range(200)]
    assert ray.get([actor.get.remote() for actor in actors]) == list(range(200))


@ray.remote
class Reflexive:
    def __init__(self, value=0):
        self.value = value

    def meet(self, me):
        self.me = me

    def call_itself(self):
        return [self.me.bump.remote() for _ in range(3)]

    def bump(self):
        self.value += 1
        return self.value


def test_an_actor_calls_itself():
    actor = Reflexive.remote()
    ray.get(actor.meet.remote(actor))
    assert ray.get(ray.get(actor.call_itself.remote())) == [1, 2, 3]


def test_a_handle_travels_before_its_actor_is_made(tmp_path):
    gate = Gate(str(tmp_path / "gate"))

    @ray.remote
    def late():
        gate.wait()
        return 10

    @ray.remote
    def use(actor):
        return ray.get(actor.bump.remote())

    actor = Reflexive.remote(late.remote())
    used = use.remote(actor)
    assert ray.wait([used], timeout=0.2) == ([], [used])
    gate.open()
    assert ray.get(used) == 11


def test_killed_before_it_is_made(tmp_path):
    gate = Gate(str(tmp_path / "gate"))

    @ray.remote
    def late():
        gate.wait()

    actor = Reflexive.remote(late.remote())
    call = actor.bump.remote()
    ray.kill(actor)
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(call)
    gate.open()


def test_a_constructor_with_large_arguments():
    actor = Reflexive.remote([b"x" * 90_000, b"y" * 90_000, b"z" * 90_000])
    ray.get(actor.meet.remote(None))


def test_a_constructor_with_many_references():
    refs = [ray.put(i) for i in range(10_000)]
    actor = Reflexive.remote(refs)
    ray.get(actor.meet.remote(None))


@pytest.mark.parametrize("size", [100, 60_000, 300_000])
def test_a_constructor_with_a_large_error(size):
    @ray.remote
    class Fails:
        def __init__(self):
            raise ValueError("x" * size)

        def ping(self):
            return 1

    with pytest.raises(ActorDiedError, match="xxx"):
        ray.get(Fails.remote().ping.remote())


def test_an_attribute_that_has_a_methods_name(cluster):
    @ray.remote
    class Counter:
        def __init__(self):
            self.count = 3

        def count(self):
            return self.count

    assert ray.get(Counter.remote().count.remote()) == 3
