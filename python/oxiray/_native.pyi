"""Types of the native module: the engine's side of this process."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

__version__: str
unwinds: bool  # a panic of the engine is an exception, not the end of the process

class ObjectRef:
    """A name for a value that exists or will."""

    def hex(self) -> str: ...
    def binary(self) -> bytes: ...
    def is_nil(self) -> bool: ...
    def task_id(self) -> Any: ...
    def job_id(self) -> Any: ...
    def future(self) -> Future[Any]: ...
    def as_future(self) -> asyncio.Future[Any]: ...
    def __await__(self) -> Any: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class RemoteCall:
    """What stands at `f.remote`: calling it submits one task."""

    def __init__(
        self,
        make_payload: Callable[[], bytes],  # called once, at the first submission of a session
        name: str | None,  # if it was given another than its function's
        function: str,
        num_returns: int,
        resources: dict[str, float],
        max_retries: int,
        arity: tuple[int, int | None] | None,  # positional arguments taken, least and most
        bind: Callable[..., None],  # raises for a call that the function does not take
        *,
        strategy: dict[str, Any] | None,  # of `_strategy.encode`
        priority: int,
        recorded: bool,  # whether its tasks are in the timeline
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> ObjectRef | list[ObjectRef] | None: ...

class RunningCall:
    """A call that runs here, for `_running.call`."""

class Reply:
    """A call that a coroutine answers, once. One that goes unanswered has failed."""

    def task_id(self) -> bytes | None: ...
    def succeed(self, result: Any) -> None: ...
    def fail(self, error: BaseException) -> None: ...

class LaneOfCalls:
    """The calls of one lane of an actor, for the `ActorLoop` that runs them."""

    def fileno(self) -> int: ...
    def turn(self) -> str | None:
        """Begins calls that may begin; why the process is to exit, if it is."""

    def tell_answers(self) -> None: ...

class LoopPort:
    """Where an event loop hears of values: `watch` has `token` come out of `take`."""

    def __init__(self) -> None: ...
    def fileno(self) -> int: ...
    def is_current(self) -> bool: ...
    def watch(self, ref: ObjectRef, token: int) -> None: ...
    def take(self) -> list[int]: ...

class ActorRef:
    """A counted reference to an actor; the actor ends when the last one goes."""

    def hex(self) -> str: ...
    def binary(self) -> bytes: ...
    def method(
        self,
        name: str,
        function: str,  # with its class
        given: str | None,  # another name for people to call it by
        num_returns: int,
        max_task_retries: int,
        recorded: bool,
        *,
        lane: int,  # 0 is for calls that name no concurrency group
        order: str,  # which calls wait behind one that waits for arguments: "all", "lane", "free"
        max_pending: int | None,
    ) -> ActorCall: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class ActorCall:
    """What stands at `actor.method.remote`: calling it submits one call."""

    def __call__(self, *args: Any, **kwargs: Any) -> ObjectRef | list[ObjectRef] | None: ...

# Values. These raise what users see, bad arguments included, and start a session if there is none.
def get(refs: ObjectRef | Sequence[ObjectRef], *, timeout: float | None = None) -> Any: ...
def put(value: Any, *, _owner: Any = None) -> ObjectRef: ...
def free(refs: list[ObjectRef]) -> None:
    """Frees the values, whoever holds references to them."""

def cancel(reference: ObjectRef, force: bool, recursive: bool) -> None: ...
def is_cancelled() -> bool:
    """Whether the call that the caller is in was cancelled."""

def is_to_stop() -> bool:
    """Whether the code of a task that is to be stopped runs right now."""

def locations(
    refs: list[ObjectRef], *, timeout: float | None = None
) -> list[tuple[int | None, bool, int]]:
    """Of each: bytes of its value, None while there is none; whether it is on disk; its node."""

def wait(
    refs: list[ObjectRef],
    *,
    num_returns: int = 1,
    timeout: float | None = None,
    fetch_local: bool = True,
) -> tuple[list[ObjectRef], list[ObjectRef]]: ...
def is_near(ref: ObjectRef) -> bool:
    """Whether `get` has the value at once, without bringing it from another node."""

# Futures: `watch` asks for `key` to come out of `next_watched` once the value is there.
def watch(ref: ObjectRef, key: int) -> None: ...
def next_watched() -> list[int] | None: ...  # sleeps without the GIL; None: the session ended

# Actors.
def create_actor(
    payload: bytes,
    class_name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    placement: dict[str, float],
    held: dict[str, float],
    *,
    max_restarts: int,
    detached: bool,
    named: tuple[str, str, bytes] | None,
    strategy: dict[str, Any] | None,  # of `_strategy.encode`
    priority: int,
    recorded: bool,
) -> ActorRef | None:
    """None: the name is taken. `named`: name, namespace, what others need to know."""

def find_actor(name: str, namespace: str) -> tuple[ActorRef, bytes] | None: ...
def actor_names(namespace: str) -> list[tuple[str, str]]:
    """Namespace and name of each; of one namespace or, if empty, of all."""

def kill_actor(actor: ActorRef, no_restart: bool) -> None: ...

# The folder of sessions.
def sessions_folder() -> str:
    """Where it is, or would be made."""

def new_session(parent: str | None) -> str:
    """The path of a new session's directory, in `parent` if that is given; makes nothing."""

