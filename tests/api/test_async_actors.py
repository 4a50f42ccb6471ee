"""Actors with `async def` methods, and refs that are awaited, in actors and in the driver."""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import subprocess
import sys
import threading
import time

import oxiray as ray
import pytest
from conftest import is_alive, wait_until
from oxiray.exceptions import ActorDiedError, RayActorError, RayTaskError, TaskCancelledError
from oxiray.util.state import get_log
from oxiray.util.state.exception import RayStateApiException
from rendezvous import Gate

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
def double(x):
    return 2 * x


@ray.remote
def fail(text):
    raise ValueError(text)


@ray.remote
def held(gate):
    gate.wait()
    return "opened"


@ray.remote
class Server:
    def __init__(self):
        self.event = asyncio.Event()
        self.loop = asyncio.get_event_loop()
        self.begun = []
        self.most = self.inside = 0

    async def echo(self, x):
        return x

    async def wait(self):
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self.event.wait()
        self.inside -= 1
        return self.most

    async def open(self):
        self.event.set()

    async def begin(self, number):
        self.begun.append(number)
        await asyncio.sleep(0)

    def count(self):
        return self.inside

    def order(self):
        return self.begun

    def thread(self):
        return threading.get_ident(), threading.current_thread() is threading.main_thread()

    async def async_thread(self):
        assert asyncio.get_running_loop() is self.loop
        return threading.get_ident(), threading.current_thread() is threading.main_thread()

    async def double(self, x):
        return await double.remote(x)

    async def gather(self, numbers):
        return await asyncio.gather(*[double.remote(number) for number in numbers])

    async def who(self):
        context = ray.get_runtime_context()
        before = context.get_task_id(), context.get_task_name()
        await asyncio.sleep(0.01)
        task = asyncio.create_task(self.helper())
        assert before == (context.get_task_id(), context.get_task_name())
        return *before, await task

    async def helper(self):
        return ray.get_runtime_context().get_task_id()

    async def current(self):
        task = asyncio.current_task()
        return task is not None and not task.done()

    async def fail(self, text):
        await asyncio.sleep(0)
        raise KeyError(text)

    def fail_plainly(self):
        raise KeyError("plain")

    async def leave(self):
        ray.actor.exit_actor()

    async def exit(self):
        raise SystemExit(2)

    async def interrupt(self):
        raise KeyboardInterrupt

    async def pid(self):
        return os.getpid()

    async def stop_loop(self):
        asyncio.get_running_loop().stop()
        return "stopped"

    async def close_loop(self):
        asyncio.get_running_loop().close()

    async def block(self, ref):
        return ray.get(ref[0])

    def forgotten(self):
        return self.echo(1)

    async def several(self):
        return 1, 2

    async def cancel_itself(self):
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    async def spawn(self):
        self.spawned = asyncio.create_task(self.event.wait())
        return "spawned"

    async def wait_for_spawned(self):
        self.event.set()
        return await self.spawned

    async def call(self, handle, x):
        return await handle.echo.remote(x)


def test_calls_wait_for_each_other():
    server = Server.remote()
    waiting = [server.wait.remote() for _ in range(50)]
    wait_until(lambda: ray.get(server.count.remote()) == 50)
    ray.get(server.open.remote())
    assert ray.get(waiting) == [50] * 50


def test_no_more_run_at_once_than_allowed():
    server = Server.options(max_concurrency=4).remote()
    waiting = [server.wait.remote() for _ in range(3)]
    wait_until(lambda: ray.get(server.count.remote()) == 3)
    last = server.wait.remote()
    behind = [server.echo.remote(i) for i in range(10)]
    ready, _ = ray.wait(behind, timeout=0.3)
    assert not ready, "four run"
    ray.kill(server)
    for ref in [*waiting, last, *behind]:
        with pytest.raises(RayActorError):
            ray.get(ref)


