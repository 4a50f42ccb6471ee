"""Tasks: calling, arguments, returns, nesting, closures, options, retries."""

from __future__ import annotations

import gc
import os
import threading
import weakref

import oxiray as ray
import pytest

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
def add(a, b=10, *, c=0):
    return a + b + c


@ray.remote
def echo(*args, **kwargs):
    return args, kwargs


def test_arguments_by_position_keyword_and_default():
    refs = [add.remote(1), add.remote(1, 2), add.remote(1, b=3), add.remote(a=1, c=5)]
    assert ray.get(refs) == [11, 3, 4, 16]


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -1, 2**63, 2**200, 1.5, "", "ä" * 1000, b"", b"x" * 200_000, (1, [2, {3: 4}])],
    ids=lambda value: repr(value)[:12],
)
def test_values_arrive_as_they_left(value):
    args, kwargs = ray.get(echo.remote(value, key=value))
    assert args == (value,) and kwargs == {"key": value}
    assert type(args[0]) is type(value)


def test_refs_as_arguments_become_values():
    assert ray.get(add.remote(ray.put(1), b=ray.put(2))) == 3


def test_nested_refs_stay_refs():
    inner = ray.put("inside")
    ((got,),), _ = ray.get(echo.remote([inner]))
    assert isinstance(got, ray.ObjectRef) and got == inner
    assert ray.get(got) == "inside"


def test_a_chain_of_tasks():
    ref = add.remote(0, 1)
    for _ in range(50):
        ref = add.remote(ref, 1)
    assert ray.get(ref) == 51


def test_several_returns():
    @ray.remote(num_returns=3)
    def three():
        return 1, "two", [3]

    refs = three.remote()
    assert len(refs) == 3
    assert ray.get(refs) == [1, "two", [3]]


def test_the_old_name_of_num_returns():
    @ray.remote(num_return_vals=2)
    def two():
        return 1, 2

    a, b = two.remote()
    assert ray.get([b, a]) == [2, 1]


def test_no_returns():
    @ray.remote(num_returns=0)
    def nothing(path):
        open(path, "w").close()

    assert nothing.remote("/dev/null") is None


def test_a_generator_fills_its_returns():
    @ray.remote(num_returns=2)
    def pair():
        yield 1
        yield 2

    assert ray.get(pair.remote()) == [1, 2]


def test_options_change_one_call():
    @ray.remote
    def pair():
        return 1, 2

    assert ray.get(pair.options(num_returns=2).remote()) == [1, 2]
    assert ray.get(pair.remote()) == (1, 2)


def test_the_name_option_is_seen_inside():
    @ray.remote
    def name():
        return ray.get_runtime_context().get_task_name()

    assert ray.get(name.remote()) == "name"
    assert ray.get(name.options(name="other").remote()) == "other"


def test_tasks_call_tasks():
    @ray.remote
    def outer(n):
        return sum(ray.get([add.remote(i, 0) for i in range(n)]))

    assert ray.get(outer.remote(10)) == 45


def test_recursion():
    @ray.remote
    def fib(n):
        return n if n < 2 else sum(ray.get([fib.remote(n - 1), fib.remote(n - 2)]))

    assert ray.get(fib.remote(8)) == 21


def test_deep_nesting_does_not_wait_for_cpus():
    """More tasks wait for each other than there are CPUs: the blocked lend theirs."""

    @ray.remote
    def depth(n):
        return 0 if n == 0 else 1 + ray.get(depth.remote(n - 1))

    assert ray.get(depth.remote(12)) == 12


def test_blocked_in_wait_lends_too():
    @ray.remote
    def depth(n):
        if n == 0:
            return 0
        (ready,), _ = ray.wait([depth.remote(n - 1)])
        return 1 + ray.get(ready)

    assert ray.get(depth.remote(8)) == 8


def test_closures_and_lambdas():
    factor = 7
    times = ray.remote(lambda x: x * factor)
    assert ray.get(times.remote(6)) == 42


def test_a_redefined_function_is_the_new_one():
    results = []
    for answer in (1, 2):

        @ray.remote
        def f():
            return answer

        results.append(ray.get(f.remote()))
    assert results == [1, 2]


