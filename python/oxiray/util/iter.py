"""Iterators whose items are made and transformed in several actors at once."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

from .._actor import ActorHandle
from .._native import get, wait
from .._remote import remote

T = TypeVar("T")
U = TypeVar("U")
Transform = Callable[[Iterator[Any]], Iterator[Any]]

_END = "__oxiray_end_of_iterator__"


def from_items(items: list[T], num_shards: int = 2, repeat: bool = False) -> ParallelIterator[T]:
    """The items, dealt out to the shards in turn."""
    shards: list[list[T]] = [[] for _ in range(num_shards)]
    for at, item in enumerate(items):
        shards[at % num_shards].append(item)
    kind = type(items[0]).__name__ if items else "None"
    name = f"from_items[{kind}, {len(items)}, shards={num_shards}{', repeat=True' * repeat}]"
    return from_iterators(shards, repeat, name)


def from_range(n: int, num_shards: int = 2, repeat: bool = False) -> ParallelIterator[int]:
    """The numbers below `n`, in as many parts as there are shards."""
    size = n // num_shards
    ends = [size * (at + 1) for at in range(num_shards - 1)] + [n]
    ranges = [range(size * at, end) for at, end in enumerate(ends)]
    name = f"from_range[{n}, shards={num_shards}{', repeat=True' * repeat}]"
    return from_iterators(ranges, repeat, name)


def from_iterators(
    generators: list[Any], repeat: bool = False, name: str | None = None
) -> ParallelIterator[Any]:
    """A shard for each iterable, or for each function that returns an iterator."""
    workers: list[Any] = [_WorkerActor.remote(one, repeat) for one in generators]
    shown = f"from_iterators[shards={len(generators)}{', repeat=True' * repeat}]"
    return from_actors(workers, name or shown)


def from_actors(actors: list[ActorHandle[Any]], name: str | None = None) -> ParallelIterator[Any]:
    """A shard for each actor, whose class is a `ParallelIteratorWorker`."""
    name = name or f"from_actors[shards={len(actors)}]"
    return ParallelIterator([_Shards(actors, [])], name, [])


class ParallelIteratorWorker:
    """What a class must be whose actors are the shards of a parallel iterator."""

    def __init__(self, item_generator: Any, repeat: bool) -> None:
        def endless() -> Iterator[Any]:
            while True:
                yield from make()

        def make() -> Iterable[Any]:
            made: Iterable[Any] = item_generator() if callable(item_generator) else item_generator
            return made

        self.item_generator: Any = None
        self._make = endless if repeat else make
        self._iterators: dict[Any, Iterator[Any]] = {}

    def par_iter_init(self, transforms: list[Transform]) -> None:
        """Begins anew, with these transforms."""
        made = iter(self._make())
        for transform in transforms:
            made = transform(made)
        self.local_it = made
        self._iterators.clear()
        self._slices: dict[tuple[int, int], deque[Any]] = {}

    def par_iter_next(self) -> Any:
        return next(self.local_it, _END)

    def par_iter_next_batch(self, batch_ms: int) -> list[Any]:
        """As many items as come within so many milliseconds, one at least; last the end."""
        return _batch(self.par_iter_next, batch_ms)

    def par_iter_slice(self, step: int, start: int) -> Any:
        """Of every `step` items that at `start`; the others are kept for who asks for them."""
        if not self._slices:
            self._slices = {(step, at): deque() for at in range(step)}
            self._dealt = 0
        kept = self._slices[step, start]
        while not kept:
            item = next(self.local_it, _END)
            if isinstance(item, str) and item == _END:
                return _END
            self._slices[step, self._dealt % step].append(item)
            self._dealt += 1
        return kept.popleft()

    def par_iter_slice_batch(self, step: int, start: int, batch_ms: int) -> list[Any]:
        return _batch(lambda: self.par_iter_slice(step, start), batch_ms)


def _batch(take: Callable[[], Any], batch_ms: int) -> list[Any]:
    end = time.monotonic() + batch_ms / 1000
    batch = [take()]
    while not _is_end(batch[-1]) and time.monotonic() < end:
        batch.append(take())
    return batch


def _is_end(item: Any) -> bool:
    return isinstance(item, str) and item == _END


_WorkerActor = remote(num_cpus=0)(ParallelIteratorWorker)


class _Shards:
    """Some actors, and what is done with their items there."""

    def __init__(self, actors: list[ActorHandle[Any]], transforms: list[Transform]) -> None:
        self.actors = actors
        self.transforms = transforms

    def with_transform(self, transform: Transform) -> _Shards:
        return _Shards(self.actors, [*self.transforms, transform])

    def begin(self) -> None:
        get([actor.par_iter_init.remote(self.transforms) for actor in self.actors])


class ParallelIterator(Generic[T]):
    """Items in several actors. Transforms run there; `gather_sync`, `gather_async` bring them."""

    def __init__(self, actor_sets: list[_Shards], name: str, parent_iterators: list[Any]) -> None:
        self.actor_sets = actor_sets
        self.name = name
        # The actors of others live as long as this does.
        self.parent_iterators = parent_iterators

    def __iter__(self) -> Iterator[T]:
        raise TypeError(
            "You must use it.gather_sync() or it.gather_async() to iterate over the results of a "
            "ParallelIterator."
        )

    def __repr__(self) -> str:
        return f"ParallelIterator[{self.name}]"

    def _with(self, transform: Transform, name: str) -> ParallelIterator[Any]:
        sets = [shards.with_transform(transform) for shards in self.actor_sets]
        return ParallelIterator(sets, f"{self.name}{name}", [self])

    def transform(self, fn: Transform) -> ParallelIterator[Any]:
        """Each shard's iterator becomes `fn` of it."""
        return self._with(fn, ".transform()")

    def for_each(
        self,
        fn: Callable[[T], U],
        max_concurrency: int = 1,
        resources: dict[str, Any] | None = None,
    ) -> ParallelIterator[U]:
        """`fn` of each item; with `max_concurrency` over 1, in so many tasks at once."""
        transform = _in_tasks(fn, max_concurrency, resources)
        return self._with(transform, ".for_each()")

    def filter(self, fn: Callable[[T], bool]) -> ParallelIterator[T]:
        return self._with(lambda items: (item for item in items if fn(item)), ".filter()")

    def batch(self, n: int) -> ParallelIterator[list[T]]:
        """Lists of `n` items; the last may have fewer."""
        return self._with(lambda items: _batches(items, n), f".batch({n})")

    def flatten(self) -> ParallelIterator[Any]:
        return self._with(lambda items: (one for item in items for one in item), ".flatten()")

    def combine(self, fn: Callable[[T], list[U]]) -> ParallelIterator[U]:
        """The items of the lists that `fn` makes of each item."""
        made = self.for_each(fn).flatten()
        made.name = f"{self.name}.combine()"
        return made

    def local_shuffle(
        self, shuffle_buffer_size: int, seed: int | None = None
    ) -> ParallelIterator[T]:
        """The items of each shard in another order, of so many at a time."""
        return self._with(
            lambda items: _shuffled(items, shuffle_buffer_size, seed),
            f".local_shuffle(shuffle_buffer_size={shuffle_buffer_size}, seed={seed})",
        )

    def repartition(self, num_partitions: int, batch_ms: int = 0) -> ParallelIterator[T]:
        """The same items in another number of shards."""
        sources = self._begun()

        def part(at: int) -> Callable[[], Iterator[Any]]:
            def items() -> Iterator[Any]:
                asked = {
                    actor.par_iter_slice_batch.remote(num_partitions, at, batch_ms): actor
                    for actor in sources
                }
                yield from _as_they_come(
                    asked,
                    lambda actor: actor.par_iter_slice_batch.remote(num_partitions, at, batch_ms),
                )

            return items

        made = from_iterators([part(at) for at in range(num_partitions)])
        made.name = f"{self.name}.repartition[num_partitions={num_partitions}]"
        made.parent_iterators = [self]
        return made

    def gather_sync(self) -> LocalIterator[T]:
        """The items, one of each shard in turn."""
        made = self.batch_across_shards().flatten()
        made.name = f"{self}.gather_sync()"
        return made

    def batch_across_shards(self) -> LocalIterator[list[T]]:
        """Lists of one item of each shard that has any left."""

        def items() -> Iterator[list[Any]]:
            actors = self._begun()
            while actors:
                found = get([actor.par_iter_next.remote() for actor in actors])
                pairs = [pair for pair in zip(actors, found, strict=True) if not _is_end(pair[1])]
                if pairs:
                    yield [item for _, item in pairs]
                actors = [actor for actor, _ in pairs]

        return LocalIterator(items, None, name=f"{self}.batch_across_shards()")

    def gather_async(self, batch_ms: int = 0, num_async: int = 1) -> LocalIterator[T]:
        """The items as they come."""
        if num_async < 1:
            raise ValueError(f"queue depth must be positive: num_async={num_async}")
        if batch_ms < 0:
            raise ValueError(f"batch time must be positive: batch_ms={batch_ms}")

        def items() -> Iterator[Any]:
            actors = self._begun()
            asked = {
                actor.par_iter_next_batch.remote(batch_ms): actor
                for actor in actors
                for _ in range(num_async)
            }
            yield from _as_they_come(
                asked, lambda actor: actor.par_iter_next_batch.remote(batch_ms)
            )

        return LocalIterator(items, None, name=f"{self}.gather_async()")

    def take(self, n: int) -> list[T]:
        """The first `n` items."""
        return self.gather_sync().take(n)

    def show(self, n: int = 20) -> None:
        """Prints the first `n` items."""
        self.gather_sync().show(n)

    def union(self, other: ParallelIterator[T]) -> ParallelIterator[T]:
        """The shards of both."""
        if not isinstance(other, ParallelIterator):
            raise TypeError(f"other must be of type ParallelIterator, got {type(other)}")
        sets = [*self.actor_sets, *other.actor_sets]
        return ParallelIterator(sets, f"ParallelUnion[{self}, {other}]", [self, other])

    def select_shards(self, shards_to_keep: list[int]) -> ParallelIterator[T]:
        """Some of the shards, by their numbers."""
        if len(self.actor_sets) > 1:
            raise ValueError("select_shards() is not supported after union()")
        if any(not 0 <= at < self.num_shards() for at in shards_to_keep):
            raise ValueError(f"shards_to_keep must be below {self.num_shards()}: {shards_to_keep}")
        (shards,) = self.actor_sets
        kept = [shards.actors[at] for at in shards_to_keep]
        name = f"{self.name}.select_shards({shards_to_keep})"
        return ParallelIterator([_Shards(kept, shards.transforms)], name, [self])

    def num_shards(self) -> int:
        return sum(len(shards.actors) for shards in self.actor_sets)

    def shards(self) -> list[LocalIterator[T]]:
        """An iterator of each shard alone."""
        return [self.get_shard(at) for at in range(self.num_shards())]

    def get_shard(
        self, shard_index: int, batch_ms: int = 0, num_async: int = 1
    ) -> LocalIterator[T]:
        """An iterator of one shard, by its number."""
        pairs = [(shards, actor) for shards in self.actor_sets for actor in shards.actors]
        if not 0 <= shard_index < len(pairs):
            raise ValueError(f"Shard index must be below {len(pairs)}: {shard_index}")
        shards, actor = pairs[shard_index]

        def items() -> Iterator[Any]:
            get(actor.par_iter_init.remote(shards.transforms))
            while True:
                for item in get(actor.par_iter_next_batch.remote(batch_ms)):
                    if _is_end(item):
                        return
                    yield item

        return LocalIterator(items, None, name=f"{self.name}.shard[{shard_index}]")

    def _begun(self) -> list[ActorHandle[Any]]:
        for shards in self.actor_sets:
            shards.begin()
        return [actor for shards in self.actor_sets for actor in shards.actors]