def test_a_thousand_run_at_once_unless_told_otherwise():
    server = Server.remote()
    waiting = [server.wait.remote() for _ in range(999)]
    wait_until(lambda: ray.get(server.count.remote()) == 999)
    waiting.append(server.wait.remote())
    opened = server.open.remote()
    ready, _ = ray.wait([opened], timeout=0.5)
    assert not ready
    ray.kill(server)
    with pytest.raises(RayActorError):
        ray.get(waiting)


def test_more_than_the_callers_window_may_wait_for_the_last():
    server = Server.options(max_concurrency=5000).remote()
    waiting = [server.wait.remote() for _ in range(3000)]
    ray.get(server.open.remote())
    assert max(ray.get(waiting)) == 3000


def test_calls_begin_in_order():
    server = Server.remote()
    ray.get([server.begin.remote(i) for i in range(500)])
    assert ray.get(server.order.remote()) == list(range(500))


def test_plain_methods_run_on_the_loop_in_the_main_thread():
    server = Server.remote()
    plain, on_loop = ray.get([server.thread.remote(), server.async_thread.remote()])
    assert plain == on_loop
    assert plain[1]


def test_refs_are_awaited_in_actors():
    server = Server.remote()
    assert ray.get(server.double.remote(21)) == 42
    assert ray.get(server.gather.remote(list(range(100)))) == [2 * i for i in range(100)]
    assert ray.get([server.double.remote(i) for i in range(50)]) == [2 * i for i in range(50)]


def test_an_actor_may_await_itself():
    server = Server.remote()
    assert ray.get(server.call.remote(server, "itself")) == "itself"


def test_each_coroutine_knows_its_call():
    server = Server.remote()
    refs = [server.who.remote() for _ in range(30)]
    for ref, (task, name, spawned) in zip(refs, ray.get(refs), strict=True):
        assert task == spawned == ref.task_id().hex()
        assert name == "Server.who"


def test_the_current_task_is_known():
    assert ray.get(Server.remote().current.remote())


def test_errors_are_those_of_their_calls():
    server = Server.remote()
    refs = [server.fail.remote(i) for i in range(20)]
    for i, ref in enumerate(refs):
        with pytest.raises(KeyError) as caught:
            ray.get(ref)
        assert caught.value.args == (i,)
        assert isinstance(caught.value, RayTaskError)
        assert "_event_loop" not in str(caught.value), "no frames of the engine"
    with pytest.raises(KeyError, match="plain"):
        ray.get(server.fail_plainly.remote())
    with pytest.raises(TaskCancelledError, match="interrupt"):
        ray.get(server.interrupt.remote())
    with pytest.raises(TaskCancelledError, match="cancel_itself"):
        ray.get(server.cancel_itself.remote())
    assert ray.get(server.echo.remote(1)) == 1


def test_several_returns():
    one, two = Server.remote().several.options(num_returns=2).remote()
    assert ray.get([one, two]) == [1, 2]


def test_tasks_that_the_user_spawns_outlive_their_call():
    server = Server.remote()
    assert ray.get(server.spawn.remote()) == "spawned"
    assert ray.get(server.wait_for_spawned.remote()) is True


def test_exit_lets_what_runs_end():
    server = Server.remote()
    pid = ray.get(server.pid.remote())
    waiting = server.wait.remote()
    wait_until(lambda: ray.get(server.count.remote()) == 1)
    server.open.remote()
    with pytest.raises(ActorDiedError, match="exit_actor"):
        ray.get(server.leave.remote())
    assert ray.get(waiting) == 1
    wait_until(lambda: not is_alive(pid))
    with pytest.raises(RayActorError):
        ray.get(server.echo.remote(1))


def test_sys_exit_ends_the_actor():
    server = Server.remote()
    with pytest.raises(RayActorError, match=r"sys\.exit"):
        ray.get(server.exit.remote())


def test_the_last_handle_ends_it():
    server = Server.remote()
    pid = ray.get(server.pid.remote())
    del server
    wait_until(lambda: not is_alive(pid))


