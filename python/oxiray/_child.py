"""A worker from its fork to its end: streams, seeds, then the engine's loop.

What a worker prints goes through pipes that its own native side reads. A line

    \\x1eoxiray-name:NAME

in them says whose output follows: the running task's or actor's.
"""

from __future__ import annotations

import io
import os
import sys
import types
from typing import NoReturn

from . import _native, _session

_MARK = "\x1eoxiray-name:"


class NamedStream(io.TextIOWrapper):
    """A line-buffered text stream that marks whose output follows, when that changes."""

    _name = ""
    _mid_line = False

    def write(self, text: str, /) -> int:
        if text:
            name = _native.current_name()
            if name != self._name:
                self._name = name
                end = "\n" if self._mid_line else ""
                super().write(f"{end}{_MARK}{name.replace(chr(10), ' ')}\n")
            self._mid_line = not text.endswith("\n")
            if self._mid_line:
                _native.line_begun()
        return super().write(text)


def run() -> NoReturn:
    """Is a worker, and ends the process."""
    code = 1
    try:
        out, err = _redirect(1), _redirect(2)
        sys.stdout, sys.stderr = _stream(1), _stream(2)
        _prepare()
        _session.forget_in_children()
        _native.connect_worker(os.environ["OXIRAY_SESSION_DIR"], out, err)
        code = _native.run_worker()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # the user may have closed or replaced it
                continue
        # Not sys.exit(): exit handlers inherited from the zygote are not ours to run.
        os._exit(code)


def _redirect(descriptor: int) -> int:
    """Makes `descriptor` a pipe's writing end; returns the reading end."""
    reader, writer = os.pipe()
    os.dup2(writer, descriptor)
    os.close(writer)
    return reader


def _stream(descriptor: int) -> NamedStream:
    raw = open(descriptor, "wb", closefd=False)  # noqa: SIM115
    return NamedStream(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def _prepare() -> None:
    # cloudpickle ships classes of the user's `__main__` by value; they must not meet the zygote's.
    sys.modules["__main__"] = types.ModuleType("__main__")
    import faulthandler

    faulthandler.enable(2)  # a segmentation fault leaves its traceback in the log
    # The standard generator reseeds itself after a fork, numpy's does not.
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    try:
        # Under memory pressure a worker goes before the driver and the node service.
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass
