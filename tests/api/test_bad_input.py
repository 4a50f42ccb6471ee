"""Bad input: each gets its error at once, by name, and the cluster goes on working."""

from __future__ import annotations

import threading

import oxiray as ray
import pytest
from oxiray.exceptions import OutOfMemoryError, RayError, RayTaskError, WorkerCrashedError


@ray.remote
def f(x=None):
    return x


@ray.remote
class A:
    def m(self):
        return 1


@pytest.fixture(autouse=True)
def still_works(cluster, request):
    yield
    if ray.is_initialized():
        assert ray.get(f.remote(5), timeout=60) == 5


def test_calling_a_remote_function():
    with pytest.raises(TypeError, match=r"f\.remote\(\)"):
        f(1)


def test_making_an_actor_by_calling_its_class():
    with pytest.raises(TypeError, match=r"A\.remote\(\)"):
        A()


def test_calling_an_actors_method():
    with pytest.raises(TypeError, match=r"m\.remote\(\)"):
        A.remote().m()


def test_an_actors_method_that_is_not_there():
    with pytest.raises(AttributeError, match="nope"):
        A.remote().nope  # noqa: B018


def test_deriving_from_an_actor_class():
    with pytest.raises(ray.actor.ActorClassInheritanceException, match="'A'"):

        class B(A):
            pass


@pytest.mark.parametrize("bad", [3, "x", None, object()])
def test_get_of_something_else(bad):
    with pytest.raises((ValueError, TypeError), match="ObjectRef"):
        ray.get(bad)
    with pytest.raises((ValueError, TypeError), match="ObjectRef"):
        ray.get([f.remote(), bad])


def test_put_of_a_ref():
    with pytest.raises(TypeError, match="ObjectRef"):
        ray.put(f.remote())


def test_wait_for_more_than_there_are():
    with pytest.raises(ValueError, match="num_returns"):
        ray.wait([f.remote()], num_returns=2)


@pytest.mark.parametrize("count", [0, -1])
def test_wait_for_none(count):
    with pytest.raises(ValueError):
        ray.wait([f.remote()], num_returns=count)


def test_wait_for_the_same_ref_twice():
    ref = f.remote()
    with pytest.raises(ValueError, match=r"unique|duplicate"):
        ray.wait([ref, ref])


def test_wait_for_something_else():
    with pytest.raises(TypeError):
        ray.wait(f.remote())
    with pytest.raises(TypeError):
        ray.wait([1])


def test_wait_with_a_negative_timeout():
    with pytest.raises(ValueError, match="timeout"):
        ray.wait([f.remote()], timeout=-1)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"num_cpus": -1}, ValueError),
        ({"num_cpus": "one"}, TypeError),
        ({"num_cpus": float("nan")}, ValueError),
        ({"num_cpus": True}, TypeError),
        ({"num_gpus": -0.5}, ValueError),
        ({"num_gpus": 1.5}, ValueError),
        ({"memory": -1}, ValueError),
        ({"resources": {"x": -1}}, ValueError),
        ({"resources": {"CPU": 1}}, ValueError),
        ({"resources": [1]}, TypeError),
        ({"resources": {1: 1}}, TypeError),
        ({"num_returns": -1}, ValueError),
        ({"num_returns": 1.0}, TypeError),
        ({"max_retries": -2}, ValueError),
        ({"max_calls": -1}, ValueError),
        ({"retry_exceptions": 3}, TypeError),
        ({"retry_exceptions": [3]}, ValueError),
        ({"name": 3}, TypeError),
        ({"no_such_option": 1}, ValueError),
    ],
    ids=str,
)
def test_wrong_options(options, error):
    (name,) = options
    with pytest.raises(error) as caught:
        f.options(**options)
    assert name in str(caught.value) or "x" in str(caught.value) or "GPU" in str(caught.value)
    with pytest.raises(error):
        ray.remote(**options)(lambda: None)


