"""One process's membership of a collective group: the operations.

All members call the same operations in the same order. Arrays are put into the object store in as
many pieces as there are members; each member reduces one piece of all, and all gather the results:
so every byte is read and written once by everybody, in place where they share a machine.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

from ..._actor import kill
from ..._native import ObjectRef, get, put
from ...exceptions import RayActorError, RayError
from . import _tensors
from ._hub import Member, process_start
from .types import ReduceOp

# Smaller arrays go by way of the hub, which saves a round.
_SMALL = 32 * 1024


class CollectiveError(RuntimeError):
    """An operation of a collective group failed, and so does everything that its members do in it:
    destroy the group, and form it anew."""


class Group:
    """A rank in a group."""

    def __init__(self, name: str, hub: Any, world_size: int, rank: int, patience: float) -> None:
        self.group_name = name
        self.world_size = world_size
        self.rank = rank
        self._hub = hub
        self._patience = patience
        self._operations = 0
        self._messages: dict[tuple[int, int], int] = {}
        why = self._ask(hub.join.remote(rank, world_size, _this_process()))
        if why:
            raise ValueError(f"The collective group {name!r} cannot be joined: {why}")

    def leave(self) -> None:
        """The last one ends the hub, and is back when its name is free: else who forms the group
        anew could find one that is about to end with its last handle."""
        try:
            if get(self._hub.leave.remote(self.rank, os.getpid())):
                kill(self._hub)
                while True:
                    get(self._hub.rank_of.remote(""))
        except RayError:  # it has ended
            pass

    def barrier(self) -> None:
        self._meet("barrier", None)

    def allreduce(self, tensor: Any, op: ReduceOp) -> None:
        array = _tensors.as_array(tensor, "tensor", is_written=True)
        self._reduce("allreduce", array, op, None)

    def reduce(self, tensor: Any, root: int, op: ReduceOp) -> None:
        array = _tensors.as_array(tensor, "tensor", is_written=self.rank == root)
        self._reduce(f"reduce to rank {root}", array, op, root)

    def _reduce(self, name: str, array: Any, op: ReduceOp, root: int | None) -> None:
        """The result is written into the array of `root`, or of everybody."""
        what = f"{name} ({op.name}) of {_tensors.described(array)}"
        is_wanted = root in (None, self.rank)
        if array.nbytes <= _SMALL:
            parts = self._meet(what, array)
            if is_wanted:
                array[...] = _tensors.reduced(parts, op)
            return
        flat, bounds = array.reshape(-1), self._bounds(array.size)
        pieces = [put(flat[begin:end]) for begin, end in bounds]
        mine = get([theirs[self.rank] for theirs in self._meet(what, pieces)])
        results = self._meet(what, [put(_tensors.reduced(mine, op))])
        if is_wanted:
            out = array if array.flags.c_contiguous else None
            target = flat if out is not None else flat.copy()
            for (begin, end), [ref] in zip(bounds, results, strict=True):
                target[begin:end] = get(ref)
            if out is None:
                array[...] = target.reshape(array.shape)
        # Until all have their results, who reduced a piece must be there to give it.
        self._meet(what, None)

    def broadcast(self, tensor: Any, root: int) -> None:
        array = _tensors.as_array(tensor, "tensor", is_written=self.rank != root)
        what = f"broadcast from rank {root} of {_tensors.described(array)}"
        sent = self._meet(what, _parcel(array) if self.rank == root else None)[root]
        if self.rank != root:
            array[...] = _opened(sent)
        self._meet(what, None)

    def allgather(self, tensors: list[Any], tensor: Any) -> None:
        self._check_list(tensors)
        array = _tensors.as_array(tensor, "tensor", is_written=False)
        outs = [_tensors.as_array(out, "tensor_list", is_written=True) for out in tensors]
        _check_shapes(outs, array)
        what = f"allgather of {_tensors.described(array)}"
        for out, sent in zip(outs, self._meet(what, _parcel(array)), strict=True):
            out[...] = _opened(sent)
        self._meet(what, None)

    def reducescatter(self, tensor: Any, tensors: list[Any], op: ReduceOp) -> None:
        self._check_list(tensors)
        out = _tensors.as_array(tensor, "tensor", is_written=True)
        arrays = [_tensors.as_array(one, "tensor_list", is_written=False) for one in tensors]
        _check_shapes(arrays, out)
        what = f"reducescatter ({op.name}) of {_tensors.described(out)}"
        sent = self._meet(what, [_parcel(array) for array in arrays])
        out[...] = _tensors.reduced([_opened(theirs[self.rank]) for theirs in sent], op)
        self._meet(what, None)

    def send(self, tensor: Any, to: int) -> None:
        array = _tensors.as_array(tensor, "tensor", is_written=False)
        key = self._message(self.rank, to)
        what = _tensors.described(array)
        self._check(self._ask(self._hub.post.remote(key, what, _parcel(array))))

    def recv(self, tensor: Any, sender: int) -> None:
        array = _tensors.as_array(tensor, "tensor", is_written=True)
        key = self._message(sender, self.rank)
        why, what, sent = self._ask(self._hub.fetch.remote(key, sender, self._patience))
        self._check(why)
        if what != _tensors.described(array):
            raise ValueError(
                f"rank {sender} of the collective group {self.group_name!r} sent {what}, and "
                f"tensor is {_tensors.described(array)}"
            )
        array[...] = _opened(sent)

    def _message(self, sender: int, to: int) -> tuple[int, int, int]:
        number = self._messages.get((sender, to), 0)
        self._messages[sender, to] = number + 1
        return sender, to, number

    def _meet(self, what: str, brought: Any) -> list[Any]:
        """What everybody brings to the next operation."""
        self._operations += 1
        asked = self._hub.meet.remote(self._operations, self.rank, what, brought, self._patience)
        why, all_brought = self._ask(asked)
        self._check(why)
        return all_brought  # type: ignore[no-any-return]

    def _ask(self, ref: ObjectRef[Any]) -> Any:
        try:
            return get(ref)
        except RayActorError as error:
            raise CollectiveError(
                f"The collective group {self.group_name!r} has ended: the process that formed it "
                f"has, or its driver. {error}"
            ) from error

    def _check(self, why: str) -> None:
        if why:
            raise CollectiveError(
                f"Rank {self.rank} of the collective group {self.group_name!r}: {why}. Call "
                "destroy_collective_group() in every member, and form the group anew."
            )

    def _bounds(self, size: int) -> list[tuple[int, int]]:
        """Where the pieces of an array begin and end."""
        edges = [size * rank // self.world_size for rank in range(self.world_size + 1)]
        return list(itertools.pairwise(edges))

    def _check_list(self, tensors: list[Any]) -> None:
        if not isinstance(tensors, list) or len(tensors) != self.world_size:
            raise ValueError(
                f"tensor_list must be a list of {self.world_size}, one for each rank of the "
                f"collective group {self.group_name!r}"
            )


def _check_shapes(arrays: list[Any], like: Any) -> None:
    for rank, array in enumerate(arrays):
        if _tensors.described(array) != _tensors.described(like):
            raise ValueError(
                f"tensor_list[{rank}] is {_tensors.described(array)}, and tensor is "
                f"{_tensors.described(like)}: all must have one type and shape"
            )


def _parcel(array: Any) -> Any:
    """An array to send: itself if it is small, else a reference that nobody resolves on the way."""
    return array if array.nbytes <= _SMALL else [put(array)]


def _opened(parcel: Any) -> Any:
    return get(parcel[0]) if isinstance(parcel, list) else parcel


def _this_process() -> Member:
    from ...runtime_context import get_runtime_context

    context = get_runtime_context()
    actor = context.current_actor if context.get_actor_id() else None
    pid = os.getpid()
    return Member(context.get_node_id(), pid, process_start(pid) or 0, actor)
