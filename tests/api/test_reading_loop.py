"""Loops of actors that read for themselves: whatever a loop waits for ends its sleep."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time

import oxiray as ray
import pytest
from conftest import wait_until

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
def same(value):
    return value


@ray.remote(num_cpus=0)
class Actor:
    def __init__(self):
        self.heard = []

    async def nothing(self):
        return None

    async def is_reading(self):
        return asyncio.get_running_loop().is_reading

    async def hear(self):
        return self.heard

    async def from_thread(self):
        """A thread of the user's wakes the loop, which has nothing else to do."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        threading.Timer(0.05, loop.call_soon_threadsafe, [event.set]).start()
        await asyncio.wait_for(event.wait(), 20)
        return True

    async def in_executor(self):
        return await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0.02)

    async def awaits(self, value):
        return await same.remote(value)

    async def sleeps(self, seconds):
        begin = time.monotonic()
        await asyncio.sleep(seconds)
        return time.monotonic() - begin

    async def serve(self):
        async def echo(reader, writer):
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()

        self.server = await asyncio.start_server(echo, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def close(self):
        self.server.close()
        await self.server.wait_closed()

    async def listen(self, number):
        asyncio.get_running_loop().add_signal_handler(number, self.heard.append, number)
        return os.getpid()

    async def listen_plainly(self, number):
        signal.signal(number, lambda *_: self.heard.append(number))
        return os.getpid()

    async def listen_no_more(self, number):
        return asyncio.get_running_loop().remove_signal_handler(number)

    async def switches(self):
        """How often the threads of this process gave up their processor to wait."""
        total = 0
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/status") as file:
                [line] = [one for one in file if one.startswith("voluntary_ctxt_switches")]
            total += int(line.split()[1])
        return total


@pytest.fixture
def actor():
    actor = Actor.remote()
    assert ray.get(actor.is_reading.remote())
    yield actor
    assert ray.get(actor.is_reading.remote())
    ray.kill(actor)


def test_what_threads_have_for_it(actor):
    assert ray.get([actor.from_thread.remote() for _ in range(20)], timeout=60) == [True] * 20
    ray.get([actor.in_executor.remote() for _ in range(20)], timeout=60)


def test_values_and_time(actor):
    assert ray.get([actor.awaits.remote(i) for i in range(50)], timeout=60) == list(range(50))
    for slept in ray.get([actor.sleeps.remote(0.05) for _ in range(5)], timeout=60):
        assert slept >= 0.05


def test_descriptors_of_the_user(actor):
    port = ray.get(actor.serve.remote())
    assert not ray.get(actor.is_reading.remote())
    for text in (b"one\n", b"two\n"):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(text)
            assert client.recv(10) == text
        # Calls, values and threads come all the same.
        assert ray.get(actor.awaits.remote(5), timeout=60) == 5
        assert ray.get(actor.from_thread.remote(), timeout=60)
    ray.get(actor.close.remote())
    wait_until(lambda: ray.get(actor.is_reading.remote()))


def test_a_value_that_comes_while_it_changes_where_it_sleeps(actor):
    for _ in range(10):
        value = actor.awaits.remote(1)
        ray.get(actor.serve.remote())
        thread = actor.from_thread.remote()
        ray.get(actor.close.remote())
        assert ray.get([value, thread], timeout=60) == [1, True]


@pytest.mark.parametrize("how", ["loop", "plain"])
def test_signals(actor, how):
    listen = actor.listen if how == "loop" else actor.listen_plainly
    pid = ray.get(listen.remote(signal.SIGUSR2))
    os.kill(pid, signal.SIGUSR2)
    wait_until(lambda: ray.get(actor.hear.remote()) == [signal.SIGUSR2])
    if how == "loop":
        assert not ray.get(actor.is_reading.remote())
        assert ray.get(actor.listen_no_more.remote(signal.SIGUSR2))


def test_it_sleeps_while_there_is_nothing_to_do(actor):
    waits = actor.sleeps.remote(600)  # a call that runs, too
    quiet = []

    def is_quiet():
        before = ray.get(actor.switches.remote())
        time.sleep(0.5)
        quiet.append(ray.get(actor.switches.remote()) - before)
        return quiet[-1] < 50

    wait_until(is_quiet, 30, str(quiet))
    ray.cancel(waits)


def test_a_loop_that_was_used_by_the_constructor():
    """What it opened then it does not see by itself: so it sleeps on descriptors."""

    @ray.remote(num_cpus=0)
    class Early:
        def __init__(self):
            async def value():
                return await same.remote(5)

            self.value = asyncio.get_event_loop().run_until_complete(value())

        async def awaits(self):
            return self.value, await same.remote(6)

    early = Early.remote()
    assert ray.get([early.awaits.remote() for _ in range(3)], timeout=60) == [(5, 6)] * 3
    ray.kill(early)


def test_a_loop_of_the_users_own_kind():
    def set_policy():
        class OwnLoop(asyncio.SelectorEventLoop):
            pass

        class Policy(asyncio.DefaultEventLoopPolicy):
            _loop_factory = OwnLoop

        asyncio.set_event_loop_policy(Policy())

    @ray.remote(num_cpus=0, runtime_env={"worker_process_setup_hook": set_policy})
    class Own:
        async def kind(self):
            return type(asyncio.get_running_loop()).__name__, await same.remote(7)

    own = Own.remote()
    assert ray.get(own.kind.remote(), timeout=60) == ("OwnLoop", 7)
    ray.kill(own)
