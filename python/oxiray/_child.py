"""A worker from its fork to its end: streams, seeds, then the engine's loop.

What a worker prints goes through pipes that the node service reads. Lines

    \\x1eoxiray-name:NAME
    \\x1eoxiray-task:ID

in them say whose output follows: the running task's or actor's, and of which task or call.
"""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading
import types
from typing import NoReturn

from . import _native, _session, _settings, _threads, _title, _worker

_NAME_MARK = "\x1eoxiray-name:"
_TASK_MARK = "\x1eoxiray-task:"


class NamedStream(io.TextIOWrapper):
    """A line-buffered text stream that marks whose output follows, when that changes.

    Where several calls run, each line is one call's: what a call has not ended is held back.
    """

    _name = ""
    _task = ""
    _mid_line = False

    def __init__(self, raw: io.BufferedWriter) -> None:
        super().__init__(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self._lock = threading.RLock()
        self._held: dict[str, str] = {}  # by task

    def write(self, text: str, /) -> int:
        if not text:
            return 0
        with self._lock:
            name, task, are_several = _native.current_printer()
            if not are_several:
                self._write_as(name, task, text)
                return len(text)
            lines, end, rest = (self._held.pop(task, "") + text).rpartition("\n")
            if rest:
                self._held[task] = rest
                _native.note_printed()
            if end:
                self._write_as(name, task, lines + end)
        return len(text)

    def _write_as(self, name: str, task: str, text: str) -> None:
        marks = ""
        if name != self._name:
            self._name = name
            end = "\n" if self._mid_line else ""
            marks = f"{end}{_NAME_MARK}{name.replace(chr(10), ' ')}\n"
        if task != self._task:
            self._task = task
            marks += f"{_TASK_MARK}{task}\n"
        self._mid_line = not text.endswith("\n")
        if self._mid_line or marks:
            _native.note_printed()
        super().write(marks + text)

    def end_task(self, ends_line: bool) -> None:
        """What comes now, as from programs that the next task starts, is not the last one's."""
        with self._lock:
            name, task, _ = _native.current_printer()
            held = self._held.pop(task, "")
            if held:
                self._write_as(name, task, held + "\n")
            self._end_task(ends_line)
            if self._held:
                _native.note_printed()  # by others, which have not ended yet

    def _end_task(self, ends_line: bool) -> None:
        end = ""
        if self._mid_line and ends_line:
            self._mid_line = False
            end = "\n"
        if self._task:
            self._task = ""
            end += f"{_TASK_MARK}\n"
        if end:
            super().write(end)


_streams: list[NamedStream] = []


def end_output(ends_line: bool = True) -> None:
    """A task that printed has ended: all of it goes out, and nothing more is its own. A call of an
    actor may leave a line to be continued by the next one."""
    for stream in (sys.stdout, sys.stderr, *_streams):
        try:
            stream.flush()
        except Exception:  # the user may have closed or replaced it
            continue
    for stream in _streams:
        try:
            stream.end_task(ends_line)
        except Exception:
            continue


def run() -> NoReturn:
    """Is a worker, and ends the process."""
    code = 1
    try:
        _threads.begin()
        # Before anything can be given to it: until then it is called what it was forked from.
        _title.set_title("IDLE")
        errors = os.dup(2)  # the zygote's
        out, err = _redirect(1), _redirect(2)
        if not _streams:
            begin_imports()
        _prepare()
        _session.forget_in_children()
        number = int(_settings.text("OXIRAY_ENVIRONMENT_NUMBER"))
        environment = _settings.text("OXIRAY_ENVIRONMENT") if number else ""
        if "worker_process_setup_hook" in environment:
            _call_setup_hook(environment, errors)
        session = _settings.text("OXIRAY_SESSION_DIR")
        try:
            _native.connect_worker(session, out, err, number, environment)
        except RuntimeError as error:  # nobody reads what this process prints: the zygote's log is
            os.write(errors, f"{error}\n".encode())
            os._exit(1)
        _worker.apply_settings(_native.context()["settings"])
        code = _native.run_worker()
        # What the user registered; what the zygote's own modules had was cleared.
        atexit._run_exitfuncs()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        _write_metrics()
        end_output()
        os._exit(code)


def _call_setup_hook(environment: str, errors: int) -> None:
    """Calls the hook of a runtime environment. If it raises there is no worker, and why is in the
    zygote's log, where the node service finds it for the user."""
    import json

    hook = json.loads(environment).get("worker_process_setup_hook")
    if not hook:
        return
    try:
        if isinstance(hook, dict):
            import base64
            import pickle

            pickle.loads(base64.b64decode(hook["pickled"]))()
        else:
            from importlib import import_module

            module, _, name = hook.rpartition(".")
            getattr(import_module(module), name)()
    except BaseException:
        import traceback

        said = f"worker_process_setup_hook failed:\n{traceback.format_exc()}"
        os.write(errors, said.encode(errors="replace"))
        raise


def _write_metrics() -> None:
    metrics = sys.modules.get("oxiray.util.metrics")
    if metrics is not None:
        metrics._registry.write()


def _redirect(descriptor: int) -> int:
    """Makes `descriptor` a pipe's writing end; returns the reading end."""
    reader, writer = os.pipe()
    os.dup2(writer, descriptor)
    os.close(writer)
    return reader


def _stream(descriptor: int) -> NamedStream:
    raw = open(descriptor, "wb", closefd=False)  # noqa: SIM115
    return NamedStream(raw)


def begin_imports() -> None:
    """Makes what modules may hold on to when they are imported: before the fork, where they are
    loaded ahead."""
    sys.stdout, sys.stderr = _streams[:] = _stream(1), _stream(2)
    # cloudpickle ships classes of the user's `__main__` by value; they must not meet the zygote's.
    sys.modules["__main__"] = types.ModuleType("__main__")
    atexit._clear()


def _prepare() -> None:
    import faulthandler

    faulthandler.enable(2)  # a segmentation fault leaves its traceback in the log
    # The standard generator reseeds itself after a fork, these do not.
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()
    try:
        # Under memory pressure a worker goes before the driver and the node service.
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass
