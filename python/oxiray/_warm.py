"""A warm zygote: forked from that of its environment to load what workers were seen to import.

It says over its socket how that goes (`_warming`). A module that is not fit to be forked with ends
it. When all are there it serves as any zygote does, until a file of them changes: then workers are
to find what is there now.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from importlib.util import find_spec

from . import _child, _imported, _session, _threads, _title
from ._fork_safety import Watch
from ._zygote import Zygote

# Between two looks at the files of the modules.
_LOOK_S = 1.0


def serve(socket: int, wanted: list[tuple[str, str]]) -> bool:
    """Returns True in a worker; in any other process it does not return."""
    is_worker = False
    try:
        _title.set_title("template")
        os.set_blocking(socket, True)
        before = set(sys.modules)
        _load(socket, wanted)
        loaded = [name for name in sys.modules if name not in before]
        _imported.note_template(loaded)
        gc.collect()
        gc.freeze()
        _title.set_title(f"template of {len(sys.modules)} modules")
        files = Files(loaded)
        os.write(socket, b"warm")
        is_worker = Zygote(socket, is_fresh=files.are_unchanged).run()
        return is_worker
    except Unfit as unfit:
        os.write(socket, f"unfit {unfit.name} {unfit.why}".encode(errors="replace")[:2000])
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        if not is_worker:
            os._exit(0)
    return False


class Unfit(Exception):
    def __init__(self, name: str, why: str) -> None:
        super().__init__(name)
        self.name, self.why = name, why


def _load(socket: int, wanted: list[tuple[str, str]]) -> None:
    _child.begin_imports()
    # Libraries that start threads at import (OpenBLAS) do not when told to use one.
    _threads.begin()
    _session.is_template = True
    with Watch() as watch:
        for name, place in wanted:
            if name in sys.modules:
                continue
            os.write(socket, b"at " + name.encode(errors="replace"))
            why = _elsewhere(name, place) or _import(name) or watch.complaint()
            if why:
                raise Unfit(name, why)
    _session.is_template = False


def _elsewhere(name: str, place: str) -> str:
    """Why the module of that name here is not the one that the worker had."""
    if not place:
        return ""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or _imported.place_of(spec) != place:
        return f"only the job finds it at {place}"
    return ""


def _import(name: str) -> str:
    try:
        __import__(name)
    except BaseException as error:  # a worker that needs it will see it
        return f"importing it raised {type(error).__name__}: {error}"
    return ""


class Files:
    """Those of modules, as they were when they were loaded."""

    def __init__(self, modules: list[str]) -> None:
        paths = {getattr(sys.modules[name], "__file__", None) or "" for name in modules}
        self._looks = _imported.looks_at(paths - {""})
        self._looked = time.monotonic()

    def are_unchanged(self) -> bool:
        if time.monotonic() < self._looked + _LOOK_S:
            return True
        self._looked = time.monotonic()
        return _imported.are_unchanged(self._looks)