def test_an_unknown_option_lists_the_valid_ones():
    with pytest.raises(ValueError, match="num_cpus"):
        f.options(cpus=1)
    with pytest.raises(ValueError, match="num_cpus"):
        ray.remote(cpus=1)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"max_concurrency": 0}, ValueError, "max_concurrency.*a positive integer"),
        ({"max_concurrency": -3}, ValueError, "max_concurrency.*a positive integer"),
        ({"max_concurrency": 1.5}, TypeError, "max_concurrency.*must be.*int"),
        ({"max_concurrency": "2"}, TypeError, "max_concurrency.*must be.*int"),
        ({"max_pending_calls": 0}, ValueError, "max_pending_calls.*at least 1"),
        ({"max_pending_calls": -2}, ValueError, "max_pending_calls"),
        ({"allow_out_of_order_execution": 1}, TypeError, "allow_out_of_order_execution"),
        ({"concurrency_groups": {"io": 0}}, ValueError, "max_concurrency must be greater than 0"),
        ({"concurrency_groups": {"io": "2"}}, TypeError, "io.*must be.*int"),
        ({"concurrency_groups": {3: 2}}, TypeError, "strings"),
        ({"concurrency_groups": "io"}, TypeError, "dict"),
    ],
    ids=str,
)
def test_wrong_options_of_concurrency(options, error, said):
    with pytest.raises(error, match=said):
        ray.remote(**options)(type("Wrong", (), {}))
    if "concurrency_groups" not in options:
        with pytest.raises(error, match=said):
            A.options(**options)


def test_concurrency_groups_belong_to_the_class():
    with pytest.raises(ValueError, match="not supported in"):
        A.options(concurrency_groups={"io": 2})


@pytest.mark.parametrize("bad", [3, "f", None])
def test_remote_on_something_else(bad):
    with pytest.raises(TypeError):
        ray.remote(bad)
    with pytest.raises(TypeError):
        ray.remote(num_cpus=1)(bad)


def test_remote_with_options_by_position():
    with pytest.raises(TypeError, match="keyword"):
        ray.remote(lambda: None, num_cpus=1)
    with pytest.raises(TypeError):
        ray.remote()


def test_async_functions():
    with pytest.raises(ValueError, match="async"):

        @ray.remote
        async def g():
            pass


def test_an_argument_that_cannot_be_pickled():
    with pytest.raises(TypeError, match=r"\['lock'\]"):
        f.remote({"lock": threading.Lock()})
    with pytest.raises(TypeError, match="lock"):
        A.remote().__ray_call__.remote(threading.Lock())
    with pytest.raises(TypeError, match="lock"):
        ray.put([threading.Lock()])


def test_a_closure_that_cannot_be_pickled():
    guard = threading.Lock()

    @ray.remote
    def use():
        return guard

    with pytest.raises(TypeError, match=r"use.*'guard'"):
        use.remote()


def test_a_return_that_cannot_be_pickled():
    @ray.remote
    def give():
        return {"lock": threading.Lock()}

    with pytest.raises(TypeError, match="lock") as caught:
        ray.get(give.remote())
    assert isinstance(caught.value, RayTaskError)


def test_a_function_too_large_to_ship():
    ballast = b"x" * (100 << 20)

    @ray.remote
    def large():
        return len(ballast)

    with pytest.raises(ValueError, match=r"large.*put"):
        large.remote()


@pytest.mark.parametrize("returned", [(1, 2, 3), (1,), 7], ids=str)
def test_a_return_count_that_does_not_match(returned):
    @ray.remote(num_returns=2)
    def pair():
        return returned

    error = TypeError if returned == 7 else ValueError
    for ref in pair.remote():
        with pytest.raises(error, match="num_returns=2"):
            ray.get(ref)


def test_too_many_arguments():
    """Refused where it is called or when it runs, but always as a TypeError."""
    with pytest.raises(TypeError):
        ray.get(f.remote(1, 2, 3))


