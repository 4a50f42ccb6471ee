"""The actor where the members of a collective group meet.

It sees who is there and who has died, and hands each member what the others brought: references
and small arrays. Large ones it never touches.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from ..._remote import remote

# How often it is looked whether those who are waited for still live.
_LOOK_S = 0.3


class Member(NamedTuple):
    """What is known of a member: by what it can be seen that it has died."""

    node_id: str
    pid: int
    started: int  # as /proc says it: a process number is used again
    actor: Any  # its handle, if it is an actor


def process_start(pid: int) -> int | None:
    """When a process of this machine was started, in the kernel's ticks; None: it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


class _Meeting:
    """One operation: what each member says of it and brings."""

    def __init__(self) -> None:
        self.brought: dict[int, Any] = {}
        self.what: dict[int, Any] = {}
        self.taken = 0
        self.changed = asyncio.Event()


class Hub:
    """See the module."""

    def __init__(self, world_size: int) -> None:
        from ...runtime_context import get_runtime_context

        self._node_id = get_runtime_context().get_node_id()
        self._size = world_size
        self._declared: dict[str, int] = {}  # ranks by actor id
        self._members: dict[int, Member] = {}
        self._meetings: dict[Any, _Meeting] = {}
        self._posts: dict[Any, Any] = {}
        self._arrival = asyncio.Event()
        self._why_broken = ""
        self._watched: dict[int, asyncio.Future[Any]] = {}

    async def declare(self, ranks: dict[str, int]) -> None:
        """Which actors are to be members, by their ids."""
        self._declared = ranks

    async def rank_of(self, actor_id: str) -> tuple[int, int]:
        """The rank that was declared for an actor, -1 for none; and how many there are."""
        return self._declared.get(actor_id, -1), self._size

    async def join(self, rank: int, world_size: int, member: Member) -> str:
        """Why it cannot; empty: it has."""
        if world_size != self._size:
            return f"its members disagree on its size: {self._size} and {world_size}"
        known = self._members.get(rank)
        if known is not None and known[:3] != member[:3]:
            if self._is_alive_here(known) is not False and not self._why_broken:
                return f"rank {rank} is taken, by process {known.pid} of node {known.node_id[:8]}"
            self._form_anew()
        elif known is not None or self._why_broken:
            self._form_anew()
        self._members[rank] = member
        self._arrival.set()
        self._arrival = asyncio.Event()
        return ""

    async def leave(self, rank: int, pid: int) -> bool:
        """Whether nobody is left who could use the group."""
        known = self._members.get(rank)
        if known is not None and known.pid == pid:
            del self._members[rank]
        return all(self._is_alive_here(one) is False for one in self._members.values())

    async def meet(
        self, key: Any, rank: int, what: Any, brought: Any, patience: float
    ) -> tuple[str, list[Any]]:
        """What all members brought, when all have come; or why that will never be."""
        if self._why_broken:
            return self._why_broken, []
        meeting = self._meetings.setdefault(key, _Meeting())
        meeting.what[rank], meeting.brought[rank] = what, brought
        if len(set(map(repr, meeting.what.values()))) > 1:
            shown = ", ".join(f"rank {r} calls {w}" for r, w in sorted(meeting.what.items()))
            self._break(f"its members do not do the same: {shown}")
        elif len(meeting.brought) == self._size:
            self._wake(meeting)
        why = await self._wait(meeting, patience)
        meeting.taken += 1
        if meeting.taken == self._size:
            self._meetings.pop(key, None)
        return why, [] if why else [meeting.brought[r] for r in range(self._size)]

    async def _wait(self, meeting: _Meeting, patience: float) -> str:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while len(meeting.brought) < self._size and not self._why_broken:
            missing = [rank for rank in range(self._size) if rank not in meeting.brought]
            self._look_at(missing)
            strangers = [rank for rank in missing if rank not in self._members]
            if strangers and loop.time() - begun > patience:
                self._break(f"rank {strangers} has not joined within {patience:g} s")
            await self._pause(meeting.changed)
        return self._why_broken if len(meeting.brought) < self._size else ""

    async def post(self, key: Any, what: Any, brought: Any) -> str:
        """Leaves something for another member."""
        self._posts[key] = what, brought
        self._wake_all()
        return self._why_broken

    async def fetch(self, key: Any, sender: int, patience: float) -> tuple[str, Any, Any]:
        """What another member left."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while key not in self._posts:
            if self._why_broken:
                return self._why_broken, None, None
            self._look_at([sender])
            if sender not in self._members and loop.time() - begun > patience:
                self._break(f"rank [{sender}] has not joined within {patience:g} s")
            await self._pause(self._arrival)
        return "", *self._posts.pop(key)

    async def _pause(self, event: asyncio.Event) -> None:
        try:
            await asyncio.wait_for(event.wait(), _LOOK_S)
        except asyncio.TimeoutError:
            pass

    def _look_at(self, ranks: list[int]) -> None:
        """Breaks the group if one of these has died."""
        for rank in ranks:
            member = self._members.get(rank)
            if member is not None and self._has_died(rank, member):
                self._break(
                    f"rank {rank}, process {member.pid} of node {member.node_id[:8]}, has died"
                )

    def _has_died(self, rank: int, member: Member) -> bool:
        alive = self._is_alive_here(member)
        if alive is not None or member.actor is None:
            return alive is False
        # Elsewhere: a call that an actor has not got to yet fails when the actor dies.
        watched = self._watched.get(rank)
        if watched is None or (watched.done() and watched.exception() is None):
            ref = member.actor.__ray_ready__.remote()
            self._watched[rank] = asyncio.ensure_future(_outcome(ref))
            return False
        return watched.done()

    def _is_alive_here(self, member: Member) -> bool | None:
        """None: it is on another node, where that cannot be seen."""
        if member.node_id != self._node_id:
            return None
        return process_start(member.pid) == member.started

    def _break(self, why: str) -> None:
        self._why_broken = self._why_broken or why
        self._wake_all()

    def _form_anew(self) -> None:
        """A member joined again: what was before is over."""
        self._why_broken = "it was formed anew"
        self._wake_all()
        self._members, self._meetings, self._posts = {}, {}, {}
        self._watched, self._why_broken = {}, ""

    def _wake(self, meeting: _Meeting) -> None:
        meeting.changed.set()

    def _wake_all(self) -> None:
        for meeting in self._meetings.values():
            self._wake(meeting)
        self._arrival.set()
        self._arrival = asyncio.Event()


async def _outcome(ref: Any) -> Any:
    return await ref


HubActor = remote(num_cpus=0)(Hub)
