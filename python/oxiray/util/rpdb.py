"""Breakpoints in tasks and actors, answered from another terminal of the machine: `ray debug`.

A breakpoint listens at a socket in the session's directory, which nobody but the user can enter; a
file beside it says where in which program it is.
"""

from __future__ import annotations

import json
import os
import pdb
import select
import socket
import sys
from typing import Any, NamedTuple, TextIO

from .. import _native

__all__ = ["Breakpoint", "breakpoints", "converse", "set_trace"]

_FOLDER = "breakpoints"
_numbers = iter(range(1 << 30))


class Breakpoint(NamedTuple):
    """One that waits."""

    path: str  # of its socket
    pid: int
    function: str
    place: str  # file and line


def set_trace(breakpoint_uuid: str | None = None) -> None:
    """Stops here: in a driver at its terminal, in a task or actor until `ray debug` answers it."""
    frame = sys._getframe(1)
    if not _native.is_running() or _native.context()["is_driver"]:
        pdb.Pdb(nosigint=True).set_trace(frame)
        return
    _RemotePdb(frame, breakpoint_uuid).stop(frame)


class _RemotePdb(pdb.Pdb):
    """A debugger that reads from a socket; the breakpoint ends when its conversation does."""

    def __init__(self, frame: Any, name: str | None) -> None:
        context = _native.context()
        folder = os.path.join(context["session_dir"], _FOLDER)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._path = os.path.join(folder, name or f"{os.getpid()}-{next(_numbers)}")
        self._about = {
            "pid": os.getpid(),
            "function": context["task_name"] or frame.f_code.co_name,
            "place": f"{frame.f_code.co_filename}:{frame.f_lineno}",
        }
        self._file = self._accept()
        super().__init__(stdin=self._file, stdout=self._file, nosigint=True)
        self.use_rawinput = False
        self.prompt = "(ray-pdb) "

    def _accept(self) -> Any:
        """Waits for whoever answers; a task that is cancelled meanwhile is."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(self._path)
            try:
                listener.listen(1)
                with open(self._path + ".json", "w") as file:
                    json.dump(self._about, file)
                print(
                    f"Breakpoint at {self._about['place']}: `ray debug` on this machine answers it",
                    file=sys.stderr,
                    flush=True,
                )
                connection, _ = listener.accept()
            finally:
                for path in (self._path, self._path + ".json"):
                    try:
                        os.unlink(path)
                    except FileNotFoundError:
                        pass
        return _Conversation(connection)

    def stop(self, frame: Any) -> None:
        self.reset()
        frame.f_trace = self.trace_dispatch
        self.set_step()
        sys.settrace(self.trace_dispatch)

    def _end(self) -> None:
        try:
            self._file.close()
        except OSError:
            pass

    def do_continue(self, arg: str) -> bool | None:
        if not self.get_all_breaks():
            self._end()
        return super().do_continue(arg)

    do_c = do_cont = do_continue

    def do_quit(self, arg: str) -> bool | None:
        """The task goes on: a debugger that is left must not fail it."""
        sys.settrace(None)
        self.set_continue()
        self._end()
        return True

    do_q = do_exit = do_quit

    def do_EOF(self, arg: str) -> bool | None:
        return self.do_quit(arg)


class _Conversation:
    """A socket as the text stream that pdb reads and writes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = connection.makefile("r", encoding="utf-8", errors="replace")

    def readline(self) -> str:
        return self._reader.readline()

    def write(self, text: str) -> int:
        try:
            self._connection.sendall(text.encode(errors="replace"))
        except OSError:  # who answered has left: the next line read is the end
            pass
        return len(text)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self._reader.close()
        self._connection.close()


def breakpoints(session_dir: str) -> list[Breakpoint]:
    """Those of a session on this machine that wait, the oldest first."""
    folder = os.path.join(session_dir, _FOLDER)
    found = []
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except FileNotFoundError:
        return []
    for name in names:
        path = os.path.join(folder, name)
        try:
            with open(path) as file:
                about = json.load(file)
        except (OSError, ValueError):  # answered just now, or being written
            continue
        if os.path.exists(f"/proc/{about['pid']}"):
            found.append(Breakpoint(path.removesuffix(".json"), **about))
    return found


def converse(path: str, stdin: TextIO, stdout: TextIO) -> None:
    """Lets a person answer a breakpoint, until one of both ends it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        keyboard = stdin.fileno()
        sources: list[Any] = [connection, keyboard]
        while True:
            ready, _, _ = select.select(sources, [], [])
            if connection in ready:
                text = connection.recv(65536)
                if not text:
                    return
                stdout.write(text.decode(errors="replace"))
                stdout.flush()
            if keyboard in ready:
                typed = os.read(keyboard, 65536)
                if typed:
                    connection.sendall(typed)
                else:  # nothing more will be said; what is answered is still shown
                    sources.remove(keyboard)
                    connection.shutdown(socket.SHUT_WR)
