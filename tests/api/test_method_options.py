"""Options of an actor's methods, where they are defined and where they are called."""

from __future__ import annotations

import time

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.exceptions import RayTaskError
from oxiray.util.state import get_task, list_tasks

pytestmark = pytest.mark.usefixtures("cluster")


class Again(Exception):
    pass


@ray.remote(max_task_retries=2)
class Flaky:
    def __init__(self):
        self.calls = []

    def noted(self):
        return self.calls

    def fail_twice(self, name, error=Again):
        self.calls.append(name)
        if self.calls.count(name) < 3:
            raise error(name)
        return len(self.calls)

    @ray.method(retry_exceptions=True)
    def retried(self, name):
        return self.fail_twice(name)

    @ray.method(retry_exceptions=[Again])
    def retried_after_some(self, name, error):
        return self.fail_twice(name, error)

    @ray.method(retry_exceptions=True, max_task_retries=1)
    def retried_once(self, name):
        return self.fail_twice(name)

    def two(self):
        return 1, 2


@ray.remote(max_task_retries=2)
class AsyncFlaky:
    def __init__(self):
        self.calls = 0

    @ray.method(retry_exceptions=True)
    async def retried(self):
        self.calls += 1
        if self.calls < 3:
            raise Again
        return self.calls


def test_without_the_option_an_exception_is_final():
    flaky = Flaky.remote()
    with pytest.raises(Again):
        ray.get(flaky.fail_twice.remote("a"))
    assert ray.get(flaky.noted.remote()) == ["a"]


def test_retry_exceptions_of_a_method():
    flaky = Flaky.remote()
    ref = flaky.retried.remote("a")
    assert ray.get(ref) == 3
    assert ray.get(flaky.retried_after_some.remote("b", Again)) == 6
    with pytest.raises(KeyError):
        ray.get(flaky.retried_after_some.remote("c", KeyError))
    with pytest.raises(Again):
        ray.get(flaky.retried_once.remote("d"))
    assert ray.get(flaky.noted.remote()) == [*"aaabbbcdd"]
    assert ray.get(AsyncFlaky.remote().retried.remote()) == 3
    attempts = [one["state"] for one in wait_until(lambda: get_task(ref.hex())).attempts]
    assert attempts == ["FAILED", "FAILED", "FINISHED"]


def test_retry_exceptions_of_a_call():
    flaky = Flaky.remote()
    assert ray.get(flaky.fail_twice.options(retry_exceptions=True).remote("a")) == 3
    assert ray.get(flaky.fail_twice.options(retry_exceptions=[Again]).remote("b")) == 6
    with pytest.raises(Again):
        ray.get(flaky.fail_twice.options(retry_exceptions=[KeyError]).remote("c"))
    with pytest.raises(Again):
        ray.get(flaky.retried.options(retry_exceptions=False).remote("d"))
    with pytest.raises(Again):
        ray.get(flaky.retried.options(max_task_retries=0).remote("e"))
    with pytest.raises(RayTaskError, match=r"Flaky\.fail_twice"):
        ray.get(flaky.fail_twice.options(retry_exceptions=[KeyError]).remote("f"))


def test_retried_calls_come_before_what_was_not_sent():
    """Of calls that wait with their caller, those that are tried again go first."""

    @ray.remote(max_task_retries=-1)
    class Ordered:
        def __init__(self):
            self.begun = []

        @ray.method(retry_exceptions=True)
        def note(self, number):
            self.begun.append(number)
            if self.begun.count(number) < 3:
                raise Again
            return self.begun

    ordered = Ordered.remote()
    refs = [ordered.note.remote(number) for number in range(1500)]
    begun = ray.get(refs)[-1]
    assert sorted(begun) == sorted([*range(1500)] * 3)
    last_time = {number: at for at, number in enumerate(begun)}
    assert last_time[0] < begun.index(1499), "it did not wait for the end of the queue"


def test_num_returns_and_name():
    flaky = Flaky.remote()
    one, two = flaky.two.options(num_returns=2, name="a pair").remote()
    assert ray.get([one, two]) == [1, 2]
    rows = wait_until(lambda: list_tasks(filters=[("name", "=", "a pair")]))
    assert [row.func_or_class_name for row in rows] == ["Flaky.two"]


def test_enable_task_events():
    flaky = Flaky.remote()
    hidden = flaky.two.options(enable_task_events=False, name="hidden").remote()
    ray.get(hidden)
    shown = flaky.two.options(name="shown").remote()
    ray.get(shown)
    wait_until(lambda: list_tasks(filters=[("name", "=", "shown")]))
    assert not list_tasks(filters=[("name", "=", "hidden")])


def test_a_method_with_options_is_given_on():
    @ray.remote
    def call(method):
        return ray.get(method.remote("a"))

    flaky = Flaky.remote()
    assert ray.get(call.remote(flaky.fail_twice.options(retry_exceptions=True))) == 3


@pytest.mark.parametrize("value", [None, 1, "Again", [Again()], [int]])
def test_what_retry_exceptions_may_be(value):
    error = ValueError if isinstance(value, list) else TypeError
    with pytest.raises(error, match="retry_exceptions"):
        Flaky.remote().retried.options(retry_exceptions=value)
    with pytest.raises(error, match="retry_exceptions"):
        ray.method(retry_exceptions=value)


def test_a_retry_ends_with_the_actor():
    @ray.remote(max_task_retries=-1)
    class Endless:
        @ray.method(retry_exceptions=True)
        def fail(self):
            time.sleep(0.001)
            raise Again

    endless = Endless.remote()
    ref = endless.fail.remote()
    ready, _ = ray.wait([ref], timeout=0.2)
    assert not ready
    ray.kill(endless)
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(ref, timeout=60)


def test_options_of_which_only_the_default_is_here():
    class Plain:
        @ray.method(_num_objects_per_yield=1, tensor_transport=None)
        def two(self):
            return 2

    ray.remote(_actor_generator_backpressure_num_objects=-1)(Plain)
    for given in ({"_num_objects_per_yield": 2}, {"tensor_transport": "nccl"}):
        with pytest.raises(ValueError, match="is not supported yet"):
            ray.method(**given)
    with pytest.raises(ValueError, match="is not supported yet"):
        ray.remote(_actor_generator_backpressure_num_objects=4)(Plain)
