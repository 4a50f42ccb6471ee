"""The rows of `ray microbenchmark`, for whichever of oxiray and ray BENCH_MODULE names.

Names, work and counting are those of Ray's own benchmark, so that results can be laid beside
anybody's. One file serves both sides: what differs between them is the import, and nothing else.
Rows that Ray does not have end in `*`.
"""

import asyncio
import importlib
import importlib.util
import itertools
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import arrays
from registry import Call, Skip, row

ray: Any = importlib.import_module(os.environ["BENCH_MODULE"])

BATCH = 1000
CLIENTS = 4
SERVERS = max(1, (os.cpu_count() or 1) // 2)


def start(**extra: Any) -> None:
    """Starts a local cluster as Ray's benchmark does: defaults, less dashboard and log lines."""
    ray.init(include_dashboard=False, log_to_driver=False, **extra)


def stop() -> None:
    ray.shutdown()


# --- the work that runs remotely ---


@ray.remote
def small_value() -> bytes:
    return b"ok"


@ray.remote
def put_small_values(count: int) -> None:
    for _ in range(count):
        ray.put(0)


@ray.remote
def put_arrays(count: int) -> None:
    for _ in range(count):
        ray.put(arrays.untouched(arrays.LARGE_LENGTH // 10))


@ray.remote
def make_refs(count: int) -> list[Any]:
    return [ray.put(1) for _ in range(count)]


@ray.remote
def call_in_turn(servers: list[Any], count: int) -> None:
    ray.get([servers[i % len(servers)].small_value.remote() for i in range(count)])


@ray.remote
def count_arguments(*values: object) -> int:
    return len(values)


@ray.remote(num_returns=3000)
def many_values() -> tuple[int, ...]:
    return tuple(range(3000))


@ray.remote
def make_array(length: int) -> Any:
    return arrays.touched(length)


@ray.remote(num_returns="streaming")
def yield_small_values(count: int) -> Any:
    for _ in range(count):
        yield b"ok"


@ray.remote(num_returns="streaming")
def yield_arrays(count: int) -> Any:
    array = arrays.touched(MEGABYTE)
    for _ in range(count):
        yield array


@ray.remote(num_cpus=0)
class Server:
    def small_value(self) -> bytes:
        return b"ok"

    def small_value_arg(self, _: object) -> bytes:
        return b"ok"

    def run_tasks(self, count: int) -> None:
        ray.get([small_value.remote() for _ in range(count)])


@ray.remote(num_cpus=0)
class Client:
    def __init__(self, servers: list[Any]) -> None:
        self.servers = servers

    def call_each(self, count: int) -> None:
        ray.get([s.small_value.remote() for s in self.servers for _ in range(count)])

    def call_each_with_ref(self, count: int) -> None:
        ref = ray.put(0)
        ray.get([s.small_value_arg.remote(ref) for s in self.servers for _ in range(count)])


class AsyncServer:
    """Made remote by the rows that use it, so that a side without async actors keeps the rest."""

    async def small_value(self) -> bytes:
        return b"ok"

    async def small_value_with_arg(self, _: object) -> bytes:
        return b"ok"

    async def yield_small_values(self, count: int) -> Any:
        for _ in range(count):
            yield b"ok"


def servers(count: int) -> list[Any]:
    return [Server.remote() for _ in range(count)]


def async_servers(count: int) -> list[Any]:
    remote_class = ray.remote(AsyncServer)
    return [remote_class.remote() for _ in range(count)]


# --- objects ---


@row("single client get calls (Plasma Store)", "calls/s")
def get_calls(_: int) -> Call:
    ref = ray.put(0)
    return lambda: ray.get(ref)


@row("single client put calls (Plasma Store)", "calls/s")
def put_calls(_: int) -> Call:
    return lambda: ray.put(0)


@row("multi client put calls (Plasma Store)", "calls/s", items=1000)
def multi_client_put_calls(items: int) -> Call:
    return lambda: ray.get([put_small_values.remote(items // 10) for _ in range(10)])


# A store is slow until its pages have been touched; the row is about what comes after.
@row("single client put gigabytes", "GB/s", weight=arrays.LARGE_GIGABYTES, warm_up_calls=10)
def put_gigabytes(_: int) -> Call:
    array = arrays.untouched(arrays.LARGE_LENGTH)
    return lambda: ray.put(array)


@row(
    "single client put gigabytes, touched array *",
    "GB/s",
    weight=arrays.LARGE_GIGABYTES,
    warm_up_calls=3,
)
def put_touched_gigabytes(_: int) -> Call:
    array = arrays.touched(arrays.LARGE_LENGTH)
    return lambda: ray.put(array)


@row("multi client put gigabytes", "GB/s", items=100, quick_items=20, weight=0.08)
def multi_client_put_gigabytes(items: int) -> Call:
    arrays.numpy()  # So that a missing numpy is a reason, not a failed task.
    return lambda: ray.get([put_arrays.remote(items // 10) for _ in range(10)])


@row("single client get 800 MB *", "calls/s")
def get_large(_: int) -> Call:
    ref = ray.put(arrays.untouched(arrays.LARGE_LENGTH))
    return lambda: ray.get(ref)


# A megabyte: between what travels in messages and what is worth a round trip.
MEGABYTE = 125_000


@row("single client put 1 MB *", "calls/s")
def put_megabyte(_: int) -> Call:
    array = arrays.touched(MEGABYTE)
    return lambda: ray.put(array)


@row("task that returns 1 MB, get *", "calls/s")
def return_megabyte(_: int) -> Call:
    return lambda: ray.get(make_array.remote(MEGABYTE))


@row("task with 10,000 ref arguments *", "calls/s")
def many_arguments(_: int) -> Call:
    refs = [ray.put(i) for i in range(10_000)]
    return lambda: ray.get(count_arguments.remote(*refs))


@row("task with 3,000 returns, get *", "calls/s")
def many_returns(_: int) -> Call:
    return lambda: ray.get(many_values.remote())


@row("single client get object containing 10k refs", "calls/s")
def get_object_containing_refs(_: int) -> Call:
    ref = make_refs.remote(10_000)
    return lambda: ray.get(ref)


# --- tasks ---


@row("single client tasks and get batch", "batches/s")
def tasks_and_get_batch(_: int) -> Call:
    def call() -> None:
        refs = [small_value.remote() for _ in range(BATCH)]
        ray.get(refs)

    return call


@row("single client wait 1k refs", "batches/s")
def wait_refs(_: int) -> Call:
    def call() -> None:
        waiting = [small_value.remote() for _ in range(1000)]
        # As Ray's row does it: asking once for the values to be fetched is enough.
        fetch_local = True
        while waiting:
            _, waiting = ray.wait(waiting, fetch_local=fetch_local)
            fetch_local = False

    return call


@row("single client tasks sync", "tasks/s")
def tasks_sync(_: int) -> Call:
    return lambda: ray.get(small_value.remote())


@row("single client tasks async", "tasks/s", items=BATCH)
def tasks_async(items: int) -> Call:
    return lambda: ray.get([small_value.remote() for _ in range(items)])


@row("multi client tasks async", "tasks/s", items=CLIENTS * 10_000, quick_items=CLIENTS * 1000)
def multi_client_tasks_async(items: int) -> Call:
    clients = servers(CLIENTS)
    return lambda: ray.get([c.run_tasks.remote(items // CLIENTS) for c in clients])


# --- actors ---


def call_sync(server: Any) -> Call:
    return lambda: ray.get(server.small_value.remote())


def call_many(server: Any, count: int) -> Call:
    return lambda: ray.get([server.small_value.remote() for _ in range(count)])


def call_from_one_client(targets: list[Any], count: int) -> Call:
    client = Client.remote(targets)
    return lambda: ray.get(client.call_each.remote(count // len(targets)))


def call_from_many_tasks(targets: list[Any], count: int) -> Call:
    return lambda: ray.get([call_in_turn.remote(targets, count // CLIENTS) for _ in range(CLIENTS)])


@row("1:1 actor calls sync", "calls/s")
def actor_calls_sync(_: int) -> Call:
    return call_sync(Server.remote())


@row("1:1 actor calls async", "calls/s", items=BATCH)
def actor_calls_async(items: int) -> Call:
    return call_many(Server.remote(), items)


@row("1:1 actor calls concurrent", "calls/s", items=BATCH)
def actor_calls_concurrent(items: int) -> Call:
    return call_many(Server.options(max_concurrency=16).remote(), items)


@row("1:n actor calls async", "calls/s", items=SERVERS * 5000, quick_items=SERVERS * 1000)
def one_to_n_actor_calls(items: int) -> Call:
    return call_from_one_client(servers(SERVERS), items)


@row("n:n actor calls async", "calls/s", items=CLIENTS * 5000, quick_items=CLIENTS * 500)
def n_to_n_actor_calls(items: int) -> Call:
    return call_from_many_tasks(servers(SERVERS), items)


@row("n:n actor calls with arg async", "calls/s", items=SERVERS * 1000)
def n_to_n_actor_calls_with_arg(items: int) -> Call:
    clients = [Client.remote([server]) for server in servers(SERVERS)]
    return lambda: ray.get([c.call_each_with_ref.remote(items // SERVERS) for c in clients])


# --- streams: each item is got as it comes ---


def read_stream(stream: Any, items: int) -> Call:
    def call() -> None:
        for ref in stream.remote(items):
            ray.get(ref)

    return call


@row("streaming generator, small items *", "items/s", items=10 * BATCH, quick_items=BATCH)
def streamed_small_values(items: int) -> Call:
    return read_stream(yield_small_values, items)


@row("streaming generator, items of 1 MB *", "items/s", items=BATCH, quick_items=BATCH // 10)
def streamed_arrays(items: int) -> Call:
    return read_stream(yield_arrays, items)


@row("streaming from an async actor *", "items/s", items=10 * BATCH, quick_items=BATCH)
def streamed_by_async_actor(items: int) -> Call:
    return read_stream(async_servers(1)[0].yield_small_values, items)


# --- async actors ---


@row("1:1 async-actor calls sync", "calls/s")
def async_actor_calls_sync(_: int) -> Call:
    return call_sync(async_servers(1)[0])


@row("1:1 async-actor calls async", "calls/s", items=BATCH)
def async_actor_calls_async(items: int) -> Call:
    return call_many(async_servers(1)[0], items)


@row("1:1 async-actor calls with args async", "calls/s", items=BATCH)
def async_actor_calls_with_args(items: int) -> Call:
    server = async_servers(1)[0]
    return lambda: ray.get([server.small_value_with_arg.remote(i) for i in range(items)])


@row("1:n async-actor calls async", "calls/s", items=SERVERS * 5000, quick_items=SERVERS * 1000)
def one_to_n_async_actor_calls(items: int) -> Call:
    return call_from_one_client(async_servers(SERVERS), items)


@row("n:n async-actor calls async", "calls/s", items=CLIENTS * 5000, quick_items=CLIENTS * 500)
def n_to_n_async_actor_calls(items: int) -> Call:
    return call_from_many_tasks(async_servers(SERVERS), items)


# --- cancelling ---


@ray.remote
def sleep_for_long(begun: str) -> None:
    open(begun, "w").close()
    time.sleep(600)


class Sleeper:
    async def sleep(self, begun: str) -> None:
        open(begun, "w").close()
        await asyncio.sleep(600)


def cancelled_after(submit: Callable[[str], Any]) -> Call:
    """Seconds from `cancel` of what runs until `get` raises."""
    folder = tempfile.mkdtemp()

    def call() -> float:
        begun = os.path.join(folder, "begun")
        ref = submit(begun)
        while not os.path.exists(begun):
            time.sleep(0.001)
        os.unlink(begun)
        start = time.perf_counter()
        ray.cancel(ref)
        try:
            ray.get(ref)
        except ray.exceptions.TaskCancelledError:
            return time.perf_counter() - start
        raise AssertionError("it was not cancelled")

    return call


@row("cancel of a task that sleeps *", "ms", own_clock=True)
def cancel_task(_: int) -> Call:
    return cancelled_after(sleep_for_long.remote)


@row("cancel of a coroutine *", "ms", own_clock=True)
def cancel_coroutine(_: int) -> Call:
    return cancelled_after(ray.remote(Sleeper).remote().sleep.remote)


# --- workers and environments ---


class Importer:
    def __init__(self, module: str) -> None:
        __import__(module)

    def is_there(self) -> bool:
        return True


def started_with(module: str) -> Call:
    """Seconds from an actor's creation until it answers, when others have imported the same."""
    if importlib.util.find_spec(module) is None:
        raise Skip(f"{module} is not installed")
    importers = ray.remote(num_cpus=0)(Importer)

    def call() -> float:
        start = time.perf_counter()
        importer = importers.remote(module)
        ray.get(importer.is_there.remote())
        seconds = time.perf_counter() - start
        ray.kill(importer)
        return seconds

    for _ in range(4):
        call()
    time.sleep(3)  # whoever wants to learn from those has time to
    return call


@row("actor that imports numpy, to its first result *", "ms", own_clock=True, warm_up_calls=4)
def start_with_numpy(_: int) -> Call:
    return started_with("numpy")


@row("actor that imports pandas, to its first result *", "ms", own_clock=True, warm_up_calls=4)
def start_with_pandas(_: int) -> Call:
    return started_with("pandas")


@row("actor with an import of a second *", "ms", own_clock=True, warm_up_calls=4)
def start_with_slow_module(_: int) -> Call:
    return started_with("slow_module")


@row("first task in a new env_vars environment *", "ms")
def new_environment(_: int) -> Call:
    numbers = itertools.count()

    def call() -> None:
        variables = {"OXT_NUMBER": str(next(numbers))}
        ray.get(small_value.options(runtime_env={"env_vars": variables}).remote())

    return call


@row("next task in an env_vars environment *", "ms")
def known_environment(_: int) -> Call:
    known = small_value.options(runtime_env={"env_vars": {"OXT_NUMBER": "known"}})
    return lambda: ray.get(known.remote())


importlib.import_module("environment_rows")  # directories and packages


# --- what stands on tasks and actors ---

importlib.import_module("library_rows")  # registers them here, before what needs another cluster


# --- placement groups; last, since they want a cluster with a resource of their own ---


@row("placement group create/removal", "groups/s", items=100, init={"resources": {"custom": 100}})
def placement_groups(items: int) -> Call:
    def call() -> None:
        groups = [ray.util.placement_group(bundles=[{"custom": 0.001}]) for _ in range(items)]
        for group in groups:
            group.wait(timeout_seconds=30)
        for group in groups:
            ray.util.remove_placement_group(group)

    return call
