"""Types of the native module: the engine's side of this process."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future
from contextvars import Context
from typing import Any, Generic, overload

from typing_extensions import ParamSpec, TypeVar

P = ParamSpec("P", default=...)
R = TypeVar("R", covariant=True, default=Any)
V = TypeVar("V")
Ref = TypeVar("Ref", covariant=True, default=Any)

__version__: str
unwinds: bool  # a panic of the engine is an exception, not the end of the process

class ObjectRef(Generic[R]):
    """A name for a value that exists or will."""

    def __new__(cls, id: bytes) -> ObjectRef[Any]:
        """To the value of that name, if this process knows it; else it names nothing."""

    @classmethod
    def from_binary(cls, id_bytes: bytes) -> ObjectRef[Any]: ...
    @classmethod
    def from_hex(cls, hex_id: str) -> ObjectRef[Any]: ...
    @classmethod
    def from_random(cls) -> ObjectRef[Any]: ...
    @classmethod
    def nil(cls) -> ObjectRef[Any]: ...
    @classmethod
    def size(cls) -> int: ...
    def hex(self) -> str: ...
    def binary(self) -> bytes: ...
    def is_nil(self) -> bool: ...
    def task_id(self) -> Any: ...
    def job_id(self) -> Any: ...
    def future(self) -> Future[R]: ...
    def as_future(self) -> asyncio.Future[R]: ...
    def __await__(self) -> Generator[Any, Any, R]: ...
    def _on_completed(self, callback: Callable[[Any], None]) -> ObjectRef[R]: ...
    # For `asyncio.wait`.
    def done(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def exception(self) -> BaseException | None: ...
    def add_done_callback(
        self, callback: Callable[[ObjectRef[R]], object], *, context: Context | None = None
    ) -> None: ...
    def remove_done_callback(self, callback: Callable[[ObjectRef[R]], object]) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class ObjectRefGenerator:
    """The references to what a task yields, one after the other."""

    def __iter__(self) -> ObjectRefGenerator: ...
    def __next__(self) -> ObjectRef[Any]: ...
    def _next_sync(self, timeout_s: float | None = None) -> ObjectRef[Any]: ...
    def __aiter__(self) -> ObjectRefGenerator: ...
    def __anext__(self) -> Awaitable[ObjectRef]: ...
    def _next_async(self, timeout_s: float | None = None) -> Awaitable[ObjectRef]: ...
    def _take(self) -> tuple[ObjectRef | None, bool]:
        """The next item, if it has come; and whether there are no more."""

    def _nil(self) -> ObjectRef[Any]: ...
    def _get_next_ref_n(self, num_refs: int) -> list[ObjectRef]: ...
    def _consume_next_ref_n(self, num_refs: int) -> None: ...
    def completed(self) -> ObjectRef[Any]: ...
    @property
    def _generator_ref(self) -> ObjectRef[Any]: ...
    def next_ready(self) -> bool: ...
    def is_finished(self) -> bool: ...

class RemoteCall(Generic[P, Ref]):
    """What stands at `f.remote`: calling it submits one task."""

    def __init__(
        self,
        make_payload: Callable[[], bytes],  # called once, at the first submission of a session
        name: str | None,  # if it was given another than its function's
        function: str,
        num_returns: int | str,
        resources: dict[str, float],
        max_retries: int,
        arity: tuple[int, int | None] | None,  # positional arguments taken, least and most
        bind: Callable[..., None],  # raises for a call that the function does not take
        *,
        ahead: int,  # items that may be made before they are read; 0: any number
        strategy: dict[str, Any] | None,  # of `_strategy.encode`
        captured: bool,  # it goes into the placement group of whoever calls it
        priority: int,
        environment: Callable[[str], str] | None,  # makes its own of the inherited one
        recorded: bool,  # whether its tasks are in the timeline
    ) -> None: ...
    # Any argument may be a reference to it; which of them are, no annotation can say of all.
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Ref: ...
    @overload
    def __call__(self, _0: ObjectRef[Any], /, *args: Any, **kwargs: Any) -> Ref: ...
    @overload
    def __call__(self, _0: Any, _1: ObjectRef[Any], /, *args: Any, **kwargs: Any) -> Ref: ...
    @overload
    def __call__(
        self, _0: Any, _1: Any, _2: ObjectRef[Any], /, *args: Any, **kwargs: Any
    ) -> Ref: ...
    @overload
    def __call__(
        self, _0: Any, _1: Any, _2: Any, _3: ObjectRef[Any], /, *args: Any, **kwargs: Any
    ) -> Ref: ...

class RunningCall:
    """A call that runs here, for `_running.call`."""

class Reply:
    """A call that a coroutine answers, once. One that goes unanswered has failed."""

    def task_id(self) -> bytes | None: ...
    def begin_items(self) -> str:
        """It yields from now on; "streaming" or "dynamic", as it was declared."""

    def send(self, item: Any) -> str:
        """Yields an item: "on", "full" if it is to wait for its reader, "end" or "cancelled"."""

    def flow(self) -> str: ...
    def succeed(self, result: Any) -> None: ...
    def fail(self, error: BaseException) -> None: ...

class LaneOfCalls:
    """The calls of one lane of an actor, for the `ActorLoop` that runs them."""

    lane: int

    def fileno(self) -> int: ...
    def turn(self) -> str | None:
        """Begins calls that may begin; why the process is to exit, if it is."""

    def tell_answers(self) -> None: ...
    def may_read(self) -> bool: ...
    def wait(self, timeout: float | None) -> int: ...
    def cease(self) -> bool: ...
    def call(self) -> bool: ...

class LoopPort:
    """Where an event loop hears of values: `watch` has `token` come out of `take`."""

    is_readers: bool

    def __init__(self) -> None: ...
    def fileno(self) -> int: ...
    def is_current(self) -> bool: ...
    def watch(self, ref: ObjectRef[Any], token: int) -> None: ...
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
        num_returns: int | str,
        max_task_retries: int,
        recorded: bool,
        *,
        ahead: int,
        lane: int,  # 0 is for calls that name no concurrency group
        order: str,  # which calls wait behind one that waits for arguments: "all", "lane", "free"
        max_pending: int | None,
        arity: tuple[int, int | None] | None,  # as of `RemoteCall`
        bind: Callable[..., None] | None,
        variant: bytes | None,  # the method with options, for `_worker.load_function`
    ) -> ActorCall: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class ActorCall:
    """What stands at `actor.method.remote`: calling it submits one call."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

