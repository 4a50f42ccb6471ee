"""Actors whose calls run in threads: `max_concurrency` over one, without `async def` methods."""

from __future__ import annotations

import os
import signal
import threading
import time

import oxiray as ray
import pytest
from conftest import is_alive, wait_until
from oxiray.exceptions import ActorDiedError, PendingCallsLimitExceeded, RayActorError, RayTaskError
from rendezvous import Gate, Meeting

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
class Pool:
    def __init__(self):
        self.local = threading.local()
        self.most = self.now = 0
        self.lock = threading.Lock()
        self.begun = []

    def meet(self, meeting, name):
        return meeting.attend(name), threading.get_ident()

    def enter(self, gate, meeting=None, name=None):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        if meeting is not None:
            meeting.attend(name)
        gate.wait()
        with self.lock:
            self.now -= 1
        return self.most

    def inside(self):
        return self.now

    def begin(self, number):
        self.begun.append(number)
        return number

    def order(self):
        return self.begun

    def who(self):
        context = ray.get_runtime_context()
        return context.get_task_id(), context.get_task_name(), context.get_actor_id()

    def who_later(self, meeting, name):
        before = self.who()
        meeting.attend(name)
        return before, self.who()

    def remember(self, value):
        self.local.value = value
        return threading.get_ident()

    def recall(self):
        return getattr(self.local, "value", None), threading.get_ident()

    def fail(self, text):
        raise ValueError(text)

    def leave(self):
        ray.actor.exit_actor()

    def exit(self):
        raise SystemExit(3)

    def pid(self):
        return os.getpid()

    def double(self, x):
        return 2 * x

    def wait_for(self, refs):
        return ray.get(refs)


def test_as_many_calls_run_at_once_as_allowed(tmp_path):
    pool = Pool.options(max_concurrency=5).remote()
    meeting = Meeting(str(tmp_path), 5)
    results = ray.get([pool.meet.remote(meeting, i) for i in range(5)])
    assert all(came for came, _ in results)
    assert len({thread for _, thread in results}) == 5


def test_no_more_run_at_once_than_allowed(tmp_path):
    pool = Pool.options(max_concurrency=3).remote()
    gate = Gate(str(tmp_path / "gate"))
    meeting = Meeting(str(tmp_path), 4)
    refs = [pool.enter.remote(gate, meeting, i) for i in range(3)]
    waiting = [pool.enter.remote(gate) for _ in range(4)]
    meeting.attend("driver")  # Three are inside.
    # The fourth begins only when one of the first has ended.
    ready, _ = ray.wait(refs + waiting, timeout=0.3)
    assert not ready
    gate.open()
    assert max(ray.get(refs + waiting)) == 3


def test_a_long_call_does_not_hold_up_a_short_one(tmp_path):
    pool = Pool.options(max_concurrency=2).remote()
    gate = Gate(str(tmp_path / "gate"))
    held = pool.enter.remote(gate)
    wait_until(lambda: ray.get(pool.inside.remote()) == 1)
    assert ray.get([pool.double.remote(i) for i in range(100)]) == [2 * i for i in range(100)]
    gate.open()
    ray.get(held)


def test_one_at_a_time_is_in_order():
    pool = Pool.options(max_concurrency=1).remote()
    ray.get([pool.begin.remote(i) for i in range(200)])
    assert ray.get(pool.order.remote()) == list(range(200))


def test_each_call_knows_itself(tmp_path):
    pool = Pool.options(max_concurrency=4).remote()
    meeting = Meeting(str(tmp_path), 4)
    refs = [pool.who_later.remote(meeting, i) for i in range(4)]
    for ref, (before, after) in zip(refs, ray.get(refs), strict=True):
        assert before == after
        assert before == (ref.task_id().hex(), "Pool.who_later", pool._actor_id.hex())


def test_what_is_local_to_a_thread_stays():
    pool = Pool.options(max_concurrency=2).remote()
    threads = {ray.get(pool.remember.remote(7)) for _ in range(20)}
    values = {thread: value for value, thread in ray.get([pool.recall.remote() for _ in range(20)])}
    assert all(values[thread] == 7 for thread in threads & values.keys())


