"""`list_logs`, `get_log`: what workers printed, on whichever node."""

from __future__ import annotations

import codecs
import dataclasses
import fnmatch
import json
import re
import time
import warnings
from collections.abc import Callable, Generator
from typing import TypeVar

from ... import _native
from ._list import rows
from ._observer import ask, miss
from ._plain import plain

_TIMEOUT_S = 30
_BETWEEN_LOOKS_S = 0.2

T = TypeVar("T")
_Place = tuple[int, int, int]
_TaskPlace = tuple[int, str, int]

_BEGINNING: _Place = (0, 0, 0)
_LOST = "Lines are missing: the log's older parts were removed before they could be read."


def list_logs(
    address: str | None = None,
    node_id: str | None = None,
    node_ip: str | None = None,
    glob_filter: str | None = None,
    timeout: int = _TIMEOUT_S,
) -> dict[str, list[str]]:
    """The names of log files of a node, or of all, by what writes them."""
    files, notes = ask(address, lambda observer: observer.log_files(node_id or node_ip), timeout)
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
    submission_id: str | None = None,
    attempt_number: int = 0,
    _interval: float | None = None,
    filter_ansi_code: bool = False,
) -> Generator[str, None, None]:
    """The text of a log, in pieces: all that is kept of it, or its last `tail` lines; with `follow`
    also what comes later. Which one is said by its name, by the actor or process that wrote it, or
    by the job that was handed in. With `task_id` it is what that task printed of its worker's log,
    in its last attempt. `filter_ansi_code` leaves out what is meant for terminals."""
    if suffix not in ("out", "err"):
        raise ValueError(f'suffix must be "out" or "err", not {suffix!r}')
    if tail < -1:
        raise ValueError(f"tail must be a number of lines, or -1 for all, not {tail}")
    which = (filename, actor_id, task_id, pid, submission_id)
    if sum(each is not None for each in which) > 1:
        raise ValueError(f"say which log by one of {_WHICH}")
    decoder = codecs.getincrementaldecoder(encoding or "utf-8")(errors or "strict")
    reader = _Reader(address, timeout, decoder, follow, tail, _interval or _BETWEEN_LOOKS_S)
    is_error = suffix == "err"
    # What is wrong is told now, not when the first piece is asked for.
    if task_id is not None:
        reader.check_attempt(task_id, attempt_number)
        text = reader.of_task(task_id, is_error, reader.read_task(task_id, is_error, None))
        return _shown(text, filter_ansi_code)
    if submission_id is not None:
        node_id, filename = reader.file_of_job(submission_id)
    found = reader.ask(
        lambda observer: observer.find_log(
            file=filename,
            node_id=node_id or node_ip,
            actor_id=actor_id,
            pid=pid,
            is_error=is_error,
            may_come=follow,
        )
    )
    if found is None:
        raise ValueError(f"say which log: {_WHICH}")
    return _shown(reader.of_file(*found), filter_ansi_code)


_WHICH = "filename=, actor_id=, task_id=, pid= or submission_id="


def _shown(text: Generator[str, None, None], is_plain: bool) -> Generator[str, None, None]:
    return plain(text) if is_plain else text


@dataclasses.dataclass
class _Reader:
    """How a log is read."""

    address: str | None
    timeout: float
    decoder: codecs.IncrementalDecoder
    follow: bool
    tail: int
    interval: float

    def ask(self, question: Callable[[_native.Observer], T]) -> T:
        return ask(self.address, question, self.timeout)

    def read_on(self, node: str, file: str, place: _Place) -> tuple[bytes, _Place, bool, bool]:
        return self.ask(lambda observer: observer.read_log(node, file, place))

    def read_task(
        self, task_id: str, is_error: bool, place: _TaskPlace | None
    ) -> tuple[bytes, _TaskPlace]:
        return self.ask(
            lambda observer: observer.task_output(task_id, is_error, self.follow, place)
        )

    def file_of_job(self, submission_id: str) -> tuple[str | None, str]:
        """The node and the file of what a job that was handed in printed."""
        filters = [("submission_id", "=", submission_id)]
        found = rows("jobs", self.address, filters, None, self.timeout, True, False)
        files = [(row["driver_node_id"], row["log_file"]) for row in found if row["log_file"]]
        if not files:
            raise ValueError(f"no job {submission_id!r} was handed in, or it has printed nothing")
        return files[-1]

    def check_attempt(self, task_id: str, attempt: int) -> None:
        """Refuses an attempt whose output is not told apart from that of a later one."""
        if not attempt:
            return
        text, _ = self.ask(lambda observer: observer.get("tasks", task_id))
        last = json.loads(text)["attempt_number"] if text else 0
        if attempt != last:
            raise ValueError(
                f"attempt_number={attempt}: the last attempt of task {task_id} is {last}, and what "
                "earlier ones printed is in the logs of their workers"
            )

    def of_file(self, node: str, file: str) -> Generator[str, None, None]:
        place = _BEGINNING
        if self.tail >= 0:
            place = self.ask(lambda observer: observer.log_tail(node, file, self.tail))
        while True:
            data, place, is_after_loss, is_over = self.read_on(node, file, place)
            if is_after_loss:
                self.decoder.reset()
                warnings.warn(_LOST, stacklevel=2)
            if data:
                if text := self.decoder.decode(data):
                    yield text
            elif self.follow and not is_over:
                time.sleep(self.interval)
            else:
                if text := self.decoder.decode(b"", final=True):
                    yield text
                return

    def of_task(
        self, task_id: str, is_error: bool, first: tuple[bytes, _TaskPlace]
    ) -> Generator[str, None, None]:
        data, place = first
        if self.tail >= 0:
            # Not splitlines(): what draws bars ends them with a carriage return.
            lines = re.findall(rb"[^\n]*\n|[^\n]+", data)
            data = b"".join(lines[len(lines) - min(self.tail, len(lines)) :])
        while True:
            if text := self.decoder.decode(data, final=not self.follow):
                yield text
            if not self.follow:
                return
            time.sleep(self.interval)
            data, place = self.read_task(task_id, is_error, place)