def test_the_last_handle_lets_what_runs_end():
    server = Server.remote()
    pid = ray.get(server.pid.remote())
    ref = server.wait.remote()
    server.open.remote()
    del server
    assert ray.get(ref) == 1
    wait_until(lambda: not is_alive(pid))


def test_each_get_ends_when_it_is_killed():
    server = Server.remote()
    pid = ray.get(server.pid.remote())
    refs = [server.wait.remote() for _ in range(100)]
    wait_until(lambda: ray.get(server.count.remote()) == 100)
    os.kill(pid, signal.SIGKILL)
    for ref in refs:
        with pytest.raises(RayActorError):
            ray.get(ref, timeout=60)


def test_it_is_started_again(tmp_path):
    server = Server.options(max_restarts=1, max_task_retries=1).remote()
    pid = ray.get(server.pid.remote())
    refs = [server.wait.remote() for _ in range(20)]
    wait_until(lambda: ray.get(server.count.remote()) == 20)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: ray.get(server.count.remote()) == 20)
    ray.get(server.open.remote())
    assert ray.get(refs, timeout=60)
    assert ray.get(server.pid.remote()) != pid


def test_a_loop_that_user_code_stops_goes_on():
    server = Server.remote()
    assert ray.get(server.stop_loop.remote()) == "stopped"
    assert ray.get(server.echo.remote(1)) == 1


def complaints(actor):
    """What an actor's process has said of itself."""
    try:
        return "".join(get_log(actor_id=actor._actor_id.hex(), suffix="err"))
    except RayStateApiException:  # nothing yet
        return ""


def test_a_blocked_loop_is_told_with_its_stack(tmp_path):
    @ray.remote
    class Blocked:
        async def block(self, gate):
            self.sleep_here(gate)
            return "over"

        def sleep_here(self, gate):
            gate.wait()

        async def echo(self, x):
            return x

    actor = Blocked.remote()
    ray.get(actor.echo.remote(1))
    gate = Gate(str(tmp_path / "gate"))
    blocking = actor.block.remote(gate)
    waiting = actor.echo.remote(2)

    def why():
        program = os.path.join(os.path.dirname(ray.__file__), "_bin", "oxiray")
        command = [program, "why", waiting.task_id().hex()]
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout

    wait_until(lambda: "sleep_here" in why(), timeout=60)
    said = why()
    assert "event loop has begun nothing for" in said and "test_async_actors.py" in said
    assert "asyncio/" not in said and "oxiray/_" not in said, "the user's frames alone"

    wait_until(lambda: "asyncio.to_thread" in complaints(actor))
    assert "sleep_here" in complaints(actor)
    gate.open()
    assert ray.get([blocking, waiting]) == ["over", 2]
    assert "begun nothing" not in why()
    assert complaints(actor).count("begun nothing") == 1, "once each time"


def test_a_loop_that_waits_in_get_is_told(tmp_path):
    @ray.remote
    class Getting:
        async def block(self, gate):
            return ray.get(held.remote(gate))

        async def echo(self, x):
            return x

    actor = Getting.remote()
    ray.get(actor.echo.remote(1))
    gate = Gate(str(tmp_path / "gate"))
    blocking = actor.block.remote(gate)
    waiting = actor.echo.remote(2)

    wait_until(lambda: "begun nothing" in complaints(actor), timeout=60)
    assert "Using blocking ray.get inside async actor" in complaints(actor)
    gate.open()
    assert ray.get([blocking, waiting]) == ["opened", 2]


def test_a_running_loop_cannot_be_closed():
    server = Server.remote()
    with pytest.raises(RuntimeError, match="Cannot close a running event loop"):
        ray.get(server.close_loop.remote())
    assert ray.get(server.echo.remote(1)) == 1


def test_an_actor_whose_loop_was_closed_says_so():
    @ray.remote
    class Closed:
        def __init__(self):
            asyncio.get_event_loop().close()

        async def echo(self):
            return 1

    with pytest.raises(RayActorError, match="event loop was closed"):
        ray.get(Closed.remote().echo.remote())


