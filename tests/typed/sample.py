"""What type checkers know of the API: `test_types` has them read this, under both names.

A line with an ignore is a mistake that must be found: an ignore that nothing needs is an error.
"""

from __future__ import annotations

from typing import Any, assert_type

import oxiray as ray
from oxiray import ObjectRef
from oxiray.actor import ActorClass, ActorProxy


@ray.remote
def length(text: str, factor: int = 1) -> int:
    return len(text) * factor


@ray.remote(num_cpus=0.5, max_retries=0)
def halve(number: int) -> float:
    return number / 2


@ray.remote(num_returns=2)
def both(a: int) -> tuple[int, int]:
    return a, -a


def tasks() -> None:
    ref = length.remote("abc")
    assert_type(ref, ObjectRef[int])
    assert_type(ray.get(ref), int)
    assert_type(length.remote("abc", 2), ObjectRef[int])
    assert_type(length.remote(text="abc", factor=2), ObjectRef[int])
    length.remote(3)  # type: ignore[call-overload]
    length.remote()  # type: ignore[call-overload]
    length.remote("abc", wrong=1)  # type: ignore[call-overload]
    # A reference to an argument is as good as the argument.
    assert_type(halve.remote(ref), ObjectRef[float])
    assert_type(length.remote("abc", ref), ObjectRef[int])
    assert_type(halve.options(num_cpus=2).remote(3), ObjectRef[float])
    assert_type(both.remote(1), Any)


def values() -> None:
    ref = ray.put({"a": 1})
    assert_type(ref, ObjectRef[dict[str, int]])
    assert_type(ray.get([ray.put(1), ray.put(2)]), list[int])
    ready, rest = ray.wait([halve.remote(1)], num_returns=1, timeout=1.0)
    assert_type(ready, list[ObjectRef[float]])
    assert_type(rest, list[ObjectRef[float]])
    assert_type(ref.future().result(), dict[str, int])
    ray.get(3)  # type: ignore[call-overload]


class Counter:
    def __init__(self, start: int) -> None:
        self.n = start

    @ray.method
    def add(self, k: int) -> int:
        self.n += k
        return self.n

    @ray.method(num_returns=1)
    def show(self) -> str:
        return str(self.add(0))

    @ray.method
    async def later(self) -> float:
        return 1.0


CounterActor: ActorClass[Counter] = ray.remote(Counter)


def actors() -> None:
    actor = CounterActor.remote(1)
    total: int = ray.get(actor.add.remote(2))
    later: float = ray.get(actor.later.remote())
    wrong: str = ray.get(actor.add.remote(total))  # type: ignore[assignment]
    print(later, wrong)
    count(actor)
    ray.kill(actor)
    CounterActor.options(name="counter", num_cpus=1).remote(1)


def count(actor: ActorProxy[Counter]) -> str:
    actor.add.remote("a")  # type: ignore[call-overload]
    return ray.get(actor.show.remote())


async def awaited() -> int:
    assert_type(await length.remote("abc"), int)
    return await length.remote("abc")
