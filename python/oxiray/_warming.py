"""What a zygote knows of the modules that its workers import, and of the warm one that has them.

Workers say what they imported (`_imported`). A little later a process is forked from the zygote
that imports the same (`_warm`), one module after the other. The first that is not fit to be forked
with ends it, is remembered, and left out of the next try; what is left out, workers import
themselves. A process that gets through is the warm zygote, and is asked for the next workers:

    candidate -> zygote    at NAME
                           unfit NAME WHY      (and it ends)
                           warm
    warm one -> zygote     as the zygote to the node service

- **W-1** a fork that the warm one was asked for and has not answered when it ends is made by the
  zygote itself: nothing that is asked for is lost.
- **W-2** the zygote itself never imports what workers did.
"""

from __future__ import annotations

import _socket
import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from . import _imported
from ._zygote import received

# A worker that says something soon says more.
_GATHER_S = 0.2
# After one more was made: it costs what it imports, and things may go on changing. Doubles.
_REST_S = 2.0
_LONGEST_REST_S = 300.0
# For one module.
_IMPORT_LIMIT_S = 120.0
# A warm zygote that forked nothing for so long ends; what it had is remembered.
_UNUSED_S = 300.0
# Every unfit module costs another try. Then only what comes before one is loaded.
_MOST_TRIES = 40
_MOST_NAMES = 20_000


class _Child:
    """A process that was forked to load modules."""

    def __init__(self, pid: int, socket: int) -> None:
        self.pid = pid
        self.socket = socket
        self.at = ""
        self.since = time.monotonic()
        # Asked to fork, and not answered yet.
        self.asked = 0


