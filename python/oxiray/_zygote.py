"""The zygote: imports what every worker needs once, then only forks.

The node service starts it as `python -m oxiray._zygote` with a SEQPACKET socket as descriptor 3:

    node service -> zygote    fork
    zygote -> node service    ready               (only that of a runtime environment)
                              forked PID, or refused ERRNO
                              exit PID STATUS     (STATUS as waitpid gives it)

It ends when the socket does. It is single-threaded, as a process that forks must be, and sleeps in
one poll() over its sockets and the pipe that SIGCHLD writes to, so that it misses nothing.

Once it is known what workers import (`_warming`), a *warm* zygote is forked from this one, loads
that, and forks the workers from then on. It speaks the same over a socket of its own with this one,
which passes it on and takes over whenever the warm one is gone: its orphans become ours.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from . import _settings

if TYPE_CHECKING:
    from ._warming import Warming

_SOCKET = 3


class Zygote:
    """`is_fresh` says before a fork whether what is loaded here is still what would be found;
    `warming` is where others are asked to fork instead."""

    def __init__(
        self,
        socket: int,
        warming: Warming | None = None,
        is_fresh: Callable[[], bool] = lambda: True,
    ) -> None:
        os.fstat(socket)  # before a pipe takes the number, if nobody gave us the socket
        self._socket = socket
        self._warming = warming
        self._is_fresh = is_fresh
        self._workers: set[int] = set()
        self._outbox: deque[bytes] = deque()
        self._wake_read, self._wake_write = os.pipe()
        for descriptor in (socket, self._wake_read, self._wake_write):
            os.set_blocking(descriptor, False)
        # Python calls handlers between two instructions; the pipe is what ends a poll().
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        # Ctrl-C at the driver's terminal is the driver's.
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def say(self, packet: bytes) -> None:
        self._outbox.append(packet)
        self._flush()

    def run(self) -> bool:
        """Serves until the socket closes; returns True in a forked worker."""
        while True:
            poller = select.poll()
            poller.register(self._socket, select.POLLIN | (select.POLLOUT if self._outbox else 0))
            poller.register(self._wake_read, select.POLLIN)
            for descriptor in self._warming.descriptors() if self._warming else ():
                poller.register(descriptor, select.POLLIN)
            poller.poll(self._warming.patience_ms() if self._warming else None)
            self._drain_wakeups()
            if self._warming is not None and self._look_at_warming(self._warming):
                return True
            self._reap()
            while (packet := received(self._socket)) is not None:
                if packet in (b"", b"end") or not self._is_fresh():
                    self._flush()
                    return False
                if packet == b"fork" and self._fork():
                    return True
            self._flush()

    def _look_at_warming(self, warming: Warming) -> bool:
        """Passes on what the warm zygote says, and takes over what it cannot do any more. True in a
        worker."""
        for packet in warming.listen():
            word, pid, *_ = packet.split()
            if word == b"forked":
                self._workers.add(int(pid))
            elif word == b"exit":
                self._workers.discard(int(pid))
            self.say(packet)
        for _ in range(warming.take_unanswered()):
            if self._fork():
                return True
        socket = warming.begin_if_due()
        if socket is None:
            return False
        self._let_go()
        from . import _warm

        return _warm.serve(socket, warming.wanted())

    def _fork(self) -> bool:
        if self._warming is not None and self._warming.fork():
            return False
        try:
            pid = os.fork()
        except OSError as error:  # too many processes, too little memory: perhaps not for long
            self.say(b"refused %d" % (error.errno or 0))
            return False
        if pid == 0:
            self._become_worker()
            return True
        self._workers.add(pid)
        self.say(b"forked %d" % pid)
        return False

    def _become_worker(self) -> None:
        # What a worker starts is in its group, and ends with it: see _reap().
        os.setpgid(0, 0)
        self._let_go()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _let_go(self) -> None:
        """In a child: what only this process listens to."""
        signal.set_wakeup_fd(-1)
        for descriptor in (self._socket, self._wake_read, self._wake_write):
            os.close(descriptor)
        if self._warming is not None:
            self._warming.let_go()

    def _reap(self) -> None:
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            # While its status is not taken, the worker's number, and its group's, is no other's.
            pid = ended.si_pid
            is_worker = pid in self._workers
            if is_worker:
                self._workers.remove(pid)
                with suppress(OSError):  # it started nothing, or is not yet in a group of its own
                    os.killpg(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            # Else it was a warm zygote, or what a worker that is gone had started.
            if is_worker:
                self._outbox.append(b"exit %d %d" % (pid, status))

    def _flush(self) -> None:
        while self._outbox:
            try:
                os.write(self._socket, self._outbox[0])
            except BlockingIOError:
                return
            except (BrokenPipeError, ConnectionResetError):
                self._outbox.clear()
                return
            self._outbox.popleft()

    def _drain_wakeups(self) -> None:
        try:
            while os.read(self._wake_read, 4096):
                pass
        except BlockingIOError:
            pass


def received(socket: int) -> bytes | None:
    """The next packet; empty when the socket has closed, None when there is none."""
    try:
        return os.read(socket, 1 << 18)
    except BlockingIOError:
        return None
    except ConnectionResetError:
        return b""


def _look_first_in(paths: str) -> None:
    """Modules of the runtime environment come before all others, here and in what workers start."""
    import json

    _worker_paths = json.loads(paths)
    if not _worker_paths:
        return
    from . import _worker

    _worker.environment_paths[:] = _worker_paths
    sys.path[:] = list(dict.fromkeys([*_worker_paths, *sys.path]))
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*_worker_paths, *filter(None, [inherited])])


def main() -> None:
    sys_path = _settings.text("OXIRAY_SYS_PATH")
    if sys_path:
        import json

        # A node of a cluster has no driver of its own: workers hear of their job's later.
        sys.path[:] = json.loads(sys_path) or sys.path
    paths = _settings.text("OXIRAY_ENVIRONMENT_PATHS")
    if paths:
        _look_first_in(paths)
    # Everything a worker needs, so that a fork finds it in memory.
    import cloudpickle  # noqa: F401

    from . import _child, _errors, _imported, _native, _pickler, _serialization, _worker  # noqa: F401
    from ._warming import Warming

    _native.adopt_orphans()
    is_on = _settings.is_on("OXIRAY_PRELOAD")
    hints = filter(None, _settings.text("OXIRAY_DRIVER_MODULES").split(","))
    zygote = Zygote(_SOCKET, Warming(hints) if is_on else None)
    if int(_settings.text("OXIRAY_ENVIRONMENT_NUMBER")):
        zygote.say(b"ready")
    _imported.note_template()
    gc.collect()
    # Frozen objects are never touched by the collector: their pages stay shared with the children.
    gc.freeze()
    if zygote.run():
        _child.run()


if __name__ == "__main__":
    # As a module of its own name: a worker replaces `__main__`.
    from oxiray._zygote import main as run

    run()
