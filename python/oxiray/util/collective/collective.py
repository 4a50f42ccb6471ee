"""Collective operations among actors and tasks, by Ray's names: groups, and what they do."""

from __future__ import annotations

import time
from typing import Any, NoReturn

from ..._native import get
from . import types
from ._group import CollectiveError, Group
from ._hub import HubActor
from .types import Backend, ReduceOp

__all__ = [
    "CollectiveError",
    "allgather",
    "allgather_multigpu",
    "allreduce",
    "allreduce_multigpu",
    "barrier",
    "broadcast",
    "broadcast_multigpu",
    "create_collective_group",
    "destroy_collective_group",
    "get_collective_group_size",
    "get_group_handle",
    "get_rank",
    "gloo_available",
    "init_collective_group",
    "is_backend_available",
    "is_group_initialized",
    "nccl_available",
    "recv",
    "recv_multigpu",
    "reduce",
    "reduce_multigpu",
    "reducescatter",
    "reducescatter_multigpu",
    "register_collective_backend",
    "send",
    "send_multigpu",
]

_PREFIX = "_collective:"
# Of this process, by name.
_groups: dict[str, Group] = {}
# Hubs of groups that this process declared, which live as long as somebody holds them.
_declared: dict[str, Any] = {}


def nccl_available() -> bool:
    """Whether arrays in the memory of graphics cards can be used: they cannot."""
    return False


def gloo_available() -> bool:
    """Whether arrays in the machine's memory can."""
    return True


def is_backend_available(backend: str) -> bool:
    return Backend(backend) == Backend.GLOO  # type: ignore[comparison-overlap]


def register_collective_backend(name: str, group_cls: type) -> NoReturn:
    raise NotImplementedError(
        "Backends of one's own cannot be registered: collective operations here are the engine's, "
        "on arrays in shared memory"
    )


def init_collective_group(
    world_size: int,
    rank: int,
    backend: str = types.Backend.NCCL,
    group_name: str = "default",
    gloo_timeout: int = 30000,
) -> None:
    """Makes this process a member of a group. The group is there when all its ranks have come.

    Args:
        world_size: how many members it has.
        rank: which of them this one is, from 0.
        backend: "GLOO" or "NCCL"; both mean arrays in the machine's memory.
        group_name: its name, in this namespace.
        gloo_timeout: milliseconds that an operation waits for members that have not joined.
    """
    _check_group(world_size, backend, group_name)
    _check_rank("rank", rank, world_size)
    if group_name in _groups:
        raise RuntimeError(
            f"This process is in a collective group {group_name!r} already: "
            "destroy_collective_group() first"
        )
    seconds = gloo_timeout / 1000
    deadline = time.monotonic() + seconds
    while group_name not in _groups:
        hub = _hub(group_name, world_size)
        try:
            _groups[group_name] = Group(group_name, hub, world_size, rank, seconds)
        except CollectiveError:
            # It was that of a group before this one, and was about to end.
            if time.monotonic() > deadline:
                raise


def create_collective_group(
    actors: list[Any],
    world_size: int,
    ranks: list[int],
    backend: str = types.Backend.NCCL,
    group_name: str = "default",
    gloo_timeout: int = 30000,
) -> None:
    """Declares that these actors are a group. Each joins it with its first operation."""
    _check_group(world_size, backend, group_name)
    if len(ranks) != len(actors):
        raise RuntimeError(
            f"Each actor should correspond to one rank: there are {len(ranks)} ranks and "
            f"{len(actors)} actors"
        )
    if set(ranks) != set(range(len(ranks))):
        raise RuntimeError(f"ranks must be 0 to {len(ranks) - 1}, each once, not {ranks}")
    if len(actors) != world_size:
        raise RuntimeError(f"world_size is {world_size}, and there are {len(actors)} actors")
    if group_name in _declared:
        raise RuntimeError(f"The collective group {group_name!r} has been declared already")
    hub = _hub(group_name, world_size)
    ids = {actor._actor_id.hex(): rank for actor, rank in zip(actors, ranks, strict=True)}
    get(hub.declare.remote(ids))
    _declared[group_name] = hub


def destroy_collective_group(group_name: str = "default") -> None:
    """Leaves a group, or takes back its declaration."""
    _declared.pop(group_name, None)
    group = _groups.pop(group_name, None)
    if group is not None:
        group.leave()


def is_group_initialized(group_name: str) -> bool:
    """Whether this process is in the group."""
    return group_name in _groups


def get_rank(group_name: str = "default") -> int:
    """The rank of this process in a group; -1 if it is not in it."""
    return _groups[group_name].rank if group_name in _groups else -1


def get_collective_group_size(group_name: str = "default") -> int:
    """How many members a group has; -1 if this process is not in it."""
    return _groups[group_name].world_size if group_name in _groups else -1


def get_group_handle(group_name: str = "default") -> Group:
    """This process's membership; an actor of a declared group joins it."""
    group = _groups.get(group_name)
    if group is None:
        group = _groups[group_name] = _join_declared(group_name)
    return group


def allreduce(tensor: Any, group_name: str = "default", op: ReduceOp = ReduceOp.SUM) -> None:
    """Every member's tensor becomes the reduction of all."""
    get_group_handle(group_name).allreduce(tensor, _checked(op))


def barrier(group_name: str = "default") -> None:
    """Returns when all members have called it."""
    get_group_handle(group_name).barrier()


