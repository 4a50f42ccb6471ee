"""Which modules a worker's calls imported beyond what its zygote had: that is told of them.

A packet has a line for each module, in the order of their import: its name, and of one that is in
no package also where it was found, after a tab.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder

_LONGEST_PACKET = 100_000
_STANDARD = os.path.dirname(os.__file__) + "/"

# When a file was written, its size, and which file it is.
Look = tuple[int, int, int]

# Where the zygote listens; -1: nowhere.
socket = -1
# What a worker begins with.
_at_fork: frozenset[str] = frozenset()
_places_at_fork: list[str] = []
# Modules that are in no package, and were loaded only because workers import them.
_loaded_ahead: list[str] = []
_looked_at = 0
# Of those that were installed by nobody, and so may be edited: their files, as they were loaded.
_own_modules: list[str] = []
_own_files: dict[str, Look] = {}


def note_template(loaded_ahead: Iterable[str] = ()) -> None:
    """In a zygote, when all that it will load is there."""
    global _at_fork, _looked_at
    names = list(loaded_ahead)
    _at_fork = frozenset(sys.modules)
    _looked_at = len(sys.modules)
    _places_at_fork[:] = sys.path
    _loaded_ahead[:] = [name for name in names if "." not in name]
    files = {name: getattr(sys.modules[name], "__file__", None) or "" for name in names}
    _own_modules[:] = [name for name in names if files[name] and not is_installed(files[name])]
    _own_files.clear()
    _own_files.update(looks_at(files[name] for name in _own_modules))


def begin_work() -> None:
    """In a worker, before its first call: what was edited while it was idle is loaded again, with
    all that may have taken something from it."""
    if _own_files and not are_unchanged(_own_files):
        for name in _own_modules:
            sys.modules.pop(name, None)
    _own_files.clear()


def is_installed(path: str) -> bool:
    return "-packages/" in path or path.startswith(_STANDARD)


def looks_at(paths: Iterable[str]) -> dict[str, Look]:
    return {path: look for path in paths if (look := _look_at(path)) is not None}


def are_unchanged(looks: dict[str, Look]) -> bool:
    return all(_look_at(path) == look for path, look in looks.items())


def _look_at(path: str) -> Look | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def tell() -> None:
    """In a worker: says what is new, if anything is."""
    global _looked_at, _at_fork, socket
    if socket < 0 or len(sys.modules) == _looked_at:
        return
    count = len(sys.modules)
    new = [(name, module) for name, module in list(sys.modules.items()) if name not in _at_fork]
    lines = [line for name, module in new if (line := _line(name, module))]
    try:
        for packet in _packets(lines):
            os.write(socket, packet)
    except BlockingIOError:
        return  # Others tell the same; if not, there is a next time.
    except OSError:
        socket = -1
    _looked_at = count
    _at_fork |= {name for name, _ in new}


def _line(name: str, module: object) -> str:
    spec = getattr(module, "__spec__", None)
    if spec is None or spec.name != name or spec.loader is None or not name.isprintable():
        return ""  # made by a program, or known by another name
    return name if "." in name else f"{name}\t{place_of(spec)}"


def place_of(spec: object) -> str:
    origin = getattr(spec, "origin", None)
    return origin if isinstance(origin, str) else ""


def _packets(lines: list[str]) -> list[bytes]:
    packets = [b""]
    for line in lines:
        encoded = line.encode(errors="replace") + b"\n"
        if len(packets[-1]) + len(encoded) > _LONGEST_PACKET:
            packets.append(b"")
        packets[-1] += encoded
    return [packet for packet in packets if packet]


def give_way_to(places: list[str]) -> None:
    """In a worker that now looks for modules in these places first: what was loaded ahead is not to
    stand in for a module of the same name there. One with native code stays: it cannot be loaded
    twice."""
    new = [place for place in places if place not in _places_at_fork]
    if not new:
        return
    for name in _loaded_ahead:
        if name not in sys.modules or PathFinder.find_spec(name, new) is None:
            continue
        inside = [each for each in sys.modules if each == name or each.startswith(name + ".")]
        files = [getattr(sys.modules[each], "__file__", None) or "" for each in inside]
        if not any(file.endswith(tuple(EXTENSION_SUFFIXES)) for file in files):
            for each in inside:
                del sys.modules[each]
