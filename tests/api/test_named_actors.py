"""Actors with names: found by others, unique in a namespace, detached from their creators."""

import os
import time

import oxiray as ray
import pytest


@ray.remote
class Counter:
    def __init__(self, start=0):
        self.n = start

    def add(self, k=1):
        self.n += k
        return self.n

    @ray.method(num_returns=2)
    def two(self):
        return 1, 2

    def pid(self):
        return os.getpid()


@pytest.fixture(scope="module", autouse=True)
def session(cluster):
    yield


def until(condition, what, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.01)


def is_found(name, namespace=None):
    try:
        ray.get_actor(name, namespace)
    except ValueError:
        return False
    return True


def test_found_by_name_with_its_methods():
    counter = Counter.options(name="found").remote(5)
    found = ray.get_actor("found")
    assert ray.get(found.add.remote()) == 6
    assert ray.get(counter.add.remote()) == 7
    assert ray.get(found.two.remote()) == [1, 2]
    assert found == counter
    assert not hasattr(found, "no_such_method")


def test_found_in_tasks_and_other_actors():
    counter = Counter.options(name="from task").remote()

    @ray.remote
    def add():
        return ray.get(ray.get_actor("from task").add.remote(10))

    assert sorted(ray.get([add.remote() for _ in range(3)])) == [10, 20, 30]
    assert ray.get(counter.add.remote()) == 31


def test_a_name_is_taken_until_the_actor_is_dead():
    counter = Counter.options(name="taken").remote()
    with pytest.raises(ValueError, match="'taken' is already taken"):
        Counter.options(name="taken").remote()
    ray.kill(counter)
    until(lambda: not is_found("taken"), "the name is free")
    again = Counter.options(name="taken").remote(100)
    assert ray.get(again.add.remote()) == 101


def test_ends_with_its_last_handle():
    counter = Counter.options(name="brief").remote()
    ray.get(counter.add.remote())
    del counter
    until(lambda: not is_found("brief"), "the actor ended")


def test_a_handle_that_was_found_keeps_it_alive():
    counter = Counter.options(name="kept").remote()
    found = ray.get_actor("kept")
    del counter
    for expected in range(1, 20):
        assert ray.get(found.add.remote()) == expected


def test_get_if_exists():
    counter = Counter.options(name="one", get_if_exists=True).remote(1)
    same = Counter.options(name="one", get_if_exists=True).remote(1000)
    assert same == counter
    assert ray.get(same.add.remote()) == 2


def test_get_if_exists_from_many_at_once():
    @ray.remote
    def add():
        counter = Counter.options(name="many", get_if_exists=True, lifetime="detached").remote()
        return ray.get(counter.add.remote())

    assert sorted(ray.get([add.remote() for _ in range(20)])) == list(range(1, 21))
    ray.kill(ray.get_actor("many"))


def test_namespaces_are_apart():
    here = Counter.options(name="same").remote()
    there = Counter.options(name="same", namespace="other").remote(10)
    assert ray.get(ray.get_actor("same").add.remote()) == 1
    assert ray.get(ray.get_actor("same", "other").add.remote()) == 11
    assert not is_found("same", "third")
    names = ray.util.list_named_actors(all_namespaces=True)
    assert {"namespace": "other", "name": "same"} in names
    assert "same" in ray.util.list_named_actors()
    del here, there


def test_a_detached_actor_outlives_handles_and_creator():
    @ray.remote(max_calls=1)
    def create():
        counter = Counter.options(name="lasting", lifetime="detached").remote(40)
        ray.get(counter.add.remote())
        return os.getpid()

    pid = ray.get(create.remote())
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the creator ended")
    lasting = ray.get_actor("lasting")
    assert ray.get(lasting.add.remote()) == 42
    del lasting
    assert ray.get(ray.get_actor("lasting").add.remote()) == 43
    ray.kill(ray.get_actor("lasting"))
    until(lambda: not is_found("lasting"), "it was killed")


def test_found_before_its_constructor_has_ended(gate):
    @ray.remote
    class Slow:
        def __init__(self):
            gate.wait()

        def ready(self):
            return True

    slow = Slow.options(name="slow").remote()
    found = ray.get_actor("slow")
    ref = found.ready.remote()
    gate.open()
    assert ray.get(ref)
    del slow


def test_a_constructor_that_raises_frees_the_name():
    @ray.remote
    class Broken:
        def __init__(self):
            raise ValueError("broken")

        def ping(self):
            pass

    broken = Broken.options(name="broken").remote()
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(broken.ping.remote())
    until(lambda: not is_found("broken"), "the name is free")


def test_a_name_is_free_as_soon_as_its_actor_is_killed():
    for _ in range(5):
        counter = Counter.options(name="at once").remote()
        ray.get(counter.add.remote())
        ray.kill(counter)
        counter = Counter.options(name="at once").remote()
        assert ray.get(counter.add.remote()) == 1
        ray.kill(counter)


def test_an_actor_about_to_end_is_not_found():
    for _ in range(5):
        counter = Counter.options(name="ending").remote()
        ray.get(counter.add.remote())
        del counter
        assert not is_found("ending")


def test_all_names_are_listed_however_long():
    count = 300
    names = [f"{'n' * 900}{number}" for number in range(count)]
    actors = [
        Counter.options(name=name, namespace="many", num_cpus=1000).remote() for name in names
    ]
    listed = ray.util.list_named_actors(all_namespaces=True)
    assert sorted(entry["name"] for entry in listed if entry["namespace"] == "many") == sorted(
        names
    )
    del actors


class TestWrong:
    def test_no_such_actor(self):
        with pytest.raises(ValueError, match="Failed to look up actor with name 'nobody'"):
            ray.get_actor("nobody")

    def test_names_that_are_too_long(self):
        with pytest.raises(ValueError, match="1000 bytes"):
            ray.get_actor("x" * 200_000)
        with pytest.raises(ValueError, match="1000 bytes"):
            ray.get_actor("x", namespace="y" * 200_000)

    @pytest.mark.parametrize("name", ["", None, 3])
    def test_names_that_are_none(self, name):
        with pytest.raises(ValueError, match="get_actor"):
            ray.get_actor(name)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"name": ""}, "cannot be an empty string"),
            ({"name": 3}, "type of keyword .name. must be"),
            ({"get_if_exists": True}, "needs a name"),
            ({"namespace": "x"}, "give the option name="),
            ({"name": "x", "lifetime": "forever"}, "lifetime"),
            ({"name": "x" * 200_000}, "1000 bytes"),
            ({"name": "x", "namespace": "y" * 200_000}, "1000 bytes"),
            ({"max_restarts": 2**31}, "at most"),
        ],
    )
    def test_options(self, options, message):
        with pytest.raises((ValueError, TypeError), match=message):
            Counter.options(**options).remote()