def test_remote_functions_as_arguments():
    @ray.remote
    def apply(function, *args):
        return ray.get(function.remote(*args))

    assert ray.get(apply.remote(add, 1, 2)) == 3
    assert ray.get(apply.remote(add.options(num_cpus=0), 1, 2)) == 3


def test_as_many_run_as_there_are_cpus(meeting):
    together = meeting(4)

    @ray.remote
    def attend(i):
        return together.attend(i)

    assert ray.get([attend.remote(i) for i in range(4)]) == [True] * 4


def test_a_short_task_does_not_wait_behind_a_long_one(gate):
    @ray.remote
    def wait():
        gate.wait()
        return "long"

    long = [wait.remote() for _ in range(3)]
    for _ in range(20):
        assert ray.get(add.remote(1, 1), timeout=30) == 2
    gate.open()
    assert ray.get(long) == ["long"] * 3


def test_many_tasks():
    count = 20_000
    assert ray.get([add.remote(i, 0) for i in range(count)]) == list(range(count))


def test_tasks_from_several_threads():
    results = {}

    def run(base):
        results[base] = ray.get([add.remote(base, i) for i in range(500)])

    threads = [threading.Thread(target=run, args=(1000 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {b: [b + i for i in range(500)] for b in (0, 1000, 2000, 3000)}


def test_max_calls_replaces_the_worker():
    @ray.remote(max_calls=1)
    def pid():
        return os.getpid()

    pids = [ray.get(pid.remote()) for _ in range(3)]
    assert len(set(pids)) == 3


def count_tries(path):
    """Notes a try in the file; returns how many there were."""
    with open(path, "a") as file:
        file.write("x")
    return os.path.getsize(path)


def test_retry_exceptions(tmp_path):
    path = str(tmp_path / "tries")

    @ray.remote(max_retries=3, retry_exceptions=True)
    def flaky():
        if count_tries(path) < 3:
            raise ValueError("again")
        return "done"

    assert ray.get(flaky.remote()) == "done"
    assert os.path.getsize(path) == 3


def test_retry_exceptions_of_given_types_only(tmp_path):
    path = str(tmp_path / "tries")

    @ray.remote(max_retries=5, retry_exceptions=[KeyError])
    def flaky():
        raise KeyError("again") if count_tries(path) < 3 else ValueError("for good")

    with pytest.raises(ValueError, match="for good"):
        ray.get(flaky.remote())
    assert os.path.getsize(path) == 3


def test_exceptions_are_not_retried_unless_asked(tmp_path):
    path = str(tmp_path / "tries")

    @ray.remote
    def fail():
        count_tries(path)
        raise ValueError

    with pytest.raises(ValueError):
        ray.get(fail.remote())
    assert os.path.getsize(path) == 1


def test_a_dead_worker_is_retried(tmp_path):
    path = str(tmp_path / "tries")

    @ray.remote(max_retries=2)
    def crash():
        if count_tries(path) < 3:
            os._exit(1)
        return "done"

    assert ray.get(crash.remote()) == "done"


def test_functions_and_classes_of_main_and_of_modules_beside_the_script(driver):
    (driver.directory / "beside.py").write_text(
        "class Point:\n    def __init__(self, x):\n        self.x = x\ndef double(p):\n"
        "    return Point(2 * p.x)\n"
    )
    driver(
        """
        import beside
        import oxiray as ray

        class Mine:
            def __init__(self, x):
                self.x = x
            def __eq__(self, other):
                return type(self) is type(other) and self.x == other.x

        @ray.remote
        def f(mine, point):
            assert isinstance(mine, Mine)
            return Mine(mine.x + 1), beside.double(point)

        mine, point = ray.get(f.remote(Mine(1), beside.Point(4)))
        assert mine == Mine(2) and isinstance(point, beside.Point) and point.x == 8
        """
    )


def test_auto_init(driver):
    driver(
        """
        import oxiray as ray
        assert not ray.is_initialized()
        assert ray.get(ray.remote(lambda: 5).remote()) == 5
        assert ray.is_initialized()
        """
    )


def test_remote_functions_are_collected():
    @ray.remote
    def one():
        return 1

    other = one.options(num_cpus=0.5)
    assert ray.get(other.remote()) == 1
    gone = weakref.ref(other)
    del other
    gc.collect()
    assert gone() is None