# Values. These raise what users see, bad arguments included, and start a session if there is none.
@overload
def get(
    object_refs: ObjectRef[V], *, timeout: float | None = None, _use_object_store: bool = False
) -> V: ...
@overload
def get(
    object_refs: ObjectRefGenerator,
    *,
    timeout: float | None = None,
    _use_object_store: bool = False,
) -> ObjectRefGenerator: ...
@overload
def get(
    object_refs: Sequence[ObjectRef[V]],
    *,
    timeout: float | None = None,
    _use_object_store: bool = False,
) -> list[V]: ...
def put(value: V, *, _owner: Any = None, _tensor_transport: str | None = None) -> ObjectRef[V]: ...
def rebuild_ref(id: bytes, owner: int) -> ObjectRef[Any]: ...
def free(refs: list[ObjectRef[Any]]) -> None:
    """Frees the values, whoever holds references to them."""

def cancel(reference: ObjectRef[Any], force: bool, recursive: bool) -> None: ...
def is_cancelled() -> bool:
    """Whether the call that the caller is in was cancelled."""

def exit_actor() -> None:
    """The actor ends in good order, wherever in it this is called."""

def is_to_stop() -> bool:
    """Whether the code of a task that is to be stopped runs right now."""

def locations(
    refs: list[ObjectRef[Any]], *, timeout: float | None = None
) -> list[tuple[int | None, bool, int]]:
    """Of each: bytes of its value, None while there is none; whether it is on disk; its node."""

@overload
def wait(
    ray_waitables: list[ObjectRef[V]],
    *,
    num_returns: int = 1,
    timeout: float | None = None,
    fetch_local: bool = True,
) -> tuple[list[ObjectRef[V]], list[ObjectRef[V]]]: ...
@overload
def wait(
    ray_waitables: list[ObjectRef[V] | ObjectRefGenerator],
    *,
    num_returns: int = 1,
    timeout: float | None = None,
    fetch_local: bool = True,
) -> tuple[list[ObjectRef[V] | ObjectRefGenerator], list[ObjectRef[V] | ObjectRefGenerator]]: ...
def is_complete(ref: ObjectRef[Any]) -> bool:
    """Whether it is known that there is a value, or an error."""

def is_near(ref: ObjectRef[Any]) -> bool:
    """Whether `get` has the value at once, without bringing it from another node."""

