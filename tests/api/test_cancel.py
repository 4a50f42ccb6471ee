"""`cancel`: what has not begun does not begin, what runs is stopped, and nobody else is hit."""

from __future__ import annotations

import asyncio
import os
import random
import time

import oxiray as ray
import pytest
from conftest import is_alive, wait_until
from oxiray.exceptions import TaskCancelledError
from oxiray.util.state import list_tasks, summarize_tasks


@pytest.fixture(scope="module", autouse=True)
def session():
    ray.shutdown()
    ray.init(num_cpus=2, logging_level="error")
    yield
    ray.shutdown()


@ray.remote
def same(x):
    return x


@ray.remote
def sleep(path=None):
    if path is not None:
        open(path, "w").close()
    time.sleep(600)


@ray.remote
def spin(path):
    open(path, "w").close()
    while True:
        pass


@ray.remote
def outer(path):
    return ray.get(sleep.remote(path))


def begun(path):
    wait_until(lambda: os.path.exists(path))


def expect_cancelled(ref, name):
    with pytest.raises(TaskCancelledError, match=name) as raised:
        ray.get(ref, timeout=30)
    assert raised.value.task_id == ref.task_id().hex()


@pytest.mark.parametrize("kind", [sleep, spin, outer], ids=["sleep", "loop", "get"])
def test_a_task_that_runs(kind, tmp_path):
    path = str(tmp_path / "begun")
    ref = kind.remote(path)
    begun(path)
    ray.cancel(ref)
    expect_cancelled(ref, "sleep|spin|outer")


def test_the_worker_goes_on(tmp_path):
    @ray.remote(num_cpus=2)
    def own_pid(wait=None):
        if wait is not None:
            open(wait, "w").close()
            time.sleep(600)
        return os.getpid()

    first = ray.get(own_pid.remote())
    path = str(tmp_path / "begun")
    ref = own_pid.remote(path)
    begun(path)
    ray.cancel(ref)
    expect_cancelled(ref, "own_pid")
    assert ray.get(own_pid.remote()) == first


def test_force_ends_the_process(tmp_path):
    @ray.remote(max_retries=3)
    def stubborn(path):
        with open(path, "w") as file:
            file.write(str(os.getpid()))
        while True:
            try:
                time.sleep(600)
            except KeyboardInterrupt:
                continue

    path = str(tmp_path / "begun")
    ref = stubborn.remote(path)
    wait_until(lambda: os.path.exists(path) and open(path).read())
    pid = int(open(path).read())
    ray.cancel(ref)
    with pytest.raises(ray.exceptions.GetTimeoutError):
        ray.get(ref, timeout=0.2)
    ray.cancel(ref, force=True)
    expect_cancelled(ref, "stubborn")
    wait_until(lambda: not is_alive(pid))
    assert ray.get(same.remote(1)) == 1


def test_what_waits_does_not_begin(tmp_path):
    path = str(tmp_path / "begun")

    @ray.remote
    def touch(_):
        open(path, "w").close()

    blockers = [sleep.remote() for _ in range(2)]
    queued = touch.remote(0)
    waits = touch.remote(blockers[0])
    for ref in (queued, waits, *blockers):
        ray.cancel(ref)
    for ref in (queued, waits, *blockers):
        expect_cancelled(ref, "touch|sleep")
    assert ray.get(same.remote(1)) == 1
    assert not os.path.exists(path)


def test_what_takes_its_return_fails_by_it(tmp_path):
    path = str(tmp_path / "begun")
    first = sleep.remote(path)
    second = same.remote(same.remote(first))
    begun(path)
    ray.cancel(first)
    expect_cancelled(first, "sleep")
    with pytest.raises(TaskCancelledError):
        ray.get(second, timeout=30)


def test_children_go_too_unless_asked_otherwise(tmp_path):
    @ray.remote(num_cpus=0)
    def mark(path):
        with open(path, "w") as file:
            file.write("running")
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            with open(path, "w") as file:
                file.write("stopped")
            raise

    @ray.remote(num_cpus=0)
    def parent(path):
        return ray.get(mark.remote(path))

    for recursive in (True, False):
        path = str(tmp_path / str(recursive))
        ref = parent.remote(path)
        wait_until(lambda path=path: os.path.exists(path) and open(path).read() == "running")
        ray.cancel(ref, recursive=recursive)
        expect_cancelled(ref, "parent")
        if recursive:
            wait_until(lambda path=path: open(path).read() == "stopped")
        else:
            assert open(path).read() == "running"


def test_what_has_ended_is_left_alone():
    ref = same.remote(5)
    assert ray.get(ref) == 5
    ray.cancel(ref)
    ray.cancel(ref, force=True)
    assert ray.get(ref) == 5


