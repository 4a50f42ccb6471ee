"""A cluster of several nodes on one machine, for tests: each node is a process as on any machine.

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    other = cluster.add_node(num_cpus=1, resources={"tool": 1})
    cluster.connect()
    ...
    cluster.remove_node(other)
    cluster.shutdown()

All of it ends with the program, however that ends: the services end when their standard input, a
pipe from this process, does.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from typing import Any, NamedTuple

from . import _native
from ._address import StartedNode

_IP = "127.0.0.1"
_OBJECT_STORE = 150 * 1024 * 1024
_GRACE_S = 10.0
# Ray has no clusters of several nodes on some systems, and its users' tests ask.
cluster_not_supported = False
# Options of `oxiray start`, by the names that Ray's nodes have.
_FLAGS = ("num_cpus", "num_gpus", "memory", "object_store_memory")


class Node:
    """A node of a `Cluster`."""

    def __init__(self, said: dict[str, str], pipe: int) -> None:
        started = _node(said)
        self._services = _Services(said["node_pid"], said["control_pid"])
        self._node_address = started.node_address
        self._pipes = [pipe]
        self.address = started.address
        self.node_id = self.unique_id = started.node_id
        self.head = started.is_head
        self.session_dir = started.session_dir
        ip, _, port = started.node_address.rpartition(":")
        self.node_ip_address = self.raylet_ip_address = ip
        self.node_manager_port = int(port)

    @property
    def pid(self) -> int:
        """Of the node service."""
        return int(self._services.node.partition(" ")[0])

    @property
    def control_pid(self) -> int | None:
        """Of the control service, if this is the head."""
        pid = self._services.control.partition(" ")[0]
        return int(pid) if pid else None

    def is_alive(self) -> bool:
        return _is_alive(self._services.node)

    def kill_gcs_server(self, check_alive: bool = True) -> None:
        """Kills the control service, and nothing else."""
        _end(self._services.control, graceful=False)

    def start_gcs_server(self) -> None:
        """Starts the control service again, with the state it had."""
        port = self.address.rpartition(":")[2]
        reader, writer = os.pipe()
        self._pipes.append(writer)
        said = _run(["--head", "--port", port], reader, {})
        self._services = _Services(said["node_pid"], said["control_pid"])

    def _end(self, graceful: bool) -> None:
        _end(self._services.node, graceful)
        _end(self._services.control, graceful)
        while self._pipes:
            os.close(self._pipes.pop())
        _native.forget_node(os.path.basename(self.session_dir))

    def __repr__(self) -> str:
        return f"Node({self.node_id[:12]}, {self._node_address})"


class Cluster:
    """Several nodes on this machine."""

    def __init__(
        self,
        initialize_head: bool = False,
        connect: bool = False,
        head_node_args: dict[str, Any] | None = None,
        shutdown_at_exit: bool = True,
    ) -> None:
        self.head_node: Node | None = None
        self.worker_nodes: list[Node] = []
        self.connected = False
        # Of the directory with its keyring and its state.
        self._name = f"test-{os.getpid()}-{secrets.token_hex(4)}"
        if not initialize_head and connect:
            raise RuntimeError("Cannot connect to uninitialized cluster.")
        if shutdown_at_exit:
            atexit.register(self.shutdown)
        if initialize_head:
            self.add_node(**(head_node_args or {}))
            if connect:
                self.connect()

    @property
    def address(self) -> str:
        """Of the control service."""
        if self.head_node is None:
            raise RuntimeError("The cluster has no node yet: add_node() starts its head")
        return self.head_node.address

    gcs_address = address

    def list_all_nodes(self) -> list[Node]:
        """The head first."""
        return [*([self.head_node] if self.head_node else []), *self.worker_nodes]

    def add_node(self, wait: bool = True, **node_args: Any) -> Node:
        """Starts a node; the first one is the head.

        Args:
            wait: whether a connected driver is to know the node before this returns.
            num_cpus, num_gpus, memory, resources, labels, object_store_memory: what the node has;
                one CPU and 150 MB for objects unless given.
            include_dashboard, dashboard_host, dashboard_port: of the head, which has a dashboard
                only if one of these asks for it.
            _system_config: of the head: settings by Ray's names, as `health_check_period_ms`.
            env_vars: environment of the node and its workers.
            others of Ray's: accepted, without effect.
        """
        arguments = ["--node-ip-address", _IP, "--allow-many"]
        arguments += ["--cluster-name", self._name]
        if self.head_node is None:
            arguments += ["--head", "--port", str(node_args.get("port") or 0)]
            arguments += [f"--include-dashboard={_dashboard(node_args)}".lower()]
            for name in ("dashboard_host", "dashboard_port"):
                if node_args.get(name) is not None:
                    arguments += [f"--{name.replace('_', '-')}", str(node_args[name])]
            if node_args.get("_system_config"):
                arguments += ["--system-config", json.dumps(node_args["_system_config"])]
        else:
            arguments += ["--address", self.address]
        sizes = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": _OBJECT_STORE, **node_args}
        for name in _FLAGS:
            if sizes.get(name) is not None:
                arguments += [f"--{name.replace('_', '-')}", str(int(sizes[name]))]
        if node_args.get("resources"):
            arguments += ["--resources", json.dumps(node_args["resources"])]
        if node_args.get("labels"):
            pairs = node_args["labels"].items()
            arguments += ["--labels", ",".join(f"{key}={value}" for key, value in pairs)]
        reader, writer = os.pipe()
        try:
            said = _run(arguments, reader, node_args.get("env_vars") or {})
        except BaseException:
            os.close(writer)
            raise
        node = Node(said, writer)
        if self.head_node is None:
            self.head_node = node
        else:
            self.worker_nodes.append(node)
        if wait:
            self.wait_for_nodes()
        return node

    def remove_node(self, node: Node, allow_graceful: bool = True) -> None:
        """Ends a node: it is asked to leave or, without `allow_graceful`, killed."""
        if node not in self.list_all_nodes():
            raise ValueError(f"{node!r} is not a node of this cluster")
        if self._driver_is_at([node]):
            raise ValueError(
                "Removing a node that is connected to this Ray client is not allowed because it "
                "will break the driver. Call shutdown() before, or remove another node."
            )
        node._end(allow_graceful)
        if node is self.head_node:
            self.head_node = None
        else:
            self.worker_nodes.remove(node)

    def wait_for_nodes(self, timeout: float = 30) -> None:
        """Waits until the driver, if it is connected, sees the nodes of the cluster and no other.

        Raises:
            TimeoutError: It took longer.
        """
        if not self._driver_is_at(self.list_all_nodes()):
            return
        from ._cluster import nodes

        expected = {node.node_id for node in self.list_all_nodes()}
        deadline = time.monotonic() + timeout
        while {node["NodeID"] for node in nodes() if node["Alive"]} != expected:
            if time.monotonic() > deadline:
                raise TimeoutError("Timed out while waiting for nodes to join.")
            time.sleep(0.01)

    def connect(self, namespace: str | None = None) -> None:
        """Connects this program to the cluster, at its head."""
        from ._session import init

        init(address=self.address, namespace=namespace, ignore_reinit_error=True)
        self.connected = True
        self.wait_for_nodes()

    def shutdown(self) -> None:
        """Ends all nodes, and this program's session with them. Can be called again."""
        nodes = self.list_all_nodes()
        if self._driver_is_at(nodes):
            from ._session import shutdown

            shutdown()
        self.connected = False
        for node in reversed(nodes):
            _ask_to_end(node._services.node)
        for node in reversed(nodes):
            node._end(graceful=True)
        self.worker_nodes, self.head_node = [], None
        _native.forget_cluster(self._name)

    def _driver_is_at(self, nodes: list[Node]) -> bool:
        from . import _native

        if not _native.is_running():
            return False
        node_id = _native.context()["node_id"].hex()
        return any(node.node_id == node_id for node in nodes)