class LocalIterator(Generic[T]):
    """Items that are brought to this process as they are asked for."""

    def __init__(
        self,
        base_iterator: Callable[..., Iterator[T]],
        shared_metrics: Any,
        local_transforms: list[Transform] | None = None,
        timeout: int | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(base_iterator):
            raise TypeError(f"base_iterator must return an iterator, not {base_iterator!r}")
        self.base_iterator = base_iterator
        self.shared_metrics = shared_metrics
        self.local_transforms = local_transforms or []
        self.timeout = timeout
        self.name = name or "unknown"
        self._built: Iterator[T] | None = None

    def __iter__(self) -> Iterator[T]:
        return self._iterator()

    def __next__(self) -> T:
        return next(self._iterator())

    def __repr__(self) -> str:
        return f"LocalIterator[{self.name}]"

    def _iterator(self) -> Iterator[T]:
        if self._built is None:
            made = self.base_iterator()
            for transform in self.local_transforms:
                made = transform(made)
            self._built = iter(made)
        return self._built

    def transform(self, fn: Transform) -> LocalIterator[Any]:
        """Another iterator: `fn` of this one."""
        return self._with(fn, ".transform()")

    def _with(self, transform: Transform, name: str) -> LocalIterator[Any]:
        transforms = [*self.local_transforms, transform]
        return LocalIterator(
            self.base_iterator, self.shared_metrics, transforms, name=self.name + name
        )

    def for_each(
        self,
        fn: Callable[[T], U],
        max_concurrency: int = 1,
        resources: dict[str, Any] | None = None,
    ) -> LocalIterator[U]:
        return self._with(_in_tasks(fn, max_concurrency, resources), ".for_each()")

    def filter(self, fn: Callable[[T], bool]) -> LocalIterator[T]:
        return self._with(lambda items: (item for item in items if fn(item)), ".filter()")

    def batch(self, n: int) -> LocalIterator[list[T]]:
        return self._with(lambda items: _batches(items, n), f".batch({n})")

    def flatten(self) -> LocalIterator[Any]:
        return self._with(lambda items: (one for item in items for one in item), ".flatten()")

    def shuffle(self, shuffle_buffer_size: int, seed: int | None = None) -> LocalIterator[T]:
        return self._with(lambda items: _shuffled(items, shuffle_buffer_size, seed), ".shuffle()")

    def combine(self, fn: Callable[[T], list[U]]) -> LocalIterator[U]:
        return self.for_each(fn).flatten()

    def take(self, n: int) -> list[T]:
        return list(islice(self, n))

    def show(self, n: int = 20) -> None:
        for item in self.take(n):
            print(item)

    def duplicate(self, n: int) -> list[LocalIterator[T]]:
        """So many iterators of the same items; what one is ahead of another is kept."""
        if n < 2:
            raise ValueError(f"Number of copies must be >= 2: {n}")
        queues: list[deque[T]] = [deque() for _ in range(n)]
        source = iter(self)

        def items(own: deque[T]) -> Iterator[T]:
            while True:
                while own:
                    yield own.popleft()
                try:
                    item = next(source)
                except StopIteration:
                    return
                for queue in queues:
                    queue.append(item)

        return [
            LocalIterator(lambda own=own: items(own), None, name=f"{self.name}.duplicate[{at}]")
            for at, own in enumerate(queues)
        ]

    def union(
        self,
        *others: LocalIterator[T],
        deterministic: bool = False,
        round_robin_weights: list[float] | None = None,
    ) -> LocalIterator[T]:
        """The items of all, in turn: as many of each as its weight says."""
        sources = [self, *others]
        for one in others:
            if not isinstance(one, LocalIterator):
                raise TypeError(f"other must be of type LocalIterator, got {type(one)}")
        if round_robin_weights and len(round_robin_weights) != len(sources):
            raise ValueError(f"round_robin_weights must have {len(sources)} numbers")
        weights = [max(1, int(weight)) for weight in round_robin_weights or [1] * len(sources)]

        def items() -> Iterator[T]:
            active = list(zip(weights, map(iter, sources), strict=True))
            while active:
                left = []
                for weight, source in active:
                    taken = list(islice(source, weight))
                    yield from taken
                    if len(taken) == weight:
                        left.append((weight, source))
                active = left

        return LocalIterator(items, None, name=f"LocalUnion[{', '.join(map(repr, sources))}]")


def _as_they_come(
    asked: dict[Any, ActorHandle[Any]], ask: Callable[[ActorHandle[Any]], Any]
) -> Iterator[Any]:
    """The items of batches that actors were asked for, and are asked for again."""
    while asked:
        (ready,), _ = wait(list(asked), num_returns=1)
        actor = asked.pop(ready)
        batch = get(ready)
        if not _is_end(batch[-1]):
            asked[ask(actor)] = actor
        yield from (item for item in batch if not _is_end(item))


def _in_tasks(
    fn: Callable[[Any], Any], max_concurrency: int, resources: dict[str, Any] | None
) -> Transform:
    if max_concurrency == 1:
        return lambda items: map(fn, items)
    if max_concurrency < 0:
        raise ValueError("max_concurrency must be non-negative.")

    def run(items: Iterator[Any]) -> Iterator[Any]:
        task = remote(**(resources or {"num_cpus": 1}))(fn)
        running: deque[Any] = deque()
        for item in items:
            if max_concurrency and len(running) >= max_concurrency:
                yield get(running.popleft())
            running.append(task.remote(item))
        while running:
            yield get(running.popleft())

    return run


def _batches(items: Iterator[Any], n: int) -> Iterator[list[Any]]:
    while batch := list(islice(items, n)):
        yield batch


def _shuffled(items: Iterator[Any], size: int, seed: int | None) -> Iterator[Any]:
    if size < 1:
        raise ValueError(f"shuffle_buffer_size must be at least 1: {size}")
    dice, kept = random.Random(seed), list(islice(items, size))
    for item in items:
        at = dice.randrange(len(kept))
        kept[at], item = item, kept[at]
        yield item
    dice.shuffle(kept)
    yield from kept