def make_session(path: str, is_elsewhere: bool) -> None:
    """Makes it, and holds it for its node service; an OSError says what is in the way, and what to do. `is_elsewhere`: not in the folder."""

def hand_over_session() -> None:
    """Its node service holds it now."""

def end_session(path: str) -> None:
    """Ends what is left of a session whose node service has gone."""

def dashboard_url(session_dir: str) -> str | None:
    """With its token; None: there is none on this machine."""

def started_nodes() -> list[dict[str, Any]]:
    """The nodes that run, the latest last: address, node_address, node_id, session_dir: str; is_head: bool"""

def forget_cluster(name: str) -> None:
    """Removes the keyring and the state of a cluster that ended from the folder."""

def forget_node(name: str) -> None:
    """Removes what a node that ended has left in the folder."""

# Sessions.
def start(
    *,
    program: str,
    resources: dict[str, float],
    object_store_memory: int,
    python: str,
    sys_path: list[str],
    preload: list[str],
    session_dir: str,
    log_to_driver: bool,
    prestart_workers: int,
    memory_usage_threshold: float,
    namespace: str,
    spill_to: list[str],
    store_patience_ms: int,
    tell_spilling: bool,
    entrypoint: str,
    dashboard: tuple[str, int | None, bool, str] | None,  # host, port, required, Python's version
) -> None: ...
def connect(
    *,
    session_dir: str,
    sys_path: list[str],
    namespace: str,
    log_to_driver: bool,
    entrypoint: str,
    python: str,  # "3.11"
) -> None:
    """To the node service of our user that listens there; ConnectionError or RuntimeError with the reason."""

def stop(failure: str) -> None:
    """Ends the session. `failure` says what ends the program, if that is an error."""

def is_running() -> bool: ...
def after_fork_in_child() -> bool:
    """Forgets the session, which is the parent's: inherited refs raise, and their end says nothing."""

def next_log(patience: float | None) -> tuple[str, str, int, str, bool, list[str]] | None:
    """The next ("log" | "warning", name, pid, machine, is_error, lines), or ("nothing", ...) after that many seconds; sleeps without the GIL; None: the session ended."""

def cluster_view() -> dict[str, Any]:
    """total, available, held: dict[str, float]; node_id: bytes; workers, actors, store_used, store_size, pid: int; waiting: list[str]; host: str; nodes, empty when alone: list of dicts {number: int, id: bytes, address, host: str, pid: int, total, available: dict[str, float], labels: dict[str, str], is_head: bool, left: str, store_size, store_used, waiting: int}"""

