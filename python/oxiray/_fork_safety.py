"""Whether an import has done what a fork does not carry over, or what each process must do itself.

- It is broken by a fork: threads, other processes, locks that are held.
- It would be shared by all who are forked: sockets, devices, files that are written, memory that
  is mapped for several.
- Every process must do it for itself: random numbers drawn, something printed, signals handled, the
  directory changed, the devices looked at that a task is given.

Everything is looked at before the first import and after each one.
"""

from __future__ import annotations

import os
import random
import signal
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from . import _devices

# What a task is given after the fork.
_VARIABLES = (_devices.VARIABLE,)
_HARMLESS_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
# They draw at import, and are seeded again after a fork (`_child`), or it does no harm: a key that
# processes which were forked are to share.
_DRAWERS = ("numpy", "importlib", "_frozen_importlib", "multiprocessing")
# The allocator of Arrow is ready for forks, and does without its thread in a child.
_FORKABLE = ("jemalloc_bg_thd",)
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


class Watch:
    """Looks from `__enter__` on; `complaint` is in words what has been done since."""

    def __enter__(self) -> Watch:
        self._drawn_by = ""
        self._variable = ""
        self._modules = set(sys.modules)
        self._output = os.memfd_create("printed")
        self._stdout = os.dup(1)
        os.dup2(self._output, 1)
        self._random = random.getstate()
        self._numpy: Any = None
        self._signals = _handlers()
        self._directory = os.getcwd()
        self._descriptors = _descriptors()
        self._shared = _shared_memory()
        self._undo = [
            _replace(os, "urandom", self._noting(os.urandom)),
            _replace(random, "_urandom", self._noting(random._urandom)),  # type: ignore[attr-defined]
            _replace(random.Random, "seed", self._noting_seed(random.Random.seed)),
            _replace(type(os.environ), "__getitem__", self._noting_variable()),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for undo in self._undo:
            undo()
        sys.stdout.flush()
        os.dup2(self._stdout, 1)
        os.close(self._stdout)
        os.close(self._output)

    def complaint(self) -> str:
        """Why this process is not fit to be forked any more; empty: it is."""
        for look in (
            self._processes,
            self._opened,
            self._locked,
            self._done,
            self._random_numbers,
        ):
            if why := look():
                return why
        return ""

    def _processes(self) -> str:
        if threads := _threads():
            return f"it has started {len(threads)} threads ({threads[0]})"
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return ""
        return "it has started a process"

    def _opened(self) -> str:
        for number, what in _descriptors().items():
            if self._descriptors.get(number) != what and not _is_harmless(number, what):
                return f"it holds {what} open"
        more = _shared_memory() - self._shared
        return f"it shares memory ({min(more)})" if more else ""

    def _locked(self) -> str:
        own = str(os.getpid())
        with open("/proc/locks") as locks:
            if any(own in line.split()[4:6] for line in locks):
                return "it holds the lock of a file"
        for name in [name for name in sys.modules if name not in self._modules]:
            self._modules.add(name)
            for key, value in list(getattr(sys.modules[name], "__dict__", {}).items()):
                if type(value) in _LOCKS and _is_held(value):
                    return f"{name}.{key} is a lock that it holds"
        return ""

    def _done(self) -> str:
        if self._variable:
            return f"it looks at {self._variable}, which a task is given"
        sys.stdout.flush()
        if os.fstat(self._output).st_size:
            return "it prints"
        if _handlers() != self._signals:
            return "it handles signals"
        if os.getcwd() != self._directory:
            return "it changes the directory"
        return ""

    def _random_numbers(self) -> str:
        if self._drawn_by:
            return f"{self._drawn_by} draws random numbers, which workers would share"
        if random.getstate() != self._random:
            return "it draws random numbers, which workers would share"
        numpy = sys.modules.get("numpy.random")
        if numpy is None:
            return ""
        _, key, at, *_ = numpy.get_state()
        state = (key.tobytes(), at)
        if self._numpy not in (None, state):
            return "it draws random numbers of numpy, which workers would share"
        self._numpy = state
        return ""

    def _noting(self, draw: Callable[[int], bytes]) -> Callable[[int], bytes]:
        def urandom(size: int, /) -> bytes:
            self._note(sys._getframe(1))
            return draw(size)

        return urandom

    def _noting_seed(self, seed: Callable[..., None]) -> Callable[..., None]:
        def noting(generator: random.Random, a: Any = None, *args: Any, **kwargs: Any) -> None:
            if a is None:
                self._note(sys._getframe(1))
            seed(generator, a, *args, **kwargs)

        return noting

    def _note(self, frame: FrameType | None) -> None:
        while frame is not None and frame.f_globals.get("__name__") in ("random", "secrets"):
            frame = frame.f_back
        name = frame.f_globals.get("__name__") if frame is not None else None
        # `importlib` is what is found when native code draws while it is loaded: numpy's.
        if isinstance(name, str) and name.split(".")[0] not in _DRAWERS:
            self._drawn_by = self._drawn_by or name

    def _noting_variable(self) -> Callable[[Any, str], str]:
        get = type(os.environ).__getitem__

        def noting(environ: Any, name: str) -> str:
            if name in _VARIABLES:
                self._variable = name
            return get(environ, name)

        return noting


def _replace(owner: Any, name: str, new: Any) -> Callable[[], None]:
    old = vars(owner)[name]
    setattr(owner, name, new)
    return lambda: setattr(owner, name, old)


def _is_held(lock: Any) -> bool:
    return bool(lock._is_owned() if hasattr(lock, "_is_owned") else lock.locked())


def _threads() -> list[str]:
    """Names of all but the first, and those that know of forks."""
    found = []
    for number in os.listdir("/proc/self/task"):
        with suppress(OSError), open(f"/proc/self/task/{number}/comm") as comm:
            if int(number) != os.getpid() and (name := comm.read().strip()) not in _FORKABLE:
                found.append(name)
    return found


def _handlers() -> list[Any]:
    return [signal.getsignal(number) for number in sorted(signal.valid_signals())]


def _descriptors() -> dict[int, str]:
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[int(number)] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # that of the listing itself
            continue
    return found


def _is_harmless(number: int, what: str) -> bool:
    """A file that is only read, or a device without a state."""
    import fcntl

    try:
        mode = os.fstat(number).st_mode
        writes = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except OSError:
        return True
    if stat.S_ISREG(mode):
        return not writes
    return stat.S_ISDIR(mode) or what in _HARMLESS_DEVICES


def _shared_memory() -> set[str]:
    """Mappings that what is forked would write to together."""
    with open("/proc/self/maps") as maps:
        lines = [line.split(maxsplit=5) for line in maps]
    return {line[-1].strip() for line in lines if line[1][1] == "w" and line[1][3] == "s"}