def test_init_twice():
    with pytest.raises(RuntimeError, match="ignore_reinit_error"):
        ray.init()
    ray.init(ignore_reinit_error=True)


def test_kill_of_something_else():
    for bad in (3, f.remote()):
        with pytest.raises(ValueError):
            ray.kill(bad)


def test_exit_actor_outside_of_an_actor():
    with pytest.raises(TypeError):
        ray.actor.exit_actor()


def test_filling_the_memory(driver):
    """The limit is set just above what the machine uses now, and the task goes for far more."""
    with open("/proc/meminfo") as file:
        info = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file}
    used = info["MemTotal"] - info["MemAvailable"]
    room = 1 << 30
    if info["MemAvailable"] < 6 * room:
        pytest.skip("not enough free memory to fill some of it")
    threshold = (used + room) / info["MemTotal"]
    driver(
        """
        import oxiray as ray
        ray.init(num_cpus=2)

        @ray.remote(max_retries=0)
        def hog():
            import time
            held = []
            for _ in range(100):
                held.append(bytearray(b"x" * (40 << 20)))
                time.sleep(0.02)

        try:
            ray.get(hog.remote(), timeout=50)
        except (ray.exceptions.OutOfMemoryError, ray.exceptions.WorkerCrashedError) as error:
            print(error)
        else:
            raise SystemExit("it was let do")
        assert ray.get(ray.remote(lambda: 5).remote()) == 5
        """,
        env={"RAY_memory_usage_threshold": f"{threshold:.4f}"},
    )
    assert issubclass(OutOfMemoryError, RayError) and issubclass(WorkerCrashedError, RayError)


def test_an_object_larger_than_the_store(driver):
    driver(
        """
        import oxiray as ray
        ray.init(num_cpus=1, object_store_memory=80 << 20)
        try:
            ray.put(b"x" * (200 << 20))
        except ray.exceptions.ObjectStoreFullError as error:
            print(error)
        else:
            raise SystemExit("it fitted")
        assert ray.get(ray.put(b"y" * (10 << 20)))[:1] == b"y"
        """
    )


def test_get_after_shutdown(driver):
    driver(
        """
        import oxiray as ray
        ray.init(num_cpus=1)
        ref = ray.put(1)
        ray.shutdown()
        try:
            ray.get(ref, timeout=20)
        except ray.exceptions.GetTimeoutError:
            raise SystemExit("it waited")
        except (ray.exceptions.RayError, ValueError, RuntimeError) as error:
            print(type(error), error)
        else:
            raise SystemExit("a value from nowhere")
        """
    )


@ray.remote
def takes_two(a, b=1, *, c=2):
    return a, b, c


@ray.remote
def needs_keyword(*, key):
    return key


@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        ((), {}, "'a'"),
        ((1, 2, 3), {}, "too many positional"),
        ((1,), {"d": 1}, "'d'"),
        ((1,), {"a": 1}, "'a'"),
    ],
)
def test_arguments_that_the_function_does_not_take(args, kwargs, says):
    with pytest.raises(TypeError, match=says):
        takes_two.remote(*args, **kwargs)
    with pytest.raises(TypeError, match="'key'"):
        needs_keyword.remote()
    assert ray.get(takes_two.remote(1, c=5)) == (1, 1, 5)
    assert ray.get(needs_keyword.remote(key=3)) == 3


def test_more_labels_than_a_message_holds():
    @ray.remote
    def task():
        return 1

    @ray.remote
    class Actor:
        pass

    many = {"zone": f"in({','.join(f'zone-{number}' for number in range(20_000))})"}
    for wanted in (task, Actor):
        with pytest.raises(ValueError, match=r"bytes together, not \d+: .*label_selector"):
            wanted.options(label_selector=many).remote()
    assert ray.get(task.remote()) == 1
