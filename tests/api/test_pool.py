"""`util.multiprocessing.Pool` and joblib on it: the standard library's interface, on actors."""

from __future__ import annotations

import os
import pickle
import queue
import threading

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.util.multiprocessing import Pool, TimeoutError


def square(x):
    return x * x


def own_pid(_):
    return os.getpid()


def add(x, y=0, *, z=0):
    return x + y + z


def invert(x):
    return 1 / x


@pytest.fixture(scope="module")
def pool(cluster):
    with Pool(3) as pool:
        yield pool


def test_apply(pool):
    assert pool.apply(add, (1, 2), {"z": 3}) == 6
    assert pool.apply(add, [4]) == 4
    result = pool.apply_async(add, (1,), {"y": 5})
    assert result.get(timeout=30) == 6 and result.ready() and result.successful()


@pytest.mark.parametrize("chunksize", [None, 1, 7, 1000])
def test_map(pool, chunksize):
    assert pool.map(square, range(100), chunksize) == [x * x for x in range(100)]
    assert pool.map(square, iter([]), chunksize) == []
    assert pool.starmap(add, [(1, 2), (3, 4)], chunksize) == [3, 7]


def test_all_processes_take_part(pool, meeting):
    assert pool.map(meeting(3).attend, ["a", "b", "c"], chunksize=1) is not None


def test_no_call_waits_behind_a_long_one(pool, gate):
    held = pool.apply_async(gate.wait)
    assert pool.map(square, range(50), chunksize=1) == [x * x for x in range(50)]
    assert not held.ready()
    gate.open()
    held.get(timeout=30)


def test_imap(pool):
    assert list(pool.imap(square, range(50))) == [x * x for x in range(50)]
    assert list(pool.imap(square, iter(range(50)), chunksize=8)) == [x * x for x in range(50)]
    assert sorted(pool.imap_unordered(square, range(50), chunksize=3)) == [x * x for x in range(50)]
    assert list(pool.imap(square, [])) == []
    with pytest.raises(TypeError, match="iterable"):
        pool.imap(square, 5)


def test_iterators_have_the_classes_of_ray(pool):
    from oxiray.util.multiprocessing.pool import (
        IMapIterator,
        OrderedIMapIterator,
        UnorderedIMapIterator,
    )

    ordered = pool.imap(square, range(3))
    assert isinstance(ordered, OrderedIMapIterator) and isinstance(ordered, IMapIterator)
    assert ordered.next(timeout=30) == 0
    assert isinstance(pool.imap_unordered(square, []), UnorderedIMapIterator)
    assert list(OrderedIMapIterator(pool, square, range(3), 2)) == [0, 1, 4]
    with pytest.raises(ValueError, match="chunksize must be at least 1"):
        OrderedIMapIterator(pool, square, [1], 0)


def test_starmap_async_is_called_as_rays_and_as_the_standard_librarys(pool):
    told = queue.Queue()
    for arguments in ((told.put,), (told.put, told.put), (1, told.put), (None, told.put, told.put)):
        pool.starmap_async(add, [(1, 1), (2, 2)], *arguments).get(30)
        assert told.get(timeout=30) == [2, 4]
    assert pool.starmap_async(add, [(1, 1)], chunksize=1).get(30) == [2]
    with pytest.raises(ValueError, match="chunksize must be at least 1"):
        pool.starmap_async(add, [(1, 1)], 0)


def test_imap_takes_from_the_iterable_as_results_are_taken(pool):
    taken = []

    def source():
        for x in range(1000):
            taken.append(x)
            yield x

    results = pool.imap(square, source())
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert len(taken) < 20


def test_imap_unordered_yields_what_is_there_first(pool, gate):
    def hold(x):
        if x == 0:
            gate.wait()
        return x

    results = pool.imap_unordered(hold, range(6))
    assert sorted(next(results) for _ in range(5)) == [1, 2, 3, 4, 5]
    with pytest.raises(TimeoutError):
        results.next(timeout=0.01)
    gate.open()
    assert results.next(timeout=30) == 0
    with pytest.raises(StopIteration):
        results.next()


def test_errors_are_the_functions_own(pool):
    with pytest.raises(ZeroDivisionError) as raised:
        pool.map(invert, [1, 0, 2])
    assert "invert" in str(raised.value), "with the traceback of the process"
    result = pool.apply_async(invert, (0,))
    result.wait(30)
    assert result.ready() and not result.successful()
    results = pool.imap(invert, [1, 0, 2])
    assert next(results) == 1
    assert isinstance(next(results), ZeroDivisionError), "as in Ray, a result like any other"
    assert next(results) == 0.5


def test_an_iterable_that_raises(pool):
    def source():
        yield 1
        raise LookupError("no more")

    results = pool.imap(square, source())
    assert next(results) == 1
    with pytest.raises(LookupError, match="no more"):
        next(results)
    with pytest.raises(StopIteration):
        next(results)
    with pytest.raises(LookupError):
        pool.map(square, source())