def test_a_coroutine_that_nobody_awaits_is_an_error():
    with pytest.raises(TypeError, match=r"Server\.forgotten.*coroutine.*await"):
        ray.get(Server.remote().forgotten.remote())


def test_a_blocking_get_is_warned_of(driver):
    result = driver(
        """
        import oxiray as ray
        ray.init(num_cpus=2, include_dashboard=False)

        @ray.remote
        def slow():
            import time
            time.sleep(0.3)
            return 1

        @ray.remote
        class Blocking:
            async def get(self, refs):
                return ray.get(refs[0])

            async def wait(self, refs):
                return len(ray.wait(refs)[0])

        actor = Blocking.remote()
        print(ray.get(actor.get.remote([slow.remote()])))
        print(ray.get(actor.wait.remote([slow.remote()])))
        """
    )
    assert "Using blocking ray.get inside async actor" in result.stderr + result.stdout
    assert "Using blocking ray.wait inside async actor" in result.stderr + result.stdout


def test_async_actors_cannot_be_in_order():
    with pytest.raises(ValueError, match=r"async.*allow_out_of_order_execution"):
        Server.options(allow_out_of_order_execution=False).remote()


def test_refs_are_awaited_in_the_driver(tmp_path):
    server = Server.remote()

    async def main(gate):
        assert await double.remote(1) == 2
        assert await server.echo.remote("x") == "x"
        assert await ray.put(3) == 3
        ref = ray.put([1])
        assert await ref is not None
        assert await ref == [1], "a ref may be awaited again"
        assert len(await ray.put(bytes(500_000))) == 500_000
        with pytest.raises(ValueError, match="from a task"):
            await fail.remote("from a task")
        with pytest.raises(KeyError):
            await server.fail.remote("k")
        several = await asyncio.gather(*[double.remote(i) for i in range(200)])
        assert several == [2 * i for i in range(200)]
        mixed = await asyncio.gather(
            double.remote(1), fail.remote("x"), asyncio.sleep(0, "slept"), return_exceptions=True
        )
        assert mixed[0] == 2 and isinstance(mixed[1], ValueError) and mixed[2] == "slept"
        waiting = held.remote(gate)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(waiting, 0.1)
        futures = [waiting.as_future(), double.remote(4).as_future()]
        done, pending = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        assert done == {futures[1]} and pending == {futures[0]}
        for first in asyncio.as_completed([held.remote(gate), double.remote(5)]):
            assert await first == 10
            break
        gate.open()
        assert await waiting == "opened"
        assert await asyncio.wrap_future(double.remote(6).future()) == 12

    asyncio.run(main(Gate(str(tmp_path / "first"))))
    asyncio.run(main(Gate(str(tmp_path / "second"))))  # on another loop


@pytest.mark.skipif(sys.version_info < (3, 11), reason="its asyncio.wait makes tasks of all")
def test_refs_are_waited_for_as_they_are(tmp_path):
    async def main(gate):
        waiting, quick, failing = held.remote(gate), double.remote(4), fail.remote("x")
        done, pending = await asyncio.wait([waiting, quick], return_when=asyncio.FIRST_COMPLETED)
        assert (done, pending) == ({quick}, {waiting})
        assert [ray.get(ref) for ref in done] == [8]
        done, pending = await asyncio.wait([waiting, failing], return_when="FIRST_EXCEPTION")
        assert (done, pending) == ({failing}, {waiting})
        assert isinstance(failing.exception(), ValueError) and quick.exception() is None
        with pytest.raises(asyncio.InvalidStateError):
            waiting.exception()
        assert await asyncio.wait([waiting], timeout=0.05) == (set(), {waiting})
        gate.open()
        done, _ = await asyncio.wait([waiting, failing, quick])
        assert done == {waiting, failing, quick}
        assert all(ref.done() and not ref.cancelled() for ref in done)

    asyncio.run(main(Gate(str(tmp_path / "gate"))))