def test_a_call_that_waits_for_arguments_lets_others_pass(tmp_path):
    gate = Gate(str(tmp_path / "gate"))

    @ray.remote
    def later():
        gate.wait()
        return 21

    pool = Pool.options(max_concurrency=2).remote()
    first = pool.double.remote(later.remote())
    assert ray.get(pool.double.remote(1)) == 2
    gate.open()
    assert ray.get(first) == 42


def test_calls_that_wait_for_the_same_actor_do_not_lock_it():
    pool = Pool.options(max_concurrency=2).remote()
    inner = pool.double.remote(5)
    assert ray.get(pool.wait_for.remote([inner])) == [10]
    assert ray.get(pool.wait_for.remote([pool.wait_for.remote([pool.double.remote(1)])])) == [[2]]


def test_errors_are_those_of_their_calls():
    pool = Pool.options(max_concurrency=4).remote()
    refs = [pool.fail.remote(f"number {i}") for i in range(20)]
    for i, ref in enumerate(refs):
        with pytest.raises(ValueError, match=f"number {i}$"):
            ray.get(ref)
    with pytest.raises(RayTaskError):
        ray.get(refs[0])
    assert ray.get(pool.double.remote(1)) == 2


def test_all_cpus_of_waiting_calls_are_lent(fresh):
    fresh(num_cpus=1)

    @ray.remote
    def child():
        return 1

    @ray.remote(num_cpus=1, max_concurrency=2)
    class Parent:
        def run(self):
            return ray.get(child.remote())

    parent = Parent.remote()
    assert ray.get([parent.run.remote() for _ in range(2)], timeout=60) == [1, 1]


def test_exit_lets_what_runs_end(tmp_path):
    pool = Pool.options(max_concurrency=3).remote()
    pid = ray.get(pool.pid.remote())
    gate = Gate(str(tmp_path / "gate"))
    running = pool.enter.remote(gate)
    wait_until(lambda: ray.get(pool.inside.remote()) == 1)
    with_exit = pool.leave.remote()
    ready, _ = ray.wait([with_exit], timeout=0.2)
    assert not ready
    gate.open()
    assert ray.get(running) == 1
    with pytest.raises(ActorDiedError, match="exit_actor"):
        ray.get(with_exit)
    wait_until(lambda: not is_alive(pid))


def test_sys_exit_ends_the_actor():
    pool = Pool.options(max_concurrency=3).remote()
    with pytest.raises(RayActorError, match=r"sys\.exit"):
        ray.get(pool.exit.remote())


def test_the_last_handle_ends_it():
    pool = Pool.options(max_concurrency=3).remote()
    pid = ray.get(pool.pid.remote())
    del pool
    wait_until(lambda: not is_alive(pid))


def test_terminate_ends_it():
    pool = Pool.options(max_concurrency=3).remote()
    pid = ray.get(pool.pid.remote())
    pool.__ray_terminate__.remote()
    wait_until(lambda: not is_alive(pid))


def test_each_get_ends_when_it_is_killed(tmp_path):
    pool = Pool.options(max_concurrency=100).remote()
    pid = ray.get(pool.pid.remote())
    gate = Gate(str(tmp_path / "gate"))
    refs = [pool.enter.remote(gate) for _ in range(99)]
    wait_until(lambda: ray.get(pool.inside.remote()) == 99)
    refs += [pool.enter.remote(gate) for _ in range(20)]  # of which most wait
    os.kill(pid, signal.SIGKILL)
    for ref in refs:
        with pytest.raises(RayActorError):
            ray.get(ref, timeout=60)


def test_calls_that_may_be_retried_are_after_a_kill(tmp_path):
    @ray.remote(max_restarts=1, max_task_retries=1, max_concurrency=10)
    class Restarted:
        def pid(self):
            return os.getpid()

        def held(self, gate, number):
            open(tmp_path / f"begun-{number}-{os.getpid()}", "w").close()
            gate.wait()
            return number

    actor = Restarted.remote()
    gate = Gate(str(tmp_path / "gate"))
    pid = ray.get(actor.pid.remote())
    refs = [actor.held.remote(gate, i) for i in range(10)]
    wait_until(lambda: len(list(tmp_path.glob(f"begun-*-{pid}"))) == 10)
    os.kill(pid, signal.SIGKILL)
    gate.open()
    assert ray.get(refs, timeout=60) == list(range(10))


