"""Rows about several hosts, for whichever of oxiray and ray BENCH_MODULE names.

The driver is at the first host, with the head. All hosts share this machine's processors.
"""

import importlib
import os
import time
from typing import Any

import arrays
from nodes import Nodes, OxirayNodes, RayNodes
from registry import Call, row

ray: Any = importlib.import_module(os.environ["BENCH_MODULE"])

BATCH = 1000
MEGABYTE = 1_000_000
BROADCAST_BYTES = 256 * MEGABYTE
HOSTS = 5
GANG, GANG_HOSTS = 100, 8
WAIT_SECONDS = 60

nodes: Nodes


def start(hosts: int = 2) -> None:
    global nodes
    nodes = OxirayNodes(ray.__file__) if ray.__name__ == "oxiray" else RayNodes()
    try:
        nodes.start(hosts)
        ray.init(log_to_driver=False, **nodes.connection())
        wait_for_nodes(hosts)
    except BaseException:
        stop()
        raise


def stop() -> None:
    ray.shutdown()
    nodes.stop_all()


def wait_for_nodes(count: int) -> None:
    give_up = time.monotonic() + WAIT_SECONDS
    while sum(node["Alive"] for node in ray.nodes()) != count:
        if time.monotonic() > give_up:
            raise TimeoutError(f"the cluster does not have {count} nodes in time")
        time.sleep(0.01)


def on_host(number: int) -> dict[str, Any]:
    """Options of what must run there."""
    return {"resources": {f"host{number}": 0.001}}


# --- the work that runs remotely ---


@ray.remote(**on_host(2))
def small_value() -> bytes:
    return b"ok"


@ray.remote(**on_host(3))
def small_value_elsewhere() -> bytes:
    return b"ok"


@ray.remote(**on_host(2))
def make_array(size: int) -> Any:
    return arrays.touched(size // 8)


@ray.remote(num_cpus=0)
class Server:
    def small_value(self) -> bytes:
        return b"ok"

    def size(self, array: Any) -> int:
        return array.nbytes


# --- tasks and actors on another host ---


@row("cluster: tasks on another host, one at a time *", "tasks/s")
def tasks_sync(_: int) -> Call:
    return lambda: ray.get(small_value.remote())


@row("cluster: tasks on another host, 1000 in flight *", "tasks/s", items=BATCH)
def tasks_async(items: int) -> Call:
    return lambda: ray.get([small_value.remote() for _ in range(items)])


@row("cluster: actor calls to another host, one at a time *", "calls/s")
def actor_calls_sync(_: int) -> Call:
    server = Server.options(**on_host(2)).remote()
    return lambda: ray.get(server.small_value.remote())


@row("cluster: actor calls to another host, 1000 in flight *", "calls/s", items=BATCH)
def actor_calls_async(items: int) -> Call:
    server = Server.options(**on_host(2)).remote()
    return lambda: ray.get([server.small_value.remote() for _ in range(items)])


# --- objects ---


def get_from_far(size: int) -> Call:
    """An object of another host is got; how long that alone took. A new one each time."""

    def call() -> float:
        ref = make_array.remote(size)
        ray.wait([ref], fetch_local=False)
        begun = time.perf_counter()
        array = ray.get(ref)
        seconds = time.perf_counter() - begun
        assert array.nbytes == size
        return seconds

    return call


# Stores are slow until their pages have been touched, as everywhere.
@row("cluster: transfer of 512 MB *", "GB/s", weight=0.512, warm_up_calls=4, own_clock=True)
def transfer_large(_: int) -> Call:
    return get_from_far(512 * MEGABYTE)


@row("cluster: transfer of 32 MB *", "GB/s", weight=0.032, warm_up_calls=10, own_clock=True)
def transfer_medium(_: int) -> Call:
    return get_from_far(32 * MEGABYTE)


@row("cluster: transfer of 1 MB *", "GB/s", weight=0.001, warm_up_calls=20, own_clock=True)
def transfer_small(_: int) -> Call:
    return get_from_far(MEGABYTE)


@row(
    "cluster: broadcast of 256 MB to 4 hosts *",
    "ms",
    warm_up_calls=3,
    own_clock=True,
    init={"hosts": HOSTS},
)
def broadcast(_: int) -> Call:
    servers = [Server.options(**on_host(n)).remote() for n in range(2, HOSTS + 1)]
    ray.get([server.small_value.remote() for server in servers])

    def call() -> float:
        ref = ray.put(arrays.touched(BROADCAST_BYTES // 8))
        begun = time.perf_counter()
        sizes = ray.get([server.size.remote(ref) for server in servers])
        seconds = time.perf_counter() - begun
        assert sizes == [BROADCAST_BYTES] * len(servers)
        return seconds

    return call


@row(
    "cluster: 100 bundles over 8 hosts, made and removed *",
    "ms",
    warm_up_calls=2,
    init={"hosts": GANG_HOSTS},
)
def gang(_: int) -> Call:
    bundles = [{f"host{n % GANG_HOSTS + 1}": 0.001} for n in range(GANG)]

    def call() -> None:
        group = ray.util.placement_group(bundles, strategy="SPREAD")
        assert group.wait(timeout_seconds=WAIT_SECONDS)
        ray.util.remove_placement_group(group)

    return call


@row("cluster: another host joins, to its first result *", "ms", own_clock=True, init={"hosts": 1})
def join(_: int) -> Call:
    def call() -> float:
        ref = small_value_elsewhere.remote()
        begun = time.perf_counter()
        nodes.add(3)
        ray.get(ref)
        seconds = time.perf_counter() - begun
        nodes.stop(3)
        wait_for_nodes(1)
        return seconds

    return call


# The rest of the rows, which need what is above.
import recovery_rows  # noqa: E402, F401