def test_a_callback_hears_of_a_value_or_an_error():
    heard = queue.SimpleQueue()
    for ref in (double.remote(2), ray.put("put"), fail.remote("said")):
        assert ref._on_completed(heard.put) is ref
    values = [heard.get(timeout=30) for _ in range(3)]
    errors = [value for value in values if isinstance(value, Exception)]
    assert [type(error.cause) for error in errors] == [ValueError]
    assert {value for value in values if not isinstance(value, Exception)} == {4, "put"}
    future = double.remote(3).future()
    assert future.result(30) == 6 and isinstance(future.object_ref, ray.ObjectRef)


def test_an_actors_death_is_heard_by_who_awaits():
    server = Server.remote()

    async def main():
        refs = [server.wait.remote() for _ in range(100)]
        pid = await server.pid.remote()
        os.kill(pid, signal.SIGKILL)
        return await asyncio.gather(*refs, return_exceptions=True)

    assert all(isinstance(error, RayActorError) for error in asyncio.run(main()))


def test_the_end_of_the_session_is_heard_by_who_awaits(fresh, tmp_path):
    fresh()
    gate = Gate(str(tmp_path / "gate"))

    async def main():
        waiting = held.remote(gate).as_future()
        await asyncio.sleep(0.1)
        ray.shutdown()
        with pytest.raises(Exception, match="session"):
            await asyncio.wait_for(waiting, 30)

    asyncio.run(main())


def test_many_loops_in_threads_await_at_once():
    def run(results, start):
        async def main():
            return await asyncio.gather(*[double.remote(start + i) for i in range(50)])

        results[start] = asyncio.run(main())

    results = {}
    threads = [threading.Thread(target=run, args=(results, 1000 * n)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(values == [2 * (start + i) for i in range(50)] for start, values in results.items())
    assert len(results) == 5


def test_what_coroutines_print_is_shown_as_theirs(fresh, tmp_path):
    fresh()

    @ray.remote
    class Printer:
        async def say(self, number):
            print(f"first {number}")
            await asyncio.sleep(0.05)
            print(f"second {number}")

    printer = Printer.remote()
    refs = [printer.say.remote(i) for i in range(5)]
    ray.get(refs)
    from oxiray.util.state import get_log

    for number, ref in enumerate(refs):
        lines = wait_until(
            lambda ref=ref: (
                found
                if len(found := "".join(get_log(task_id=ref.task_id().hex())).split("\n")) > 2
                else None
            )
        )
        assert [line for line in lines if line] == [f"first {number}", f"second {number}"]


def test_a_busy_loop_that_calls_others_is_prompt():
    @ray.remote
    class Caller:
        async def run(self, count):
            start = time.monotonic()
            for i in range(count):
                assert await double.remote(i) == 2 * i
            return time.monotonic() - start

    caller = Caller.remote()
    ray.get(caller.run.remote(10))
    # A turn of the pump's nap for each would be a millisecond and more.
    assert min(ray.get(caller.run.remote(200)) for _ in range(3)) < 20


def test_ten_thousand_coroutines_take_less_than_50_mb():
    @ray.remote(max_concurrency=20_000)
    class Crowd:
        def __init__(self):
            self.event = asyncio.Event()
            self.inside = 0

        async def wait(self):
            self.inside += 1
            await self.event.wait()

        def memory(self):
            with open("/proc/self/smaps_rollup") as file:
                for line in file:
                    if line.startswith("Private_Dirty"):
                        return int(line.split()[1]) * 1024
            raise AssertionError

        def count(self):
            return self.inside

        def open(self):
            self.event.set()

    crowd = Crowd.remote()
    before = ray.get(crowd.memory.remote())
    refs = [crowd.wait.remote() for _ in range(10_000)]
    wait_until(lambda: ray.get(crowd.count.remote()) == 10_000)
    assert ray.get(crowd.memory.remote()) - before < 50 << 20
    ray.get(crowd.open.remote())
    ray.get(refs)