def _dashboard(node_args: dict[str, Any]) -> bool:
    asked = any(node_args.get(name) is not None for name in ("dashboard_host", "dashboard_port"))
    return bool(node_args.get("include_dashboard", asked))


def _run(arguments: list[str], reader: int, env_vars: dict[str, str]) -> dict[str, str]:
    """Runs `oxiray start`, and returns what it says of the node; the services get `reader` as their
    standard input."""
    package = os.path.dirname(os.path.abspath(__file__))
    command = [f"{package}/_bin/oxiray", "start", "--end-with-stdin", *arguments]
    environment = {
        **os.environ,
        **env_vars,
        "OXIRAY_PYTHON": sys.executable,
        "OXIRAY_PYTHON_VERSION": f"{sys.version_info[0]}.{sys.version_info[1]}",
    }
    try:
        done = subprocess.run(
            command, stdin=reader, capture_output=True, text=True, env=environment
        )
    finally:
        os.close(reader)
    if done.returncode != 0:
        raise RuntimeError(f"The node could not be started: {done.stderr.strip()}")
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


class _Services(NamedTuple):
    """Processes that this program started: number and start of each, as they said."""

    node: str
    control: str  # empty: it is not the head


def _node(said: dict[str, str]) -> StartedNode:
    return StartedNode(
        said["address"],
        said["node_address"],
        said["node_id"],
        said["session_dir"],
        bool(said["is_head"]),
    )


def _is_alive(process: str) -> bool:
    """Whether the process, written as number and start, is still there."""
    pid, _, since = process.partition(" ")
    try:
        with open(f"/proc/{int(pid)}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return False
    return fields[0] not in ("Z", "X") and fields[19] == since


def _ask_to_end(process: str) -> None:
    if _is_alive(process):
        try:
            os.kill(int(process.partition(" ")[0]), signal.SIGTERM)
        except ProcessLookupError:
            pass


def _end(process: str, graceful: bool) -> None:
    """Ends a process, and returns when it has."""
    if not _is_alive(process):
        return
    try:
        descriptor = os.pidfd_open(int(process.partition(" ")[0]))
    except ProcessLookupError:
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if graceful:
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
            if poll.poll(_GRACE_S * 1000):
                return
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        poll.poll(_GRACE_S * 1000)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)
