"""`list_logs`, `get_log`: what workers printed, on whichever node."""

from __future__ import annotations

import codecs
import fnmatch
import functools
import re
import time
from collections.abc import Callable, Generator

from ... import _native
from ._observer import ask, miss

_TIMEOUT_S = 30
_BETWEEN_LOOKS_S = 0.2

_Place = tuple[str, int]


def list_logs(
    address: str | None = None,
    node_id: str | None = None,
    node_ip: str | None = None,
    glob_filter: str | None = None,
    timeout: int = _TIMEOUT_S,
) -> dict[str, list[str]]:
    """The names of log files of a node, or of all, by what writes them."""
    files, notes = ask(address, lambda observer: observer.log_files(node_id or node_ip))
    miss(notes, raise_on_missing_output=False)
    found: dict[str, list[str]] = {}
    for _, name, _, _ in files:
        if fnmatch.fnmatchcase(name, glob_filter or "*"):
            found.setdefault(_writer(name), []).append(name)
    return found


def _writer(name: str) -> str:
    if name.startswith("worker-"):
        return "worker_err" if ".err" in name else "worker_out"
    return "internal"


def get_log(
    address: str | None = None,
    node_id: str | None = None,
    node_ip: str | None = None,
    filename: str | None = None,
    actor_id: str | None = None,
    task_id: str | None = None,
    pid: int | None = None,
    follow: bool = False,
    tail: int = -1,
    timeout: int = _TIMEOUT_S,
    suffix: str = "out",
    encoding: str | None = "utf-8",
    errors: str | None = "strict",
    _interval: float | None = None,
) -> Generator[str, None, None]:
    """The text of a log, in pieces: all of it, or its last `tail` lines; with `follow` also what
    comes later. Which one is said by its name, or by the actor or process that wrote it. With
    `task_id` it is what that task printed of its worker's log."""
    if suffix not in ("out", "err"):
        raise ValueError(f'suffix must be "out" or "err", not {suffix!r}')
    decoder = codecs.getincrementaldecoder(encoding or "utf-8")(errors or "strict")
    interval = _interval or _BETWEEN_LOOKS_S
    # Now, not when the first piece is asked for.
    if task_id is not None:
        if filename is not None or actor_id is not None or pid is not None:
            raise ValueError("say which log by one of filename=, actor_id=, task_id= and pid=")
        read = functools.partial(_read_task, task_id, suffix == "err")
        first = ask(address, functools.partial(read, None))
        return _pieces_of_task(address, read, first, decoder, follow, tail, interval)
    found = ask(
        address,
        lambda observer: observer.find_log(
            file=filename,
            node_id=node_id or node_ip,
            actor_id=actor_id,
            pid=pid,
            is_error=suffix == "err",
        ),
    )
    if found is None:
        raise ValueError("say which log: filename=, actor_id=, task_id= or pid=")
    return _pieces(address, *found, decoder, follow, tail, interval)


def _read(node: str, file: str, offset: int, observer: _native.Observer) -> tuple[bytes, int]:
    return observer.read_log(node, file, offset)


def _pieces(
    address: str | None,
    node: str,
    file: str,
    decoder: codecs.IncrementalDecoder,
    follow: bool,
    tail: int,
    interval: float,
) -> Generator[str, None, None]:
    offset = 0
    if tail >= 0:
        offset = ask(address, lambda observer: observer.log_tail(node, file, tail))
    while True:
        data, size = ask(address, functools.partial(_read, node, file, offset))
        if size < offset:
            offset = 0  # it was begun anew
            decoder.reset()
        elif data:
            offset += len(data)
            if text := decoder.decode(data):
                yield text
        elif follow:
            time.sleep(interval)
        else:
            if text := decoder.decode(b"", final=True):
                yield text
            return


def _read_task(
    task_id: str, is_error: bool, place: _Place | None, observer: _native.Observer
) -> tuple[bytes, _Place]:
    return observer.task_output(task_id, is_error, place)


def _pieces_of_task(
    address: str | None,
    read: Callable[..., tuple[bytes, _Place]],
    first: tuple[bytes, _Place],
    decoder: codecs.IncrementalDecoder,
    follow: bool,
    tail: int,
    interval: float,
) -> Generator[str, None, None]:
    data, place = first
    if tail >= 0:
        # Not splitlines(): what draws bars ends them with a carriage return.
        lines = re.findall(rb"[^\n]*\n|[^\n]+", data)
        data = b"".join(lines[len(lines) - min(tail, len(lines)) :])
    while True:
        if text := decoder.decode(data, final=not follow):
            yield text
        if not follow:
            return
        time.sleep(interval)
        data, place = ask(address, functools.partial(read, place))
