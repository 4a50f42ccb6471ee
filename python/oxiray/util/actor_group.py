"""A group of equal actors that are called together: `group.method.remote()` calls all of them."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from .._actor import ActorHandle, kill
from .._native import ObjectRef, get, wait
from .._remote import remote
from ..exceptions import RayActorError
from .annotations import Deprecated


@dataclass
class ActorWrapper:
    """An actor, and what it said of itself when it was started."""

    actor: ActorHandle[Any]
    metadata: Any


@dataclass
class ActorConfig:
    num_cpus: float
    num_gpus: float
    resources: dict[str, float] | None
    init_args: tuple[Any, ...]
    init_kwargs: dict[str, Any]


class ActorGroupMethod:
    """A method of all actors of a group."""

    def __init__(self, actor_group: ActorGroup, method_name: str) -> None:
        self.actor_group = weakref.ref(actor_group)
        self._method_name = method_name

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        name = self._method_name
        raise TypeError(
            f"ActorGroup methods cannot be called directly. Instead of running 'object.{name}()', "
            f"try 'object.{name}.remote()'."
        )

    def remote(self, *args: Any, **kwargs: Any) -> list[ObjectRef[Any]]:
        group = self.actor_group()
        if group is None:
            raise RuntimeError("The ActorGroup of this method is gone: keep it while you use it")
        return [
            getattr(one.actor, self._method_name).remote(*args, **kwargs) for one in group.actors
        ]


@Deprecated(message="Use ray.util.ActorPool, or a list of actors.")
class ActorGroup:
    """Starts `num_actors` actors of a class, and calls them together."""

    def __init__(
        self,
        actor_cls: type,
        num_actors: int = 1,
        num_cpus_per_actor: float = 1,
        num_gpus_per_actor: float = 0,
        resources_per_actor: dict[str, float] | None = None,
        init_args: tuple[Any, ...] | None = None,
        init_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if num_actors <= 0:
            raise ValueError(f"num_actors must be positive, not {num_actors}")
        if num_cpus_per_actor < 0 or num_gpus_per_actor < 0:
            raise ValueError("num_cpus_per_actor and num_gpus_per_actor must not be negative")
        self._actor_cls = actor_cls
        self._config = ActorConfig(
            num_cpus_per_actor,
            num_gpus_per_actor,
            resources_per_actor,
            tuple(init_args or ()),
            dict(init_kwargs or {}),
        )
        self._make: Any = remote(
            num_cpus=num_cpus_per_actor,
            num_gpus=num_gpus_per_actor,
            resources=resources_per_actor,
        )(actor_cls)
        self.num_actors = num_actors
        self.actors: list[ActorWrapper] = []
        self.start()

    def __getattr__(self, item: str) -> ActorGroupMethod:
        if item.startswith("_") or "actors" not in self.__dict__:
            raise AttributeError(f"'ActorGroup' object has no attribute {item!r}")
        if not self.actors:
            raise RuntimeError(
                "This ActorGroup has been shut down. Please start it again with start()."
            )
        return ActorGroupMethod(self, item)

    def __len__(self) -> int:
        return len(self.actors)

    def __getitem__(self, item: int) -> ActorWrapper:
        return self.actors[item]

    def start(self) -> None:
        """Starts the actors, unless there are any."""
        if self.actors:
            raise RuntimeError("The actors have already been started: shutdown() first")
        self.add_actors(self.num_actors)

    def shutdown(self, patience_s: float = 5) -> None:
        """Ends the actors when they have done what they were called for, within `patience_s`."""
        if patience_s > 0:
            done = [one.actor.__ray_terminate__.remote() for one in self.actors]
            wait(done, num_returns=len(done), timeout=patience_s) if done else None
        for one in self.actors:
            kill(one.actor)
        self.actors = []

    def remove_actors(self, actor_indexes: list[int]) -> None:
        """Lets these actors go."""
        self.actors = [one for at, one in enumerate(self.actors) if at not in set(actor_indexes)]

    def add_actors(self, num_actors: int) -> None:
        """Starts more, and waits for what each says of itself, if its class has
        `get_actor_metadata`."""
        config = self._config
        made: list[ActorHandle[Any]] = [
            self._make.remote(*config.init_args, **config.init_kwargs) for _ in range(num_actors)
        ]
        try:
            if hasattr(self._actor_cls, "get_actor_metadata"):
                metadata = get([actor.get_actor_metadata.remote() for actor in made])
            else:
                metadata = [None] * num_actors
        except RayActorError:
            for actor in made:
                kill(actor)
            raise
        self.actors += [ActorWrapper(*pair) for pair in zip(made, metadata, strict=True)]

    @property
    def actor_metadata(self) -> list[Any]:
        return [one.metadata for one in self.actors]