class Warming:
    def __init__(self, hints: Iterable[str]) -> None:
        # In the order of their import; where it was found, if that is known.
        self._names: dict[str, str] = dict.fromkeys(hints, "")
        # Why each is left to workers.
        self._unfit: dict[str, str] = {}
        self._tries = 0
        self._rest_s = _REST_S
        self._rests_until = 0.0
        # When the next candidate begins, once a worker was forked.
        self._due: float | None = None
        self._candidate: _Child | None = None
        self._serving: _Child | None = None
        # That one, and those which were told to end and may have more to say.
        self._warm_ones: list[_Child] = []
        self._unanswered = 0
        self._reports, _imported.socket = _pair()
        os.set_blocking(_imported.socket, False)

    def descriptors(self) -> Iterator[int]:
        yield self._reports
        for child in (self._candidate, *self._warm_ones):
            if child is not None:
                yield child.socket

    def patience_ms(self) -> int | None:
        """How long nothing is to be done unless somebody says something."""
        times = [self._due] if self._due is not None and self._candidate is None else []
        if self._candidate is not None:
            times.append(self._candidate.since + _IMPORT_LIMIT_S)
        if self._serving is not None:
            times.append(self._serving.since + _UNUSED_S)
        if not times:
            return None
        return max(0, int((min(times) - time.monotonic()) * 1000) + 1)

    def fork(self) -> bool:
        """Asks the warm zygote for a worker; False: there is none to be asked."""
        if self._serving is None:
            if self._due is None and self._candidate is None and self.wanted():
                self._be_due()
            return False
        try:
            os.write(self._serving.socket, b"fork")
        except OSError:
            self._serving = None  # it is gone: listen() hears of it
            return False
        self._serving.asked += 1
        self._serving.since = time.monotonic()
        return True

    def take_unanswered(self) -> int:
        count, self._unanswered = self._unanswered, 0
        return count

    def wanted(self) -> list[tuple[str, str]]:
        """What a candidate is to load, with where it was found."""
        wanted = []
        for name, place in self._names.items():
            if not self._is_unfit(name):
                wanted.append((name, place))
            elif self._tries > _MOST_TRIES:
                break
        return wanted

    def listen(self) -> Iterator[bytes]:
        """Hears everybody out; what warm zygotes say of workers is for the node service."""
        while report := received(self._reports):
            self._learn(report.decode(errors="replace").splitlines())
        if self._candidate is not None:
            self._hear(self._candidate)
        for child in list(self._warm_ones):
            while (packet := received(child.socket)) is not None:
                if packet == b"":
                    self._forget(child)
                    break
                if packet.startswith((b"forked ", b"refused ")):
                    child.asked -= 1
                yield packet

    def begin_if_due(self) -> int | None:
        """Forks a candidate if it is time: its socket, in the candidate."""
        now = time.monotonic()
        if self._candidate is not None and now > self._candidate.since + _IMPORT_LIMIT_S:
            os.kill(self._candidate.pid, signal.SIGKILL)
        if self._serving is not None and now > self._serving.since + _UNUSED_S:
            self._dismiss()
        if self._candidate is not None or self._due is None or now < self._due:
            return None
        self._due = None
        if not self.wanted():
            return None
        ours, theirs = _pair()
        try:
            pid = os.fork()
        except OSError:  # no room for another process now: later, perhaps
            os.close(ours)
            os.close(theirs)
            self._be_due()
            return None
        if pid == 0:
            os.close(ours)
            return theirs
        os.close(theirs)
        self._candidate = _Child(pid, ours)
        return None

    def let_go(self) -> None:
        """In a child: these are its parent's."""
        for descriptor in self.descriptors():
            os.close(descriptor)

    def _be_due(self) -> None:
        self._due = max(time.monotonic() + _GATHER_S, self._rests_until)

    def _is_unfit(self, name: str) -> bool:
        parts = name.split(".")
        return any(".".join(parts[:count]) in self._unfit for count in range(1, len(parts) + 1))

    def _learn(self, lines: list[str]) -> None:
        for line in lines:
            name, _, place = line.partition("\t")
            if name not in self._names and len(self._names) < _MOST_NAMES:
                self._names[name] = place
                if self._due is None and not self._is_unfit(name):
                    self._be_due()

    def _hear(self, child: _Child) -> None:
        while (packet := received(child.socket)) is not None:
            word, _, rest = packet.decode(errors="replace").partition(" ")
            if word == "at":
                child.at, child.since = rest, time.monotonic()
            elif word == "unfit":
                name, _, why = rest.partition(" ")
                return self._try_without(name, why)
            elif word == "warm":
                return self._follow_with(child)
            elif not packet:
                return self._try_without(child.at, "the process that tried it ended")
        return None

    def _try_without(self, name: str, why: str) -> None:
        if self._candidate is not None:
            os.close(self._candidate.socket)
            self._candidate = None
        if not name:  # it did not even begin: not at once again
            return self._rest()
        print(f"{name} is left to be imported by workers: {why}", flush=True)
        self._unfit[name] = why
        self._tries += 1
        self._due = time.monotonic()
        return None

    def _follow_with(self, child: _Child) -> None:
        """From now on workers are forked from this one."""
        self._candidate = None
        self._dismiss()
        child.since = time.monotonic()
        self._serving = child
        self._warm_ones.append(child)
        self._rest()

    def _rest(self) -> None:
        self._rests_until = time.monotonic() + self._rest_s
        self._rest_s = min(2 * self._rest_s, _LONGEST_REST_S)
        if self._due is not None:
            self._due = max(self._due, self._rests_until)

    def _dismiss(self) -> None:
        """The warm one ends when it has done what it was asked for; its workers become ours."""
        if self._serving is not None:
            with suppress(OSError):
                os.write(self._serving.socket, b"end")
        self._serving = None

    def _forget(self, child: _Child) -> None:
        self._unanswered += child.asked
        os.close(child.socket)
        self._warm_ones.remove(child)
        if self._serving is child:
            self._serving = None


def _pair() -> tuple[int, int]:
    """Ours, which does not block, and the other's."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours.detach(), theirs.detach()