def test_no_more_calls_are_pending_than_allowed(tmp_path):
    pool = Pool.options(max_pending_calls=3, max_concurrency=2).remote()
    gate = Gate(str(tmp_path / "gate"))
    held = [pool.enter.remote(gate) for _ in range(3)]
    with pytest.raises(PendingCallsLimitExceeded, match=r"Pool\.double.*max_pending_calls"):
        pool.double.remote(1)
    gate.open()
    ray.get(held)
    assert ray.get(pool.double.remote(1)) == 2


def test_several_at_once_cannot_be_in_order():
    with pytest.raises(ValueError, match=r"multi-threaded.*allow_out_of_order_execution"):
        Pool.options(max_concurrency=2, allow_out_of_order_execution=False).remote()


def test_one_at_a_time_may_be_out_of_order(tmp_path):
    gate = Gate(str(tmp_path / "gate"))

    @ray.remote
    def later():
        gate.wait()
        return 1

    pool = Pool.options(allow_out_of_order_execution=True).remote()
    first = pool.double.remote(later.remote())
    assert ray.get(pool.double.remote(2)) == 4
    gate.open()
    assert ray.get(first) == 2


def test_a_handle_that_was_given_on_calls_the_same(tmp_path):
    @ray.remote
    def call_twice(pool, meeting):
        return ray.get([pool.meet.remote(meeting, i) for i in range(2)])

    pool = Pool.options(max_concurrency=2).remote()
    results = ray.get(call_twice.remote(pool, Meeting(str(tmp_path), 2)))
    assert all(came for came, _ in results)


def test_running_calls_are_listed(tmp_path):
    from oxiray.util.state import list_tasks

    pool = Pool.options(max_concurrency=3).remote()
    gate = Gate(str(tmp_path / "gate"))
    refs = [pool.enter.remote(gate) for _ in range(3)]
    ids = {ref.task_id().hex() for ref in refs}

    def running():
        rows = list_tasks(filters=[("state", "=", "RUNNING")], limit=1000)
        return ids <= {row.task_id for row in rows}

    wait_until(running)
    gate.open()
    ray.get(refs)
    wait_until(lambda: not running())


def test_what_a_call_submits_has_it_as_parent(tmp_path):
    from oxiray.util.state import get_task

    @ray.remote
    def child():
        return 1

    @ray.remote(max_concurrency=2)
    class Parent:
        def run(self, meeting, name):
            meeting.attend(name)
            ref = child.remote()
            meeting.attend(name)
            ray.get(ref)
            return ref.task_id().hex(), ray.get_runtime_context().get_task_id()

    parent = Parent.remote()
    meeting = Meeting(str(tmp_path), 2)
    for made, maker in ray.get([parent.run.remote(meeting, i) for i in range(2)]):
        row = wait_until(lambda made=made: get_task(made))
        assert row.parent_task_id == maker


def test_each_line_is_that_of_its_call(fresh, tmp_path):
    from oxiray.util.state import get_log

    fresh()

    @ray.remote(max_concurrency=4)
    class Printer:
        def say(self, meeting, number):
            for _ in range(50):
                print("begun by", end=" ")
                time.sleep(0)
                print(number)
            print(f"{number} unended", end="")
            meeting.attend(number)

    printer = Printer.remote()
    refs = [printer.say.remote(Meeting(str(tmp_path), 4), i) for i in range(4)]
    ray.get(refs)

    def printed(ref):
        return "".join(get_log(task_id=ref.task_id().hex())).splitlines()

    for number, ref in enumerate(refs):
        wait_until(lambda ref=ref: len(printed(ref)) == 51)
        assert printed(ref) == [f"begun by {number}"] * 50 + [f"{number} unended"]


def test_threads_do_not_slow_down_many_short_calls():
    pool = Pool.options(max_concurrency=16).remote()
    ray.get(pool.double.remote(1))
    start = time.monotonic()
    assert ray.get([pool.double.remote(i) for i in range(3000)]) == [2 * i for i in range(3000)]
    assert time.monotonic() - start < 30