def test_results_that_are_not_there_yet(pool, gate):
    result = pool.apply_async(gate.wait)
    with pytest.raises(ValueError, match="not ready"):
        result.successful()
    with pytest.raises(TimeoutError):
        result.get(timeout=0.01)
    result.wait(timeout=0.01)
    gate.open()
    result.get(timeout=30)


def test_callbacks(pool):
    told, errors, heard = [], [], threading.Event()

    def hear(value):
        told.append(value)
        heard.set()

    def err(error):
        errors.append(error)
        heard.set()

    for submit in (
        lambda: pool.apply_async(square, (3,), callback=hear, error_callback=err),
        lambda: pool.map_async(square, range(3), callback=hear, error_callback=err),
        lambda: pool.starmap_async(add, [(1, 1)], callback=hear, error_callback=err),
        lambda: pool.map_async(invert, [0, 0, 1], 1, callback=hear, error_callback=err),
        lambda: pool.map_async(square, [], callback=hear, error_callback=err),
    ):
        heard.clear()
        submit().wait(30)
        assert heard.wait(30)
    assert told == [9, [0, 1, 4], [2], []]
    assert [type(error).__name__ for error in errors] == ["RayTaskError(ZeroDivisionError)"]


def test_a_process_that_dies_fails_its_calls_and_is_replaced(pool):
    with pytest.raises(ray.exceptions.RayActorError):
        pool.apply(os._exit, (1,))
    assert pool.map(square, range(30), 1) == [x * x for x in range(30)]
    assert len({pid for _ in range(5) for pid in pool.map(own_pid, range(30), 1)}) <= 4


def test_processes_are_replaced_after_their_share(cluster):
    with Pool(1, maxtasksperchild=2) as pool:
        pids = pool.map(own_pid, range(8), chunksize=1)
    assert len(set(pids)) == 4 and all(pids.count(pid) == 2 for pid in pids)


def test_the_initializer_runs_in_each_process(cluster, tmp_path):
    def leave(folder):
        (folder / str(os.getpid())).touch()

    with Pool(2, initializer=leave, initargs=(tmp_path,)) as pool:
        assert {str(pid) for pid in pool.map(own_pid, range(20), 1)} <= set(os.listdir(tmp_path))
        assert len(os.listdir(tmp_path)) == 2

    def fail():
        raise ValueError("not today")

    with pytest.raises(ray.exceptions.ActorDiedError, match="not today"):
        Pool(1, initializer=fail)


def test_closed_pools_finish_and_take_nothing_more(cluster, gate):
    pool = Pool(2)
    with pytest.raises(ValueError, match="still running"):
        pool.join()
    results = [pool.apply_async(gate.wait) for _ in range(6)]
    pool.close()
    for use in (pool.apply, pool.map, pool.imap, pool.starmap, pool.imap_unordered):
        with pytest.raises(ValueError, match="not running"):
            use(square, [1])
    gate.open()
    pool.join()
    assert all(result.successful() for result in results)


def test_terminate_ends_calls_and_processes(cluster, gate):
    pool = Pool(2)
    pids = set(pool.map(own_pid, range(20), 1))
    results = [pool.apply_async(gate.wait) for _ in range(10)]
    pool.terminate()
    pool.join()
    for result in results:
        with pytest.raises(ray.exceptions.RayActorError):
            result.get(timeout=30)
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


@pytest.mark.parametrize(
    "arguments",
    [
        {"processes": 0},
        {"processes": -1},
        {"processes": 1000},
        {"maxtasksperchild": 0},
    ],
)
def test_bad_sizes(cluster, arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        Pool(**arguments)


def test_what_makes_no_sense(pool):
    with pytest.raises(ValueError, match="chunksize"):
        pool.map(square, [1], chunksize=0)
    with pytest.raises(TypeError, match="initializer"):
        Pool(1, initializer=5)
    with pytest.raises(NotImplementedError):
        pickle.dumps(pool)


def test_a_pool_starts_a_session_and_ends_with_it(driver):
    done = driver(
        """
        import oxiray as ray
        from oxiray.util.multiprocessing import Pool

        def double(x):
            return 2 * x

        pool = Pool(2)
        assert ray.cluster_resources()["CPU"] == 2
        assert pool.map(double, range(10)) == [2 * x for x in range(10)]
        ray.shutdown()
        try:
            pool.map(double, [1])
        except ValueError as error:
            print(error)
        assert not ray.is_initialized()
        """
    )
    assert "its session has ended" in done.stdout


def test_joblib(cluster):
    joblib = pytest.importorskip("joblib")
    from oxiray.util.joblib import register_ray

    register_ray()
    with joblib.parallel_config(backend="ray"):
        assert joblib.Parallel()(joblib.delayed(square)(x) for x in range(50)) == [
            x * x for x in range(50)
        ]
        run = joblib.Parallel(n_jobs=2, return_as="generator_unordered")
        assert sorted(run(joblib.delayed(square)(x) for x in range(20))) == [
            x * x for x in range(20)
        ]
        with pytest.raises(ZeroDivisionError):
            joblib.Parallel(n_jobs=2)(joblib.delayed(invert)(x) for x in [1, 0])