def reduce(
    tensor: Any, dst_rank: int = 0, group_name: str = "default", op: ReduceOp = ReduceOp.SUM
) -> None:
    """The tensor of `dst_rank` becomes the reduction of all."""
    group = get_group_handle(group_name)
    _check_rank("dst_rank", dst_rank, group.world_size)
    group.reduce(tensor, dst_rank, _checked(op))


def broadcast(tensor: Any, src_rank: int = 0, group_name: str = "default") -> None:
    """Every member's tensor becomes that of `src_rank`."""
    group = get_group_handle(group_name)
    _check_rank("src_rank", src_rank, group.world_size)
    group.broadcast(tensor, src_rank)


def allgather(tensor_list: list[Any], tensor: Any, group_name: str = "default") -> None:
    """`tensor_list` becomes the tensors of all ranks."""
    get_group_handle(group_name).allgather(tensor_list, tensor)


def reducescatter(
    tensor: Any, tensor_list: list[Any], group_name: str = "default", op: ReduceOp = ReduceOp.SUM
) -> None:
    """`tensor` becomes the reduction of what all have in `tensor_list` for this rank."""
    get_group_handle(group_name).reducescatter(tensor, tensor_list, _checked(op))


def send(tensor: Any, dst_rank: int, group_name: str = "default") -> None:
    """Sends a tensor to one member, which receives it with `recv`."""
    group = get_group_handle(group_name)
    _check_peer("dst_rank", dst_rank, group)
    group.send(tensor, dst_rank)


def recv(tensor: Any, src_rank: int, group_name: str = "default") -> None:
    """Writes what a member sent to this one into a tensor, which has its type and shape."""
    group = get_group_handle(group_name)
    _check_peer("src_rank", src_rank, group)
    group.recv(tensor, src_rank)


def _hub(group_name: str, world_size: int) -> Any:
    name = _PREFIX + group_name
    return HubActor.options(name=name, get_if_exists=True, num_cpus=0).remote(world_size)


def _join_declared(group_name: str) -> Group:
    from ..._named_actors import find
    from ...runtime_context import get_runtime_context

    hub = find(_PREFIX + group_name)
    actor_id = get_runtime_context().get_actor_id()
    if hub is not None and actor_id is not None:
        rank, world_size = get(hub.rank_of.remote(actor_id))
        if rank >= 0:
            return Group(group_name, hub, world_size, rank, 30.0)
    raise RuntimeError(
        f"The collective group {group_name!r} is not initialized in this process: call "
        "init_collective_group() in every member, or create_collective_group() with these actors"
    )


def _check_group(world_size: int, backend: str, group_name: str) -> None:
    Backend(backend)
    if not isinstance(group_name, str) or not group_name:
        raise ValueError(f"group_name '{group_name}' needs to be a string that is not empty")
    if isinstance(world_size, bool) or not isinstance(world_size, int) or world_size < 1:
        raise RuntimeError(f"world_size must be a whole number of at least 1, not {world_size!r}")


def _check_rank(argument: str, rank: int, world_size: int) -> None:
    if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < world_size:
        raise ValueError(f"{argument} must be from 0 to {world_size - 1}, not {rank!r}")


def _check_peer(argument: str, rank: int, group: Group) -> None:
    _check_rank(argument, rank, group.world_size)
    if rank == group.rank:
        raise RuntimeError(f"{argument}: the destination rank {rank} is self")


def _checked(op: ReduceOp) -> ReduceOp:
    if not isinstance(op, ReduceOp):
        raise ValueError(f"op must be a ReduceOp, not {op!r}")
    return op


def _of_graphics_cards(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name}() is for several graphics cards in one process: collective operations here are on "
        f"arrays in the machine's memory. Use {name.removesuffix('_multigpu')}()"
    )


def allreduce_multigpu(
    tensor_list: list[Any], group_name: str = "default", op: ReduceOp = ReduceOp.SUM
) -> None:
    _of_graphics_cards("allreduce_multigpu")


def reduce_multigpu(
    tensor_list: list[Any],
    dst_rank: int = 0,
    dst_tensor: int = 0,
    group_name: str = "default",
    op: ReduceOp = ReduceOp.SUM,
) -> None:
    _of_graphics_cards("reduce_multigpu")


def broadcast_multigpu(
    tensor_list: list[Any], src_rank: int = 0, src_tensor: int = 0, group_name: str = "default"
) -> None:
    _of_graphics_cards("broadcast_multigpu")


def allgather_multigpu(
    output_tensor_lists: list[Any], input_tensor_list: list[Any], group_name: str = "default"
) -> None:
    _of_graphics_cards("allgather_multigpu")


def reducescatter_multigpu(
    output_tensor_list: list[Any],
    input_tensor_lists: list[Any],
    group_name: str = "default",
    op: ReduceOp = ReduceOp.SUM,
) -> None:
    _of_graphics_cards("reducescatter_multigpu")


def send_multigpu(
    tensor: Any,
    dst_rank: int,
    dst_gpu_index: int,
    group_name: str = "default",
    n_elements: int = 0,
) -> None:
    _of_graphics_cards("send_multigpu")


def recv_multigpu(
    tensor: Any,
    src_rank: int,
    src_gpu_index: int,
    group_name: str = "default",
    n_elements: int = 0,
) -> None:
    _of_graphics_cards("recv_multigpu")
