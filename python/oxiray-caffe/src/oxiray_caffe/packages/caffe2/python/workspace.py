"""Named blobs that every task and actor of the session sees, read out of the object store.

An actor of the session knows which object each name stands for, and owns them; the arrays
themselves are in shared memory, so that `FetchBlob` of a large one copies nothing. They go with the
session.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy
import oxiray as ray

__all__ = [
    "Blobs",
    "CreateBlob",
    "CurrentWorkspace",
    "FeedBlob",
    "FetchBlob",
    "FetchBlobs",
    "HasBlob",
    "ResetWorkspace",
    "SwitchWorkspace",
    "Workspaces",
]

_DEFAULT = "default"
# Which workspace this process uses.
_current = _DEFAULT


@ray.remote(num_cpus=0)
class _Names:
    """The blobs of all workspaces, as refs in lists of one: as plain values they would be read."""

    def __init__(self) -> None:
        self.workspaces: dict[str, dict[str, list[Any]]] = {_DEFAULT: {}}

    def feed(self, workspace: str, name: str, boxed: list[Any]) -> None:
        self.workspaces.setdefault(workspace, {})[name] = boxed

    def fetch(self, workspace: str, name: str) -> list[Any] | None:
        return self.workspaces.get(workspace, {}).get(name)

    def names(self, workspace: str) -> list[str]:
        return sorted(self.workspaces.get(workspace, {}))

    def reset(self, workspace: str) -> None:
        self.workspaces[workspace] = {}

    def switch(self, workspace: str, create: bool) -> list[str]:
        """Whether it is there is seen from the list of all."""
        if create:
            self.workspaces.setdefault(workspace, {})
        return sorted(self.workspaces)


def FeedBlob(name: str, arr: Any, device_option: Any = None) -> bool:
    """Keeps the array, or the string, under this name, in place of what was there."""
    if device_option is not None:
        raise ValueError("device_option has no meaning here: blobs are in shared memory")
    value = arr if isinstance(arr, (str, bytes)) else numpy.asarray(arr)
    names = _names()
    ref = ray.put(value, _owner=names)
    ray.get(names.feed.remote(_current, _text(name), [ref]))
    return True


def CreateBlob(name: str) -> bool:
    """Keeps the name, with nothing under it yet."""
    ray.get(_names().feed.remote(_current, _text(name), []))
    return True


def FetchBlob(name: str) -> Any:
    """What is kept under this name. Arrays are read-only: `copy()` gives one to write to."""
    boxed = ray.get(_names().fetch.remote(_current, _text(name)))
    if boxed is None:
        there = ", ".join(Blobs()) or "none"
        raise KeyError(
            f"There is no blob {_text(name)!r} in workspace {_current!r}: it has {there}"
        )
    if not boxed:
        raise ValueError(f"The blob {_text(name)!r} was created, and nothing was fed to it yet")
    return ray.get(boxed[0])


def FetchBlobs(names: list[str]) -> list[Any]:
    """What is kept under each of these names."""
    return [FetchBlob(name) for name in names]


def HasBlob(name: str) -> bool:
    """Whether anything is kept under this name."""
    return _text(name) in Blobs()


def Blobs() -> list[str]:
    """All names of this workspace."""
    return ray.get(_names().names.remote(_current))  # type: ignore[no-any-return]


def ResetWorkspace(root_folder: str | None = None) -> bool:
    """Forgets all blobs of this workspace."""
    if root_folder is not None:
        raise ValueError("root_folder has no meaning here: blobs are in shared memory")
    ray.get(_names().reset.remote(_current))
    return True


def SwitchWorkspace(name: str, create_if_missing: bool | None = None) -> None:
    """From now on this process uses another workspace; others go on with theirs."""
    global _current
    there = ray.get(_names().switch.remote(_text(name), bool(create_if_missing)))
    if _text(name) not in there:
        raise KeyError(
            f"There is no workspace {_text(name)!r} (there are {', '.join(there)}): "
            "create_if_missing=True makes it"
        )
    _current = _text(name)


def CurrentWorkspace() -> str:
    """The workspace that this process uses."""
    return _current


def Workspaces() -> list[str]:
    """All workspaces of the session."""
    return ray.get(_names().switch.remote(_DEFAULT, True))  # type: ignore[no-any-return]


def _names() -> Any:
    # Detached: whichever task asks first, the names stay until the session ends.
    return _Names.options(
        name="workspace", namespace="caffe2", lifetime="detached", get_if_exists=True
    ).remote()


def _text(name: Any) -> str:
    if not isinstance(name, str) and not hasattr(name, "BlobName"):
        raise TypeError(f"a blob is called by a string, not by a {type(name).__name__}")
    return str(name)


def __getattr__(name: str) -> Any:
    if not name.startswith(("Run", "CreateNet", "Load", "GetOperator")):
        raise AttributeError(f"module 'caffe2.python.workspace' has no attribute {name!r}")

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(
            f"workspace.{name}: this caffe2 shares blobs and describes nets; it does not run them."
        )

    return refuse