# Futures: `watch` asks for `key` to come out of `next_watched` once the value is there.
def watch(ref: ObjectRef[Any], key: int) -> None: ...
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
    captured: bool,  # it goes into the placement group of whoever makes it
    priority: int,
    environment: Callable[[str], str] | None,
    recorded: bool,
) -> ActorRef | None:
    """None: the name is taken. `named`: name, namespace, what others need to know."""

def rebuild_actor(actor: bytes, owner: int) -> ActorRef: ...
def find_actor(name: str, namespace: str) -> tuple[ActorRef, bytes] | None: ...
def actor_names(namespace: str) -> list[tuple[str, str]]:
    """Namespace and name of each; of one namespace or, if empty, of all."""

def kill_actor(actor: ActorRef, no_restart: bool) -> None: ...
def create_group(
    bundles: list[tuple[dict[str, float], list[tuple[str, str, list[str]]]]],
    strategy: str,
    *,
    name: str,
    namespace: str,
    detached: bool,
    prefer: bytes,
) -> bytes | None:
    """The id of a placement group to come. None: the name is taken."""

def remove_group(group: bytes) -> None: ...
def wait_for_group(group: bytes, timeout: float | None) -> bool: ...
def group_ready(group: bytes, value: Any) -> ObjectRef: ...
def find_groups(*, group: bytes, name: str, namespace: str) -> list[dict[str, Any]]:
    """One group, by id or name; all of them, if both are empty."""

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

def adopt_orphans() -> None: ...
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
    settings: str,  # for workers, as JSON
    dashboard: tuple[str, int | None, bool, str] | None,  # host, port, required, Python's version
    enforce: bool,
    labels: dict[str, str],
) -> None: ...
def limit_pending(most: int, raises: bool) -> None:
    """So many tasks and calls of this process may be under way; 0: any number."""

def connect(
    *,
    session_dir: str,
    sys_path: list[str],
    namespace: str,
    log_to_driver: bool,
    entrypoint: str,
    python: str,  # "3.11"
    settings: str,
) -> None:
    """To the node service of our user that listens there; ConnectionError or RuntimeError with the reason."""

def stop(failure: str) -> None:
    """Ends the session. `failure` says what ends the program, if that is an error."""

def is_running() -> bool: ...
def after_fork_in_child() -> bool:
    """Forgets the session, which is the parent's: inherited refs raise, and their end says nothing."""

def next_log(patience: float | None) -> tuple[str, str, int, str, bool, list[str]] | None:
    """The next ("log" | "warning", name, pid, machine, is_error, lines), or ("nothing", ...) after that many seconds; sleeps without the GIL; None: the session ended."""

def tasks_under_way() -> list[str]:
    """Ids of tasks of this process that are under way, or next to be; not more than a look takes."""

def cluster_view() -> dict[str, Any]:
    """total, available, held: dict[str, float]; node_id: bytes; workers, actors, store_used, store_size, pid: int; waiting: list[str]; host: str; nodes, empty when alone: list of dicts {number: int, id: bytes, address, host: str, pid: int, total, available: dict[str, float], labels: dict[str, str], is_head: bool, left: str, store_size, store_used, waiting: int}"""

def key_value(
    verb: str, namespace: str, key: bytes, value: bytes | None, wide: bool
) -> tuple[bytes | None, int, list[bytes]]:
    """Asks the key-value table: value, how many were set or removed, keys."""

def show_bytes(bytes: int) -> str: ...
def settings() -> dict[str, tuple[str | None, str]]:
    """Every environment variable: its other name, and what it is unless said."""

def failures() -> list[tuple[str, int, str, str, str]]:
    """Every failure: name, number, Ray's word, exception, what its data is."""

def context() -> dict[str, Any]:
    """job_id, node_id, worker_id, task_id | None, actor_id | None: bytes; task_name, function_name, namespace, session_dir: str; address of the node and control service, empty when alone: address, control: str; is_driver: bool; device_ids: list[int]; restarts, creator: int; settings: str, JSON"""

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

    def stuck(self, tasks: Sequence[str]) -> dict[str, str]:
        """Of these tasks and what they wait for: what can never go on, in sentences by its name."""

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

    def fetch_package(self, name: str, path: str) -> bool:
        """Writes a package of the cluster into a file; False: no node has it."""

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
def connect_worker(
    session_dir: str, stdout: int, stderr: int, environment: int, text: str
) -> None: ...
def run_worker() -> int:
    """Runs tasks until told to exit; returns the exit code. Never raises."""

def set_environment(text: str) -> None:
    """Sets the runtime environment of what this process submits, as JSON; empty: the nodes'."""

def environment() -> str:
    """The runtime environment of what this process submits."""