def key_value(
    verb: str, namespace: str, key: bytes, value: bytes | None, wide: bool
) -> tuple[bytes | None, int, list[bytes]]:
    """Asks the key-value table: value, how many were set or removed, keys."""

def show_bytes(bytes: int) -> str: ...
def settings() -> dict[str, tuple[str | None, str]]:
    """Every environment variable: its other name, and what it is unless said."""

def context() -> dict[str, Any]:
    """job_id, node_id, worker_id, task_id | None, actor_id | None: bytes; task_name, function_name, namespace, session_dir: str; address of the node and control service, empty when alone: address, control: str; is_driver: bool; device_ids: list[int]"""

def timeline() -> tuple[bytes, list[str]]:
    """The session as a Chrome trace: JSON; and what is missing, in sentences."""

def write_timeline(filename: str) -> list[str]:
    """Writes that JSON; what is missing, in sentences."""

def timeline_view(
    width: int,
) -> tuple[list[str], list[tuple[str, list[tuple[int, int, int, int, bool]]]], list[str]]:
    """Names; rows of a label and of (start, duration in microseconds, name, how many, failed); what
    is missing, in sentences."""

def record_span(name: str, start: int, duration: int, extra: str) -> None:
    """Nanoseconds of the monotonic clock; JSON."""

def fail_for_test(place: str) -> None: ...  # "call": here; else in a thread of the engine
def note_printed() -> None:
    """A stream of this worker has something to end with the task: `oxiray._child.end_output`."""

def current_printer() -> tuple[str, str, bool]:
    """Name of the running task or actor class, and the id of the task, for what it prints; and
    whether others may print meanwhile."""

class Observer:
    """The session as one who only looks sees it. Rows come as JSON."""

    def set_patience(self, seconds: float) -> None:
        """How long a node may take to answer; never more than some seconds."""

    def __init__(self, directory: str | None = None, address: str | None = None) -> None: ...
    def rows(
        self,
        resource: str,
        *,
        filters: Sequence[tuple[str, str, str]],
        limit: int | None,
        detail: bool,
        sort: str | None = None,
    ) -> tuple[int, int, str, list[str]]:
        """How many there are, how many meet the filters, the rows, what is missing in sentences."""

    def get(self, resource: str, id: str) -> tuple[str | None, list[str]]:
        """The row, if there is one; what is missing in sentences."""

    def summary(self, resource: str) -> tuple[str, list[str]]:
        """The summary; what is missing in sentences."""

    def gaps(self) -> list[str]:
        """Those of the sentences on tasks that will be true for as long as the session lasts."""

    def log_files(
        self, node_id: str | None = None
    ) -> tuple[list[tuple[str, str, int, int | None]], list[str]]:
        """Node, file, size and process of each; what is missing in sentences."""

    def find_log(
        self,
        *,
        file: str | None,
        node_id: str | None,
        actor_id: str | None,
        pid: int | None,
        is_error: bool,
        may_come: bool,
    ) -> tuple[str, str] | None:
        """The node and the file; `may_come`: a worker's that does not exist yet will do."""

    def log_tail(self, node_id: str, file: str, lines: int) -> tuple[int, int, int]:
        """The place at which the last lines of a log begin."""

    def read_log(
        self, node_id: str, file: str, place: tuple[int, int, int]
    ) -> tuple[bytes, tuple[int, int, int], bool, bool]:
        """What follows a place of a log; the place to go on at; whether something is missing before
        it; whether nothing will ever follow. (0, 0, 0) is before everything that is kept."""

    def task_output(
        self, task_id: str, is_error: bool, may_come: bool, place: tuple[int, str, int] | None
    ) -> tuple[bytes, tuple[int, str, int]]:
        """What a task printed after a place; the place to go on at. One that has not begun is refused
        unless it `may_come`."""

# Workers.
def connect_worker(session_dir: str, stdout: int, stderr: int) -> None: ...
def run_worker() -> int:
    """Runs tasks until told to exit; returns the exit code. Never raises."""