def test_a_task_may_clean_up_or_answer_all_the_same(tmp_path):
    @ray.remote
    def answers(path):
        open(path, "w").close()
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            return "all the same"

    @ray.remote(retry_exceptions=True, max_retries=5)
    def raises(path):
        with open(path, "a") as file:
            file.write("x")
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            raise ValueError("interrupted") from None

    path = str(tmp_path / "answers")
    ref = answers.remote(path)
    begun(path)
    ray.cancel(ref)
    assert ray.get(ref, timeout=30) == "all the same"
    path = str(tmp_path / "raises")
    ref = raises.remote(path)
    begun(path)
    ray.cancel(ref)
    with pytest.raises(ValueError, match="interrupted"):
        ray.get(ref, timeout=30)
    assert open(path).read() == "x", "what is cancelled is not tried again"


def test_a_borrower_cancels(tmp_path):
    @ray.remote(num_cpus=0)
    def canceller(boxed):
        ray.cancel(boxed[0])

    path = str(tmp_path / "begun")
    ref = sleep.remote(path)
    begun(path)
    ray.get(canceller.remote([ref]))
    expect_cancelled(ref, "sleep")


@ray.remote
class Actor:
    def __init__(self):
        self.calls = 0

    def count(self):
        self.calls += 1
        return self.calls

    def until_cancelled(self, path):
        open(path, "w").close()
        context = ray.get_runtime_context()
        while not context.is_canceled():
            time.sleep(0.01)
        self.calls = 10
        return ray.put("told"), bytes(1_000_000)


def test_calls_of_actors(tmp_path):
    actor = Actor.remote()
    path = str(tmp_path / "begun")
    running = actor.until_cancelled.remote(path)
    begun(path)
    queued = [actor.count.remote() for _ in range(3)]
    ray.cancel(queued[1])
    expect_cancelled(queued[1], "count")
    ray.cancel(running)
    expect_cancelled(running, "until_cancelled")
    assert ray.get([queued[0], queued[2]]) == [11, 12], "in order, and once each"


@ray.remote
class Async:
    async def sleep(self, path=None):
        if path is not None:
            open(path, "w").close()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            if path is not None:
                with open(path, "w") as file:
                    file.write("told")
            raise

    async def of_child(self, path):
        return await sleep.remote(path)

    async def count(self):
        return 1


def test_calls_of_async_actors(tmp_path):
    actor = Async.options(max_concurrency=2).remote()
    path = str(tmp_path / "begun")
    running = actor.sleep.remote(path)
    begun(path)
    other = actor.sleep.remote()
    queued = actor.sleep.remote()
    ray.cancel(queued)
    expect_cancelled(queued, "sleep")
    ray.cancel(running)
    expect_cancelled(running, "sleep")
    assert open(path).read() == "told"
    assert ray.get(actor.count.remote(), timeout=30) == 1
    ray.cancel(other)
    expect_cancelled(other, "sleep")
    refs = [actor.sleep.remote() for _ in range(50)]
    for ref in refs:
        ray.cancel(ref)
    for ref in refs:
        expect_cancelled(ref, "sleep")
    path = str(tmp_path / "child")
    parent = actor.of_child.remote(path)
    begun(path)
    ray.cancel(parent)
    expect_cancelled(parent, "of_child")
    assert ray.get([same.remote(x) for x in range(10)], timeout=30) == list(range(10))


@ray.remote(max_concurrency=2)
class Threaded:
    def until_cancelled(self, path):
        open(path, "w").close()
        while not ray.get_runtime_context().is_canceled():
            time.sleep(0.01)
        return "told"


def test_calls_of_threaded_actors(tmp_path):
    actor = Threaded.remote()
    paths = [str(tmp_path / str(n)) for n in range(2)]
    refs = [actor.until_cancelled.remote(path) for path in paths]
    for path in paths:
        begun(path)
    ray.cancel(refs[1])
    expect_cancelled(refs[1], "until_cancelled")
    assert not ray.wait(refs[:1], timeout=0.1)[0]
    ray.cancel(refs[0])
    expect_cancelled(refs[0], "until_cancelled")


class SlowlyMade:
    """Its constructor says that it runs, and goes on once it may."""

    def __init__(self, path):
        (path / "begun").touch()
        wait_until((path / "may-go-on").exists)

    def number(self):
        return 5


