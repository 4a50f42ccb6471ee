"""Parts of environments on this node: unpacked packages and installed ones, made once and shared.

A part is a directory named by what it is made of, in `environments` of the session. Whoever makes
it holds its lock alone; whoever uses it holds the lock with others for as long as it lives, as do
the processes that it starts: the lock's descriptor is handed on. So what is not in use is what can
be locked, and that goes, least recently used first, when all parts are more than the limit.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable

from . import _settings


class Parts:
    def __init__(self, session: str) -> None:
        self._folder = os.path.join(session, "environments")
        os.makedirs(self._folder, mode=0o700, exist_ok=True)

    def get(self, name: str, make: Callable[[str], None]) -> str:
        """The directory of a part; `make` fills it if it is not there."""
        path = os.path.join(self._folder, name)
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            is_new = self._hold(lock, path, make)
        except BaseException:
            os.close(lock)
            raise
        os.set_inheritable(lock, True)
        os.utime(f"{path}.lock")
        if is_new:
            self._trim()
        return path

    def _hold(self, lock: int, path: str, make: Callable[[str], None]) -> bool:
        """Locks a part together with its other users, once it is there; whether it was made."""
        is_new = False
        while True:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if os.path.exists(f"{path}.size"):
                return is_new
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(f"{path}.size"):
                self._make(path, make)
                is_new = True

    def _make(self, path: str, make: Callable[[str], None]) -> None:
        # In its own place: what is installed knows where it is. Its size is written last.
        shutil.rmtree(path, ignore_errors=True)  # of one who was killed
        try:
            os.mkdir(path, 0o700)
            make(path)
            with open(f"{path}.size", "w") as file:
                file.write(str(_size(path)))
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise

    def _trim(self) -> None:
        """Removes what nobody uses, beyond the limit."""
        left = int(_settings.text("OXIRAY_ENVIRONMENTS_MAX_BYTES"))
        parts = []
        for name in os.listdir(self._folder):
            path = os.path.join(self._folder, name)
            if os.path.isdir(path):
                with contextlib.suppress(OSError, ValueError):
                    with open(f"{path}.size") as file:
                        size = int(file.read())
                    parts.append((os.stat(f"{path}.lock").st_mtime, path, size))
        for _, path, size in sorted(parts, reverse=True):
            left -= size
            if left < 0 and self._remove(path):
                left += size

    def _remove(self, path: str) -> bool:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(f"{path}.size")
            shutil.rmtree(path, ignore_errors=True)
            return True
        except BlockingIOError:
            return False
        finally:
            os.close(lock)


def _size(path: str) -> int:
    total = 0
    for directory, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(directory, name)).st_size
    return total
