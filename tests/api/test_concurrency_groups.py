"""Concurrency groups: lanes of an actor with limits of their own, in threads and on event loops."""

from __future__ import annotations

import asyncio
import os
import threading

import oxiray as ray
import pytest
from conftest import wait_until
from rendezvous import Gate, Meeting

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote(concurrency_groups={"io": 2, "compute": 3})
class Threads:
    @ray.method(concurrency_group="io")
    def io(self, meeting, name):
        return meeting.attend(name, timeout=0.5 if name == "alone" else 30)

    @ray.method(concurrency_group="compute")
    def compute(self, meeting, name):
        return meeting.attend(name)

    def plain(self):
        return threading.get_ident()

    @ray.method(concurrency_group="io")
    def hold(self, gate, notes=None):
        if notes is not None:
            (notes / str(threading.get_ident())).touch()
        gate.wait()
        return threading.get_ident()


@ray.remote(concurrency_groups={"io": 2, "compute": 1})
class Loops:
    def __init__(self):
        self.inside = self.most = 0

    @ray.method(concurrency_group="io")
    async def io(self):
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(0.01)
        self.inside -= 1
        return self.most, threading.get_ident()

    @ray.method(concurrency_group="compute")
    def compute(self):
        return threading.get_ident()

    async def plain(self):
        return threading.get_ident()

    async def hold(self, gate):
        gate.wait()  # of the whole loop


def test_each_group_has_its_limit(tmp_path):
    actor = Threads.remote()
    meeting = Meeting(str(tmp_path), 5)
    refs = [actor.io.remote(meeting, f"io{i}") for i in range(2)]
    refs += [actor.compute.remote(meeting, f"compute{i}") for i in range(3)]
    assert all(ray.get(refs))


def test_a_full_group_holds_up_no_other(tmp_path):
    actor = Threads.remote()
    gate = Gate(str(tmp_path / "gate"))
    notes = tmp_path / "notes"
    notes.mkdir()
    held = [actor.hold.remote(gate, notes) for _ in range(1500)]
    wait_until(
        lambda: len(list(notes.iterdir())) == 2, message="both threads of the group hold one"
    )
    assert ray.get(actor.plain.remote())
    meeting = Meeting(str(tmp_path), 1)
    assert ray.get(actor.compute.remote(meeting, "a"))
    ready, _ = ray.wait(held, timeout=0)
    assert not ready
    gate.open()
    assert len(set(ray.get(held))) == 2


def test_a_call_may_choose_its_group(tmp_path):
    actor = Threads.remote()
    gate = Gate(str(tmp_path / "gate"))
    held = [actor.hold.remote(gate) for _ in range(2)]
    waiting = actor.plain.options(concurrency_group="io").remote()
    elsewhere = actor.hold.options(concurrency_group="compute").remote(gate)
    ready, _ = ray.wait([waiting], timeout=0.3)
    assert not ready, "the group is full"
    assert ray.get(actor.plain.options(concurrency_group="compute").remote())
    gate.open()
    ray.get([*held, waiting, elsewhere])


def test_calls_of_a_group_are_in_order_and_wait_for_no_other_group(tmp_path):
    gate = Gate(str(tmp_path / "gate"))

    @ray.remote
    def later():
        gate.wait()
        return "late"

    @ray.remote(concurrency_groups={"a": 1, "b": 1})
    class Notes:
        def __init__(self):
            self.noted = []

        @ray.method(concurrency_group="a")
        def first(self, what):
            self.noted.append(what)
            return list(self.noted)

        @ray.method(concurrency_group="b")
        def second(self, what):
            return what

    notes = Notes.remote()
    late = notes.first.remote(later.remote())
    behind = notes.first.remote("behind")
    assert ray.get([notes.second.remote(i) for i in range(5)]) == list(range(5))
    ready, _ = ray.wait([behind], timeout=0.3)
    assert not ready, "it was submitted after one of its group that waits"
    gate.open()
    assert ray.get(late) == ["late"]
    assert ray.get(behind) == ["late", "behind"]


def test_loops_of_groups_have_their_limits_and_threads():
    actor = Loops.remote()
    results = ray.get([actor.io.remote() for _ in range(20)])
    assert max(most for most, _ in results) == 2
    (io_thread,) = {thread for _, thread in results}
    compute, plain = ray.get([actor.compute.remote(), actor.plain.remote()])
    assert len({io_thread, compute, plain}) == 3
    assert ray.get(actor.compute.options(concurrency_group="io").remote()) == io_thread


def test_a_blocked_loop_holds_up_no_other_group(tmp_path):
    actor = Loops.remote()
    gate = Gate(str(tmp_path / "gate"))
    held = actor.hold.remote(gate)
    assert ray.get(actor.compute.remote())
    assert ray.get(actor.io.remote())
    gate.open()
    ray.get(held)


def test_an_async_method_makes_loops_of_all_groups(tmp_path):
    """As in Ray: groups of a class with one coroutine have a loop each and no threads. So what is
    awaited in a group runs at once, up to its limit; what is not awaited runs one by one."""

    @ray.remote(concurrency_groups={"mixed": 3})
    class Mixed:
        def __init__(self):
            self.inside = self.most = 0

        @ray.method(concurrency_group="mixed")
        async def awaits(self, gate):
            self.inside += 1
            self.most = max(self.most, self.inside)
            while not os.path.exists(gate.path):
                await asyncio.sleep(0.005)
            self.inside -= 1
            return threading.get_ident()

        @ray.method(concurrency_group="mixed")
        def blocks(self):
            self.inside += 1
            at_once = self.inside
            threading.Event().wait(0.01)
            self.inside -= 1
            return at_once, threading.get_ident()

        def most_at_once(self):
            return self.most

    actor = Mixed.remote()
    blocked = ray.get([actor.blocks.remote() for _ in range(5)])
    assert {at_once for at_once, _ in blocked} == {1}
    gate = Gate(str(tmp_path / "gate"))
    awaiting = [actor.awaits.remote(gate) for _ in range(5)]
    wait_until(lambda: ray.get(actor.most_at_once.remote()) == 3)
    gate.open()
    assert set(ray.get(awaiting)) == {thread for _, thread in blocked}
    assert ray.get(actor.most_at_once.remote()) == 3


def test_the_groups_of_a_named_actor_are_known_to_others():
    actor = Threads.options(name="grouped").remote()
    found = ray.get_actor("grouped")
    assert ray.get(found.plain.options(concurrency_group="compute").remote())
    with pytest.raises(ValueError, match="no such group"):
        found.plain.options(concurrency_group="none")
    del actor


def test_an_unknown_group_is_named_with_those_there_are():
    actor = Threads.remote()
    with pytest.raises(ValueError, match=r"Threads\.plain.*'nope'.*'io', 'compute'"):
        actor.plain.options(concurrency_group="nope").remote()
    with pytest.raises(TypeError, match="concurrency_group"):
        actor.plain.options(concurrency_group=3)

    @ray.remote(concurrency_groups={"io": 1})
    class Wrong:
        @ray.method(concurrency_group="oi")
        def f(self):
            pass

    with pytest.raises(ValueError, match=r"Wrong\.f.*'oi'.*'io'"):
        Wrong.remote()


def test_an_actor_without_groups_has_none_to_name():
    @ray.remote
    class Plain:
        def f(self):
            pass

    actor = Plain.remote()
    with pytest.raises(ValueError, match="has none"):
        actor.f.options(concurrency_group="io")