def test_an_actor_that_is_being_made_is_not_ended_by_cancel(tmp_path):
    """As in Ray, where only `kill` ends actors: neither with the task that makes it, nor with a
    call that waits for it."""

    @ray.remote(num_cpus=0)
    def makes(path):
        made = ray.remote(SlowlyMade).options(num_cpus=0, name="made", lifetime="detached")
        actor = made.remote(path)
        return ray.get(actor.number.remote())

    maker = makes.remote(tmp_path)
    begun(tmp_path / "begun")
    made = ray.get_actor("made")
    unwanted, wanted = made.number.remote(), made.number.remote()
    ray.cancel(unwanted)
    ray.cancel(maker)
    expect_cancelled(unwanted, "number")
    expect_cancelled(maker, "makes")
    (tmp_path / "may-go-on").touch()
    assert ray.get(wanted, timeout=30) == 5
    ray.kill(made)


def test_a_call_that_waits_for_an_actor_with_no_place_to_be():
    actor = ray.remote(SlowlyMade).options(resources={"nowhere": 1}).remote(None)
    ref = actor.number.remote()
    ray.cancel(ref)
    expect_cancelled(ref, "number")
    with pytest.raises(TypeError, match="ObjectRef"):
        ray.cancel(actor)
    ray.kill(actor)


def test_children_of_children_go_at_once(tmp_path):
    """Each generation hears of it from the one before, without waiting for what that says next."""

    @ray.remote(num_cpus=0)
    class Parent:
        def __init__(self, child=None):
            self.child, self.ref = child, None

        async def run(self):
            if self.child is None:
                (tmp_path / "begun").touch()
                await asyncio.sleep(600)
            self.ref = self.child.run.remote()
            await self.ref

        def child_ref(self):
            return [self.ref]

    family = [Parent.remote()]
    for _ in range(4):
        family.append(Parent.remote(family[-1]))
    ref = family[-1].run.remote()
    begun(tmp_path / "begun")
    ray.cancel(ref)
    expect_cancelled(ref, "run")
    for parent in family[1:]:
        [child] = ray.get(parent.child_ref.remote())
        expect_cancelled(child, "run")


def test_on_another_node(tmp_path):
    from oxiray.cluster_utils import Cluster

    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1, resources={"there": 1})
        ray.init(address=cluster.address, logging_level="error")
        path = str(tmp_path / "begun")
        ref = sleep.options(resources={"there": 1}).remote(path)
        behind = sleep.options(resources={"there": 1}).remote()
        begun(path)
        ray.cancel(behind)
        expect_cancelled(behind, "sleep")
        ray.cancel(ref)
        expect_cancelled(ref, "sleep")
        assert ray.get(same.options(resources={"there": 1}).remote(3), timeout=30) == 3
    finally:
        ray.shutdown()
        cluster.shutdown()
        ray.init(num_cpus=2, logging_level="error")


def test_it_is_seen(tmp_path):
    path = str(tmp_path / "begun")
    ref = sleep.options(name="seen").remote(path)
    begun(path)
    ray.cancel(ref)
    expect_cancelled(ref, "seen")
    unbegun = sleep.options(name="seen").remote(sleep.remote())
    ray.cancel(unbegun)
    wait_until(
        lambda: (
            [task.error_type for task in list_tasks(filters=[("name", "=", "seen")])]
            == ["TASK_CANCELLED"] * 2
        )
    )
    assert {task.state for task in list_tasks(filters=[("name", "=", "seen")])} == {"CANCELLED"}
    assert summarize_tasks()["cluster"]["summary"]["sleep"]["state_counts"]["CANCELLED"] >= 2
    drawn = [event for event in ray.timeline() if event.get("name") == "seen"]
    assert [event["args"]["state"] for event in drawn] == ["CANCELLED"] * 2


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: ray.cancel(5), TypeError, "ObjectRef"),
        (lambda: ray.cancel([same.remote(1)]), TypeError, "ObjectRef"),
        (lambda: ray.cancel(ray.put(1)), ValueError, "put"),
        (lambda: ray.cancel(same.remote(1), force=1), TypeError, "force"),
        (lambda: ray.cancel(Actor.remote().count.remote(), force=True), ValueError, "kill"),
    ],
)
def test_bad_input(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_cancels_at_random_points_hit_nobody_else():
    """Every get ends; what was not cancelled has its value, however close a signal came."""

    @ray.remote
    def work(x):
        deadline = time.perf_counter() + 0.0005 * (x % 7)
        while time.perf_counter() < deadline:
            pass
        return x

    dice = random.Random(20261117)
    for _ in range(20):
        refs = [work.remote(x) for x in range(100)]
        unwanted = set(dice.sample(range(100), 50))
        for x in sorted(unwanted, key=lambda _: dice.random()):
            ray.cancel(refs[x])
        for x, ref in enumerate(refs):
            try:
                assert ray.get(ref, timeout=60) == x
            except TaskCancelledError:
                assert x in unwanted
