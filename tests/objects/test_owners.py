"""Who made an object owns it: what others hold outlives what its owner does next."""

from __future__ import annotations

import os

import oxiray as ray
import pytest


@ray.remote
class Actor:
    def pid(self):
        return os.getpid()


@ray.remote
def make(kind):
    """A reference that this worker owns; large values are in the store."""
    value = kind * (1 if kind == b"s" else 1 << 20)
    return os.getpid(), [ray.put(value)]


@ray.remote
def make_actor():
    return os.getpid(), [Actor.remote()]


@pytest.mark.parametrize("kind", [b"s", b"l"], ids=["small", "large"])
def test_a_worker_whose_objects_are_held_becomes_no_actor(fresh, kind):
    fresh(num_cpus=1)
    owner, [held] = ray.get(make.remote(kind))
    # One CPU, one idle worker: this one, if it were taken.
    actor = Actor.remote()
    assert ray.get(actor.pid.remote()) != owner
    ray.kill(actor)
    # Tasks are welcome to it.
    assert ray.get(make.remote(kind))[0] == owner
    assert ray.get(held, timeout=30)[:1] == kind


def test_a_worker_whose_actor_is_held_becomes_none(fresh):
    fresh(num_cpus=1)
    owner, [held] = ray.get(make_actor.remote())
    actor = Actor.remote()
    assert ray.get(actor.pid.remote()) != owner
    ray.kill(actor)
    assert ray.get(held.pid.remote(), timeout=30) != owner


def test_a_worker_of_which_nothing_is_held_becomes_one(fresh):
    fresh(num_cpus=1)
    owner, refs = ray.get(make.remote(b"s"))
    del refs
    # When it answers this it has heard of that.
    assert ray.get(ray.remote(os.getpid).remote()) == owner
    actor = Actor.remote()
    assert ray.get(actor.pid.remote()) == owner


OUT_OF_BAND = """
import os, pickle
import oxiray as ray
from oxiray.exceptions import OufOfBandObjectRefSerializationException as OutOfBand

ray.init(num_cpus=1)
ref, actor = ray.put(1), ray.remote(type("A", (), {"ping": lambda self: 1})).remote()


@ray.remote
def captures():
    return ref


@ray.remote
def pickles():
    pickle.dumps(ray.put(1))


def outcome(call):
    try:
        call()
    except OutOfBand as error:
        assert "Pass it as an argument" in str(error)
        return "refused"
    return "done"


print(outcome(lambda: pickle.dumps(ref)), outcome(captures.remote))
print(outcome(lambda: ray.get(pickles.remote())), outcome(lambda: pickle.dumps(actor)))
assert ray.get(ray.remote(lambda refs: ray.get(refs)).remote([ref])) == [1]
"""


@pytest.mark.parametrize(("allowed", "says"), [("0", "refused"), ("1", "done")])
def test_references_outside_of_the_engine_can_be_refused(driver, allowed, says):
    done = driver(OUT_OF_BAND, env={"RAY_allow_out_of_band_object_ref_serialization": allowed})
    assert done.stdout.split() == [says, says, says, "done"], done.stderr
