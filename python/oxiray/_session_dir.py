"""The directory of a session: sockets and logs, readable by its user only.

    /tmp/oxiray-UID/session_<time>_<driver's pid>/logs
    /tmp/oxiray-UID/crashed/session_<time>_<driver's pid>    logs of the last ten that crashed,
                                                             for a week

The node service removes the directory at the end. Where it was killed too, the next `init()` does.
"""

from __future__ import annotations

import os
import time

_KEPT, _KEPT_S = 10, 7 * 24 * 3600
_TRIES, _BETWEEN_TRIES_S = 20, 0.01
# What the path of a Unix socket may have; the node service's is in the directory.
_LONGEST_SOCKET = 107
_SOCKET = "node.sock"


def base() -> str:
    """Where sessions live; OXIRAY_TMPDIR overrides it."""
    return os.environ.get("OXIRAY_TMPDIR") or f"/tmp/oxiray-{os.getuid()}"


def choose(parent: str | None = None) -> str:
    """The path of a new session under `parent`; makes nothing yet."""
    parent = os.path.abspath(parent or base())
    now = time.time()
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(now))
    path = f"{parent}/session_{stamp}_{int(now % 1 * 1e6):06}_{os.getpid()}"
    length = len(os.fsencode(f"{path}/{_SOCKET}"))
    if length > _LONGEST_SOCKET:
        raise ValueError(
            f"The path {parent} is too long for sessions: a socket in there would have a path of "
            f"{length} bytes, and the system's limit is {_LONGEST_SOCKET}. Choose one that is "
            f"{length - _LONGEST_SOCKET} bytes shorter, with init(_temp_dir=) or OXIRAY_TMPDIR."
        )
    return path


def create(path: str) -> None:
    """Makes a session's directory, and its parent safe first."""
    parent = os.path.dirname(path)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    status = os.lstat(parent)
    # In /tmp, anyone could have made it: sockets go in there, so it must be ours and private.
    if parent == f"/tmp/oxiray-{os.getuid()}":
        if status.st_uid != os.getuid() or not os.path.isdir(parent) or os.path.islink(parent):
            raise PermissionError(
                f"{parent} belongs to another user; remove it, or set OXIRAY_TMPDIR to a "
                "directory of your own"
            )
        if status.st_mode & 0o077:
            os.chmod(parent, 0o700)
    os.mkdir(path, 0o700)
    os.mkdir(f"{path}/logs", 0o700)


def sweep(current: str) -> None:
    """Clears what crashed sessions beside `current` left behind. Never raises."""
    try:
        parent = os.path.dirname(current)
        dead = [name for name in os.listdir(parent) if _is_dead(name)]
        for name in dead:
            bury(f"{parent}/{name}")
        _expire(f"{parent}/crashed")
    except OSError:
        pass


def bury(path: str) -> None:
    """Removes a crashed session's directory; its logs are kept for a while. Never raises."""
    parent, name = os.path.split(path)
    try:
        os.makedirs(f"{parent}/crashed", mode=0o700, exist_ok=True)
        try:
            os.rename(f"{path}/logs", f"{parent}/crashed/{name}")
        except OSError:  # it has none, or a node service is doing the same at this moment
            pass
        # Workers that end a moment later may just have made one more file.
        for _ in range(_TRIES):
            remove(path)
            if not os.path.lexists(path):
                break
            time.sleep(_BETWEEN_TRIES_S)
        _expire(f"{parent}/crashed")
    except OSError:
        pass


def _expire(crashed: str) -> None:
    """Removes the logs of crashed sessions that are too many or too old."""
    names = sorted(os.listdir(crashed)) if os.path.isdir(crashed) else []
    for at, name in enumerate(names):
        path = f"{crashed}/{name}"
        if at < len(names) - _KEPT or os.lstat(path).st_mtime < time.time() - _KEPT_S:
            remove(path)


def remove(path: str) -> None:
    """Removes a file or a tree. Never raises; what is gone already is fine."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            for entry in os.listdir(path):
                remove(f"{path}/{entry}")
            os.rmdir(path)
        else:
            os.unlink(path)
    except OSError:
        pass


def _is_dead(name: str) -> bool:
    pid = name.rpartition("_")[2]
    if not (name.startswith("session_") and pid.isdigit()):
        return False
    return not os.path.exists(f"/proc/{pid}")
