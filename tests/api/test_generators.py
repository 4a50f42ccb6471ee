"""Streams: what a generator yields comes as it is made, in order, and once."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import signal
import threading
import time

import numpy as np
import oxiray as ray
import pytest
from conftest import wait_until
from oxiray import _native
from oxiray.exceptions import (
    ActorDiedError,
    RayTaskError,
    TaskCancelledError,
    WorkerCrashedError,
)
from oxiray.util.state import list_tasks


@pytest.fixture(scope="module", autouse=True)
def session():
    ray.shutdown()
    ray.init(num_cpus=4, logging_level="error")
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def nothing_leaks():
    before = _native.counts()
    yield
    gc.collect()  # errors that were caught hold the frames that caught them
    wait_until(lambda: _native.counts() <= before, 20, f"{_native.counts()}, before {before}")


@ray.remote
def count(until):
    yield from range(until)


@ray.remote
def logged(path, until, error_at=None):
    """Says in a file how far it is."""
    for number in range(until):
        with open(path, "a") as file:
            file.write(f"{number}\n")
        if number == error_at:
            raise ValueError("in the middle")
        yield number


def made(path):
    return open(path).read().split() if os.path.exists(path) else []


class Numbers:
    def plain(self, until):
        yield from range(until)

    def none(self):
        return 7


class AsyncNumbers(Numbers):
    async def slow(self, until):
        for number in range(until):
            await asyncio.sleep(0)
            yield number


def values(generator):
    return [ray.get(ref, timeout=30) for ref in generator]


def test_items_come_in_order():
    generator = count.remote(5)
    assert isinstance(generator, ray.ObjectRefGenerator)
    assert values(generator) == [0, 1, 2, 3, 4]
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(generator)


def test_none_at_all():
    assert values(count.remote(0)) == []


def test_many():
    assert values(count.remote(20_000)) == list(range(20_000))


@pytest.mark.parametrize("options", [{}, {"max_concurrency": 3}], ids=["in turn", "threads"])
def test_methods(options):
    actor = ray.remote(Numbers).options(**options).remote()
    assert values(actor.plain.remote(3)) == [0, 1, 2]
    assert ray.get(actor.none.remote()) == 7


def test_methods_of_async_actors():
    actor = ray.remote(AsyncNumbers).remote()
    generators = [actor.slow.remote(50) for _ in range(5)] + [actor.plain.remote(50)]
    for generator in generators:
        assert values(generator) == list(range(50))


def test_an_async_generator_as_a_task():
    @ray.remote
    async def slow(until):
        for number in range(until):
            await asyncio.sleep(0.001)
            yield number

    assert values(slow.remote(3)) == [0, 1, 2]


def test_an_item_is_there_before_the_next_is_made(gate):
    @ray.remote
    def two(gate):
        yield np.ones(1_000_000)
        gate.wait()
        yield "second"

    generator = two.remote(gate)
    first = ray.get(next(generator), timeout=30)
    assert first.sum() == 1_000_000
    assert not generator.next_ready()
    assert not generator.is_finished()
    assert ray.wait([generator.completed()], timeout=0) == ([], [generator.completed()])
    gate.open()
    assert values(generator) == ["second"]
    assert generator.is_finished()
    assert not generator.next_ready()
    assert ray.get(generator.completed(), timeout=30) is None


def test_refs_in_items():
    @ray.remote
    def puts():
        for number in range(3):
            yield [ray.put(number), ray.put(np.full(200_000, number))]

    for number, ref in enumerate(puts.remote()):
        small, large = ray.get(ref)
        del ref
        assert ray.get(small) == number
        assert (ray.get(large) == number).all()


def test_items_as_arguments():
    @ray.remote
    def double(number):
        return 2 * number

    assert ray.get([double.remote(ref) for ref in count.remote(4)]) == [0, 2, 4, 6]


def test_an_error_is_the_last_item(tmp_path):
    generator = logged.remote(str(tmp_path / "made"), 5, error_at=2)
    assert ray.get(next(generator)) == 0
    assert ray.get(next(generator)) == 1
    last = next(generator)
    with pytest.raises(ValueError, match="in the middle") as raised:
        ray.get(last)
    assert isinstance(raised.value, RayTaskError)
    with pytest.raises(StopIteration):
        next(generator)
    assert generator.is_finished()
    assert ray.get(generator.completed()) is None


def test_an_item_that_cannot_be_pickled():
    @ray.remote
    def unpicklable():
        yield 1
        yield threading.Lock()

    generator = unpicklable.remote()
    assert ray.get(next(generator)) == 1
    with pytest.raises(TypeError, match="serialize"):
        ray.get(next(generator))
    with pytest.raises(StopIteration):
        next(generator)


def test_a_failed_argument():
    @ray.remote
    def fails():
        raise KeyError("early")

    generator = count.remote(fails.remote())
    with pytest.raises(KeyError):
        ray.get(next(generator))
    with pytest.raises(StopIteration):
        next(generator)
    with pytest.raises(KeyError):
        ray.get(generator.completed())


def test_retried_after_an_exception(tmp_path):
    @ray.remote(retry_exceptions=[ValueError], max_retries=3)
    def once(path):
        yield "a"
        yield "b"
        if not os.path.exists(path):
            open(path, "w").close()
            raise ValueError
        yield "c"

    assert values(once.remote(str(tmp_path / "tried"))) == ["a", "b", "c"]


@pytest.mark.parametrize("size", [1, 200_000], ids=["small", "large"])
def test_a_worker_that_dies_in_the_middle(tmp_path, size):
    @ray.remote(max_retries=3)
    def dies(path):
        for number in range(6):
            if number == 4 and not os.path.exists(path):
                open(path, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            yield np.full(size, number)

    got = [int(value[0]) for value in values(dies.remote(str(tmp_path / "died")))]
    assert got == [0, 1, 2, 3, 4, 5]


def test_a_worker_that_dies_for_good():
    @ray.remote(max_retries=0)
    def dies():
        yield 1
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)

    generator = dies.remote()
    assert ray.get(next(generator)) == 1
    with pytest.raises(WorkerCrashedError):
        ray.get(next(generator))
    with pytest.raises(StopIteration):
        next(generator)
    with pytest.raises(WorkerCrashedError):
        ray.get(generator.completed())


def test_an_actor_that_dies(gate):
    @ray.remote
    class Dying:
        def numbers(self, gate):
            yield 1
            gate.wait()
            yield 2

    actor = Dying.remote()
    generator = actor.numbers.remote(gate)
    assert ray.get(next(generator)) == 1
    ray.kill(actor)
    with pytest.raises(ActorDiedError):
        ray.get(next(generator))
    with pytest.raises(StopIteration):
        next(generator)


def test_backpressure(tmp_path):
    path = str(tmp_path / "made")
    generator = logged.options(_generator_backpressure_num_objects=2).remote(path, 8)
    for number in range(6):
        wait_until(lambda number=number: len(made(path)) == number + 2)
        time.sleep(0.02)
        assert len(made(path)) == number + 2
        assert ray.get(next(generator)) == number
    assert values(generator) == [6, 7]


def test_backpressure_of_async_methods():
    @ray.remote
    class Counting:
        def __init__(self):
            self.made = 0

        @ray.method(_generator_backpressure_num_objects=3)
        async def numbers(self):
            for number in range(10):
                self.made += 1
                yield number

        async def so_far(self):
            return self.made

    actor = Counting.remote()
    generator = actor.numbers.remote()
    wait_until(lambda: ray.get(actor.so_far.remote()) == 3)
    assert ray.get(next(generator)) == 0
    wait_until(lambda: ray.get(actor.so_far.remote()) == 4)
    assert values(generator) == list(range(1, 10))


def test_who_waits_for_a_reader_lends_its_cpu():
    generators = [count.options(_generator_backpressure_num_objects=1).remote(5) for _ in range(12)]
    # Backwards: those that began first are read last.
    for generator in reversed(generators):
        assert values(generator) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("ahead", [1, 50])
def test_what_nobody_reads_is_not_made(tmp_path, ahead):
    path = str(tmp_path / "made")
    closed = str(tmp_path / "closed")

    @ray.remote(_generator_backpressure_num_objects=ahead)
    def endless(path, closed):
        number = 0
        try:
            while True:
                number += 1
                open(path, "w").write(str(number))
                yield np.zeros(200_000)
        finally:
            open(closed, "w").close()

    generator = endless.options(name=closed).remote(path, closed)
    ray.get(next(generator))
    del generator
    wait_until(lambda: os.path.exists(closed))
    state = lambda: [row.state for row in list_tasks(filters=[("name", "=", closed)])]  # noqa: E731
    wait_until(lambda: state() == ["FINISHED"])


def test_a_generator_that_was_never_read(tmp_path):
    path = str(tmp_path / "made")
    logged.remote(path, 1_000_000)
    wait_until(lambda: _native.counts()[1] == 0)
    assert len(made(path)) < 1_000_000


@pytest.mark.parametrize("force", [False, True])
def test_cancel(tmp_path, force):
    @ray.remote
    def sleeps():
        yield 1
        time.sleep(600)
        yield 2

    generator = sleeps.remote()
    assert ray.get(next(generator)) == 1
    ray.cancel(generator, force=force)
    assert ray.wait([generator], timeout=30)[0] == [generator]
    assert generator.next_ready()
    assert not generator.is_finished()
    with pytest.raises(TaskCancelledError):
        ray.get(next(generator))
    with pytest.raises(StopIteration):
        next(generator)
    with pytest.raises(TaskCancelledError):
        ray.get(generator.completed())


def test_cancel_of_one_that_waits_for_its_reader():
    generator = count.options(_generator_backpressure_num_objects=1).remote(5)
    assert ray.get(next(generator)) == 0
    ray.wait([generator], timeout=30)
    ray.cancel(generator)
    assert ray.get(next(generator)) == 1
    with pytest.raises(TaskCancelledError):
        for ref in generator:
            ray.get(ref)


@pytest.mark.parametrize("cls", [Numbers, AsyncNumbers])
def test_cancel_of_a_method(cls):
    actor = ray.remote(cls).remote()
    generator = actor.plain.options(_generator_backpressure_num_objects=1).remote(1000)
    assert ray.get(next(generator)) == 0
    ray.cancel(generator)
    with pytest.raises(TaskCancelledError):
        values(generator)
    assert ray.get(actor.none.remote()) == 7


def test_cancel_of_a_method_that_leaves_the_loop_no_turn():
    class Endless(AsyncNumbers):
        def endless(self):
            while True:
                yield 0

    actor = ray.remote(Endless).remote()
    generator = actor.endless.remote()
    assert ray.get(next(generator)) == 0
    ray.cancel(generator)
    with pytest.raises(TaskCancelledError):
        values(generator)
    assert ray.get(actor.none.remote()) == 7


def test_wait_with_refs_and_generators(gate):
    @ray.remote
    def one(gate=None):
        if gate is not None:
            gate.wait()
        return "one"

    @ray.remote
    def waits(gate):
        gate.wait()
        yield "late"

    ready, late = count.remote(1), waits.remote(gate)
    ref = one.remote(gate)
    assert ray.wait([late, ready, ref], timeout=30) == ([ready], [late, ref])
    assert ray.wait([late, ref], timeout=0.05) == ([], [late, ref])
    gate.open()
    assert ray.wait([late, ref], num_returns=2, timeout=30) == ([late, ref], [])
    assert ray.get(next(late)) == "late"
    # Its end is something to hear of, too.
    assert ray.wait([late], timeout=30, fetch_local=False) == ([late], [])
    with pytest.raises(StopIteration):
        next(late)
    with pytest.raises(ValueError, match="duplicates"):
        ray.wait([ready, ready])
    with pytest.raises(TypeError, match="ObjectRefGenerator"):
        ray.wait(ready)
    assert ray.get(ready) is ready


def test_next_with_a_timeout(gate):
    @ray.remote
    def waits(gate):
        gate.wait()
        yield 1

    generator = waits.remote(gate)
    assert generator._next_sync(timeout_s=0.01).is_nil()
    assert asyncio.run(generator._next_async(timeout_s=0.01)).is_nil()
    gate.open()
    assert ray.get(generator._next_sync(timeout_s=30)) == 1
    with pytest.raises(StopIteration):
        generator._next_sync(timeout_s=30)


def test_async_iteration():
    async def read(generator):
        return [await ref async for ref in generator]

    async def main():
        actor = ray.remote(AsyncNumbers).remote()
        generators = [count.remote(200), actor.slow.remote(200), actor.plain.remote(200)]
        read_all = await asyncio.gather(*map(read, generators))
        for generator in generators:
            with pytest.raises(StopAsyncIteration):
                await anext(generator)
        return read_all

    assert asyncio.run(main()) == [list(range(200))] * 3


def test_refs_of_items_that_have_not_come(gate):
    @ray.remote
    def waits(gate):
        gate.wait()
        yield "a"

    generator = waits.remote(gate)
    first, second = generator._get_next_ref_n(2)
    assert ray.wait([first, second], timeout=0)[0] == []
    gate.open()
    assert ray.get(first, timeout=30) == "a"
    with pytest.raises(ray.exceptions.ObjectRefStreamEndOfStreamError):
        ray.get(second, timeout=30)
    assert next(generator) == first


@pytest.mark.parametrize("size", [1, 200_000], ids=["small", "large"])
def test_dynamic(size):
    @ray.remote(num_returns="dynamic")
    def numbers(until):
        for number in range(until):
            yield np.full(size, number)

    @ray.remote
    def read(generator):
        return [int(ray.get(ref)[0]) for ref in generator]

    ref = numbers.remote(4)
    assert isinstance(ref, ray.ObjectRef)
    generator = ray.get(ref)
    assert isinstance(generator, ray.DynamicObjectRefGenerator)
    assert len(generator) == 4
    assert [int(ray.get(item)[0]) for item in generator] == [0, 1, 2, 3]
    assert ray.get(read.remote(ref)) == [0, 1, 2, 3]
    assert ray.get(read.remote(ray.get(ref))) == [0, 1, 2, 3]


def test_dynamic_with_an_error(tmp_path):
    gathering = logged.options(num_returns="dynamic")
    first, last = ray.get(gathering.remote(str(tmp_path / "made"), 3, error_at=1))
    assert ray.get(first) == 0
    with pytest.raises(ValueError, match="in the middle"):
        ray.get(last)


def test_a_fixed_number_of_what_it_yields():
    assert ray.get(count.options(num_returns=3).remote(3)) == [0, 1, 2]
    assert ray.get(count.options(num_returns=1).remote(1)) == 0
    # What is yielded beyond it is let go, as in Ray.
    assert ray.get(count.options(num_returns=2).remote(3)) == [0, 1]
    with pytest.raises(ValueError, match="num_returns"):
        ray.get(count.options(num_returns=3).remote(2)[2])


def test_a_generator_cannot_be_passed_on():
    generator = count.remote(2)
    with pytest.raises(TypeError, match="cannot return or pass a generator"):
        count.remote(generator)
    with pytest.raises(TypeError, match="cannot return or pass a generator"):
        ray.put([generator])
    assert values(generator) == [0, 1]


def test_bad_options():
    with pytest.raises(ValueError, match="can only be used with generator functions"):

        @ray.remote(num_returns="streaming")
        def plain():
            return 1

    with pytest.raises(ValueError, match="can only be used with generator functions"):

        @ray.method(num_returns="dynamic")
        def method(self):
            return 1

    with pytest.raises(ValueError, match="or 'dynamic'"):
        count.options(num_returns="stream")
    with pytest.raises(ValueError, match="_generator_backpressure_num_objects=0 is not allowed"):
        count.options(_generator_backpressure_num_objects=0)
    with pytest.raises(TypeError, match="_generator_backpressure_num_objects"):
        count.options(_generator_backpressure_num_objects="2")


def test_what_yields_nothing_is_refused_where_it_runs():
    class Callable:
        def __call__(self):
            return [1, 2]

    plain = functools.partial(Callable())
    plain.__name__ = "plain"
    generator = ray.remote(num_returns="streaming")(plain).remote()
    with pytest.raises(ValueError, match="must return a generator, not a list"):
        ray.get(next(generator))
    with pytest.raises(StopIteration):
        next(generator)


def test_methods_of_generators_that_there_are_not():
    generator = count.remote(1)
    for name in ("send", "throw", "asend", "athrow"):
        with pytest.raises(NotImplementedError):
            getattr(generator, name)(None)
    with pytest.raises(NotImplementedError):
        generator.close()


def test_the_record_of_a_stream(gate):
    @ray.remote
    def waits(gate):
        yield 1
        gate.wait()
        yield 2

    generator = waits.options(name="stream-on-record").remote(gate)
    ray.get(next(generator))
    rows = lambda: list_tasks(filters=[("name", "=", "stream-on-record")])  # noqa: E731
    wait_until(lambda: [row.state for row in rows()] == ["RUNNING"])
    gate.open()
    values(generator)
    wait_until(lambda: [row.state for row in rows()] == ["FINISHED"])


def test_an_error_on_record(tmp_path):
    values_of = logged.options(name="stream-that-raised")
    generator = values_of.remote(str(tmp_path / "made"), 3, error_at=1)
    with pytest.raises(ValueError):
        values(generator)
    rows = lambda: list_tasks(filters=[("name", "=", "stream-that-raised")])  # noqa: E731
    wait_until(lambda: [row.state for row in rows()] == ["FAILED"])
