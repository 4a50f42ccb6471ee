"""Actors whose processes die and are started again, and the calls they had."""

import os
import signal
import sys
import time

import oxiray as ray
import pytest
from oxiray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError


@pytest.fixture(scope="module", autouse=True)
def session(cluster):
    yield


@ray.remote
class Fragile:
    def __init__(self, start=0, log=None):
        self.calls = start
        self.log = log

    def count(self):
        self.calls += 1
        return self.calls

    def pid(self):
        return os.getpid()

    def restarted(self):
        return ray.get_runtime_context().was_current_actor_reconstructed

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def die_once(self, mark):
        if not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return "survived"

    def note(self, number):
        with open(self.log, "a") as file:
            file.write(f"{os.getpid()} {number}\n")
        return number

    def exit(self):
        ray.actor.exit_actor()


def is_dead(actor):
    try:
        ray.get(actor.pid.remote())
    except ActorUnavailableError:
        return False
    except ActorDiedError:
        return True
    return False


def test_starts_again_with_the_same_arguments():
    actor = Fragile.options(max_restarts=1).remote(10)
    assert ray.get(actor.count.remote()) == 11
    assert not ray.get(actor.restarted.remote())
    with pytest.raises(ActorUnavailableError):
        ray.get(actor.die.remote())
    assert ray.get(actor.count.remote()) == 11, "a new object"
    assert ray.get(actor.restarted.remote())


def test_as_often_as_it_may():
    actor = Fragile.options(max_restarts=2).remote()
    for _ in range(2):
        with pytest.raises(ActorUnavailableError):
            ray.get(actor.die.remote())
        assert ray.get(actor.count.remote()) == 1
    with pytest.raises(ActorDiedError):
        ray.get(actor.die.remote())
    with pytest.raises(ActorDiedError):
        ray.get(actor.count.remote())


def test_without_end():
    actor = Fragile.options(max_restarts=-1).remote()
    for _ in range(5):
        os.kill(ray.get(actor.pid.remote()), signal.SIGKILL)
        end = time.monotonic() + 20
        while True:
            try:
                assert ray.get(actor.count.remote()) >= 1
                break
            except ActorUnavailableError:
                assert time.monotonic() < end


def test_a_large_argument_is_there_again():
    import numpy as np

    big = np.arange(500_000)

    @ray.remote(max_restarts=1)
    class Holder:
        def __init__(self, array, ref):
            self.total = int(array.sum()) + int(ray.get(ref[0]).sum())

        def get_total(self):
            return self.total

        def die(self):
            os._exit(1)

    holder = Holder.remote(big, [ray.put(big)])
    with pytest.raises(ActorUnavailableError):
        ray.get(holder.die.remote())
    assert ray.get(holder.get_total.remote()) == 2 * int(big.sum())


def test_calls_are_made_again_when_they_may_be(tmp_path):
    actor = Fragile.options(max_restarts=-1, max_task_retries=-1).remote()
    assert ray.get(actor.die_once.remote(str(tmp_path / "mark"))) == "survived"


def test_calls_are_made_again_in_their_order(tmp_path):
    log = tmp_path / "log"
    actor = Fragile.options(max_restarts=-1, max_task_retries=-1).remote(0, str(log))
    ray.get(actor.note.remote(-1))
    refs = [actor.note.remote(i) for i in range(50)]
    refs.append(actor.die_once.remote(str(tmp_path / "mark")))
    refs += [actor.note.remote(i) for i in range(50, 100)]
    assert ray.get(refs) == [*range(50), "survived", *range(50, 100)]
    by_process = {}
    for line in log.read_text().splitlines():
        pid, number = line.split()
        by_process.setdefault(pid, []).append(int(number))
    for numbers in by_process.values():
        assert numbers == sorted(numbers)
    assert list(by_process.values())[-1][-1] == 99


def test_a_methods_own_retries(tmp_path):
    actor = Fragile.options(max_restarts=-1).remote()
    call = actor.die_once.options(max_task_retries=1)
    assert ray.get(call.remote(str(tmp_path / "a"))) == "survived"
    with pytest.raises(ActorUnavailableError):
        ray.get(actor.die_once.remote(str(tmp_path / "b")))


def test_retries_of_a_decorated_method(tmp_path):
    @ray.remote(max_restarts=-1)
    class Decorated:
        @ray.method(max_task_retries=1)
        def die_once(self, mark):
            if not os.path.exists(mark):
                open(mark, "w").close()
                os._exit(1)
            return "survived"

    assert ray.get(Decorated.remote().die_once.remote(str(tmp_path / "mark"))) == "survived"


def test_retries_end(tmp_path):
    actor = Fragile.options(max_restarts=-1, max_task_retries=2).remote()
    with pytest.raises(ActorUnavailableError):
        ray.get(actor.die.remote())
    assert ray.get(actor.count.remote()) == 1


def test_killed_for_good():
    actor = Fragile.options(max_restarts=-1).remote()
    ray.get(actor.pid.remote())
    ray.kill(actor)
    end = time.monotonic() + 10
    while not is_dead(actor):
        assert time.monotonic() < end


def test_killed_to_be_started_again():
    actor = Fragile.options(max_restarts=1).remote()
    first = ray.get(actor.pid.remote())
    ray.kill(actor, no_restart=False)
    end = time.monotonic() + 10
    while True:
        try:
            if ray.get(actor.pid.remote()) != first:
                break
        except ActorUnavailableError:
            pass
        assert time.monotonic() < end


def test_one_that_exits_by_itself_stays_away():
    actor = Fragile.options(max_restarts=-1).remote()
    with pytest.raises(ActorDiedError):
        ray.get(actor.exit.remote())
    with pytest.raises(ActorDiedError):
        ray.get(actor.pid.remote())


def test_ends_with_its_last_handle_after_a_restart():
    actor = Fragile.options(max_restarts=-1).remote()
    with pytest.raises(ActorUnavailableError):
        ray.get(actor.die.remote())
    pid = ray.get(actor.pid.remote())
    del actor
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_others_that_hold_a_handle_go_on_with_it():
    actor = Fragile.options(max_restarts=-1, max_task_retries=-1).remote()

    @ray.remote
    def use(actor, calls):
        return [ray.get(actor.count.remote()) for _ in range(calls)]

    users = [use.remote(actor, 200) for _ in range(2)]
    os.kill(ray.get(actor.pid.remote()), signal.SIGKILL)
    for counts in ray.get(users, timeout=30):
        assert len(counts) == 200


@pytest.mark.parametrize("option", ["max_restarts", "max_task_retries"])
@pytest.mark.parametrize("value", [-2, 1.5, "1", True])
def test_wrong_values(option, value):
    with pytest.raises((TypeError, ValueError), match=option):
        Fragile.options(**{option: value}).remote()


@pytest.mark.parametrize("several", [1, 3])
@pytest.mark.parametrize(("code", "again"), [(1, True), (None, True), ("text", True), (0, False)])
def test_sys_exit_is_a_crash_unless_it_says_that_all_is_well(several, code, again):
    @ray.remote(max_restarts=1, max_concurrency=several)
    class Exits:
        def pid(self):
            return os.getpid()

        def exit(self, code):
            sys.exit(code)

    actor = Exits.remote()
    pid = ray.get(actor.pid.remote())
    with pytest.raises(RayActorError, match=r"sys\.exit"):
        ray.get(actor.exit.remote(code), timeout=60)
    if again:
        assert ray.get(actor.pid.options(max_task_retries=-1).remote(), timeout=60) != pid
    else:
        with pytest.raises(ActorDiedError):
            ray.get(actor.pid.remote(), timeout=60)
