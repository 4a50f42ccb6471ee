"""Rows about what is lost: how long until its work is done all the same.

Part of `cluster_rows`, which has the cluster. Processes are killed, as by a crash; a host whose
cable is pulled says nothing, and is missed only when somebody has waited for long enough.
"""

import importlib
import os
import signal
import tempfile
import time
from collections.abc import Callable
from typing import Any

import cluster_rows as cluster
from hosts import ip
from processes import kill_all
from registry import Call, Skip, row

ray: Any = importlib.import_module(os.environ["BENCH_MODULE"])
strategies: Any = importlib.import_module(f"{ray.__name__}.util.scheduling_strategies")

WAIT_SECONDS = 110
SPARE = 3


def until(condition: Callable[[], Any]) -> Any:
    give_up = time.monotonic() + WAIT_SECONDS
    while not (found := condition()):
        if time.monotonic() > give_up:
            raise TimeoutError("not in time")
        time.sleep(0.001)
    return found


@ray.remote(num_cpus=0, max_retries=-1)
def second_time(path: str) -> int:
    """Waits for its end when it is run first; returns at once when it is run again."""
    if not os.path.exists(path):
        with open(f"{path}.new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(f"{path}.new", path)
        time.sleep(1000)
    return os.getpid()


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Restarted:
    def pid(self) -> int:
        return os.getpid()


def soft_at(number: int) -> Any:
    """Preferably at a host; at any other when it is gone."""
    name = f"host{number}"
    is_it = lambda node: node["Alive"] and name in node["Resources"]  # noqa: E731
    (node,) = until(lambda: [node for node in ray.nodes() if is_it(node)])
    return strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=True)


def lost_task(where: Any, lose: Callable[[int], None]) -> float:
    """A task runs and is lost; how long until it has run again."""
    with tempfile.TemporaryDirectory(dir=cluster.nodes.scratch) as folder:
        path = os.path.join(folder, "begun")
        ref = second_time.options(scheduling_strategy=where).remote(path)
        until(lambda: os.path.exists(path))
        with open(path) as file:
            pid = int(file.read())
        begun = time.perf_counter()
        lose(pid)
        ray.get(ref, timeout=WAIT_SECONDS)
        return time.perf_counter() - begun


@row("cluster: a worker is killed, to its task's result *", "ms", own_clock=True)
def worker_lost(_: int) -> Call:
    return lambda: lost_task(soft_at(2), lambda pid: os.kill(pid, signal.SIGKILL))


@row("cluster: an actor is killed, to its next answer *", "ms", own_clock=True)
def actor_lost(_: int) -> Call:
    actor = Restarted.options(scheduling_strategy=soft_at(2)).remote()

    def call() -> float:
        pid = ray.get(actor.pid.remote(), timeout=WAIT_SECONDS)
        begun = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        assert ray.get(actor.pid.remote(), timeout=WAIT_SECONDS) != pid
        return time.perf_counter() - begun

    return call


@row("cluster: a node is killed, to its task's result *", "ms", own_clock=True)
def node_lost(_: int) -> Call:
    def call() -> float:
        cluster.nodes.add(SPARE)
        token = cluster.nodes.token_of(SPARE)
        seconds = lost_task(soft_at(SPARE), lambda _: kill_all(token))
        cluster.nodes.stop(SPARE)
        cluster.wait_for_nodes(2)
        return seconds

    return call


@row("cluster: a host's cable is pulled, to its task's result *", "ms", own_clock=True)
def host_lost(_: int) -> Call:
    switch, port = f"{cluster.nodes.network}-0", f"port{SPARE}"

    def call() -> float:
        cluster.nodes.add(SPARE)
        pull = lambda _: ip("-n", switch, "link", "set", port, "down")  # noqa: E731
        try:
            return lost_task(soft_at(SPARE), pull)
        finally:
            ip("-n", switch, "link", "set", port, "up")
            cluster.nodes.stop(SPARE)
            cluster.wait_for_nodes(2)

    return call


@row("cluster: the control service is killed, to the next named actor *", "ms", own_clock=True)
def control_lost(_: int) -> Call:
    if ray.__name__ != "oxiray":
        raise Skip("its control service comes back only with a Redis")
    numbers = iter(range(10**6))

    def call() -> float:
        pid = cluster.nodes.control_pid()
        begun = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{pid}"))
        cluster.nodes.start_again(1)
        actor = Restarted.options(name=f"after-{next(numbers)}").remote()
        ray.get(actor.pid.remote(), timeout=WAIT_SECONDS)
        return time.perf_counter() - begun

    return call
