"""The zygote: imports what every worker needs once, then only forks.

The node service starts it as `python -m oxiray._zygote` with a SEQPACKET socket as descriptor 3:

    node service -> zygote    fork
    zygote -> node service    forked PID
                              exit PID STATUS     (STATUS as waitpid gives it)

It ends when the socket does. It is single-threaded, as a process that forks must be, and sleeps in
one poll() over the socket and the pipe that SIGCHLD writes to, so that it misses neither.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
from collections import deque
from contextlib import suppress

from . import _settings

_SOCKET = 3
# After the first workers are out, and it is quiet for so long, modules the driver uses are imported
# too, one at a time: an import keeps a fork waiting, and workers come in waves. Later ones find the
# modules there.
_QUIET_MS = 500


class Zygote:
    def __init__(self) -> None:
        os.fstat(_SOCKET)  # before a pipe takes the number, if nobody gave us the socket
        self._outbox: deque[bytes] = deque()
        self._wake_read, self._wake_write = os.pipe()
        for descriptor in (_SOCKET, self._wake_read, self._wake_write):
            os.set_blocking(descriptor, False)
        # Python calls handlers between two instructions; the pipe is what ends a poll().
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        # Ctrl-C at the driver's terminal is the driver's.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._preload = [name for name in _settings.text("OXIRAY_PRELOAD").split(",") if name]
        self._forked = False

    def run(self) -> bool:
        """Serves until the socket closes; returns True in a forked child."""
        while True:
            poller = select.poll()
            poller.register(_SOCKET, select.POLLIN | (select.POLLOUT if self._outbox else 0))
            poller.register(self._wake_read, select.POLLIN)
            waiting = self._forked and self._preload
            events = poller.poll(_QUIET_MS if waiting else None)
            if not events:
                self._import_preload()
                continue
            self._drain_wakeups()
            self._reap()
            while (packet := self._receive()) is not None:
                if packet == b"":
                    return False
                if packet == b"fork" and self._fork():
                    return True
            self._flush()

    def _receive(self) -> bytes | None:
        """The next packet; empty when the socket has closed, None when there is none."""
        try:
            return os.read(_SOCKET, 4096)
        except BlockingIOError:
            return None
        except ConnectionResetError:
            return b""

    def _fork(self) -> bool:
        pid = os.fork()
        if pid == 0:
            self._become_child()
            return True
        self._forked = True
        self._outbox.append(b"forked %d" % pid)
        self._flush()
        return False

    def _become_child(self) -> None:
        # What a worker starts is in its group, and ends with it: see _reap().
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for descriptor in (_SOCKET, self._wake_read, self._wake_write):
            os.close(descriptor)

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
            with suppress(OSError):  # it started nothing, or is not yet in a group of its own
                os.killpg(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            self._outbox.append(b"exit %d %d" % (pid, status))

    def _flush(self) -> None:
        while self._outbox:
            try:
                os.write(_SOCKET, self._outbox[0])
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

    def _import_preload(self) -> None:
        # Libraries that start threads at import (OpenBLAS) do not when told to use one; tasks ask
        # for one CPU unless they say so, and Ray's workers set the same.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        try:
            __import__(self._preload.pop(0))
        except BaseException:  # a worker that needs it will say what is wrong
            return
        gc.collect()
        gc.freeze()


def main() -> None:
    sys_path = _settings.text("OXIRAY_SYS_PATH")
    if sys_path:
        import json

        # A node of a cluster has no driver of its own: workers hear of their job's later.
        sys.path[:] = json.loads(sys_path) or sys.path
    # Everything a worker needs, so that a fork finds it in memory.
    import cloudpickle  # noqa: F401

    from . import _child, _errors, _pickler, _serialization, _worker  # noqa: F401

    zygote = Zygote()
    gc.collect()
    # Frozen objects are never touched by the collector: their pages stay shared with the children.
    gc.freeze()
    if zygote.run():
        _child.run()


if __name__ == "__main__":
    # As a module of its own name: a worker replaces `__main__`.
    from oxiray._zygote import main as run

    run()
