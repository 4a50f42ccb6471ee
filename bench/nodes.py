"""Nodes of a side's cluster, one on each host, by the commands with which people start them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hosts import address, at
from processes import TOKEN_VARIABLE, kill_all

CPUS = 2
START_SECONDS = 60
STORE_BYTES = 1_600_000_000
# Those that only receive what is broadcast need less.
SMALL_STORE_BYTES = 800_000_000

Environment = dict[str, str]


class Nodes:
    """The nodes of one cluster: the head, at the first host, where the driver is, and others."""

    # Of the head. The engines share the hosts.
    port: int

    def __init__(self) -> None:
        self.network = os.environ["BENCH_NETWORK"]
        # Made by the run, which removes it.
        self.scratch = os.environ["BENCH_SCRATCH"]
        self.token = os.environ[TOKEN_VARIABLE]
        self.running: list[int] = []

    def start(self, count: int) -> None:
        # One after the other: with few processors, Ray gives up if many start at once.
        for number in range(1, count + 1):
            self.add(number)

    def add(self, number: int) -> None:
        self.running.append(number)
        self.start_again(number)

    def start_again(self, number: int) -> None:
        """Whatever of a host's does not run."""
        done = subprocess.run(
            [*at(self.network, number), *self.command(number)],
            env=self.environment(number),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            timeout=START_SECONDS,
        )
        if done.returncode:
            raise RuntimeError("a node could not be started, see the log")

    def stop(self, number: int) -> None:
        # A part of its token tells a node's processes from others; `ray stop` ends everybody's.
        kill_all(self.token_of(number))
        shutil.rmtree(self.base(number), ignore_errors=True)
        self.running.remove(number)

    def stop_all(self) -> None:
        for number in reversed(self.running.copy()):
            self.stop(number)

    def base(self, number: int) -> str:
        return f"{self.scratch}/{number}"

    def token_of(self, number: int) -> str:
        return f"{self.token}.{number}"

    def environment(self, number: int) -> Environment:
        os.makedirs(self.base(number), mode=0o700, exist_ok=True)
        return {**os.environ, **self.settings(number), TOKEN_VARIABLE: self.token_of(number)}

    def options(self, number: int) -> list[str]:
        """What both engines' commands call the same."""
        head = ["--head", f"--port={self.port}"]
        return [
            *(head if number == 1 else [f"--address={address(1)}:{self.port}"]),
            f"--node-ip-address={address(number)}",
            f"--num-cpus={CPUS}",
            f"--object-store-memory={STORE_BYTES if number <= 2 else SMALL_STORE_BYTES}",
            f"--resources={json.dumps({f'host{number}': 1000})}",
        ]

    def settings(self, number: int) -> Environment:
        raise NotImplementedError

    def command(self, number: int) -> list[str]:
        raise NotImplementedError

    def connection(self) -> dict[str, Any]:
        """What the driver gives to `init`."""
        raise NotImplementedError


class OxirayNodes(Nodes):
    port = 6398

    def __init__(self, package: str) -> None:
        super().__init__()
        self.program = f"{os.path.dirname(package)}/_bin/oxiray"
        os.environ["OXIRAY_TMPDIR"] = self.base(1)

    def settings(self, number: int) -> Environment:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        told = {
            "OXIRAY_TMPDIR": self.base(number),
            "OXIRAY_PYTHON": sys.executable,
            "OXIRAY_PYTHON_VERSION": version,
        }
        if number > 1:
            command = [self.program, "token"]
            asked = subprocess.run(command, check=True, capture_output=True, text=True)
            told["OXIRAY_TOKEN"] = asked.stdout.strip()
        return told

    def command(self, number: int) -> list[str]:
        return [self.program, "start", *self.options(number)]

    def stop(self, number: int) -> None:
        command = [*at(self.network, number), self.program, "stop"]
        environment = {**os.environ, "OXIRAY_TMPDIR": self.base(number)}
        # What it leaves is killed.
        subprocess.run(command, env=environment, stdout=sys.stderr, timeout=START_SECONDS)
        super().stop(number)

    def connection(self) -> dict[str, Any]:
        return {"address": "auto"}

    def control_pid(self) -> int:
        (record,) = Path(self.base(1), "started").iterdir()
        fields = dict(line.split("=", 1) for line in record.read_text().splitlines())
        return int(fields["control_pid"].split()[0])


class RayNodes(Nodes):
    port = 6399

    def settings(self, number: int) -> Environment:
        # Half of it is too little for a machine that is busy.
        return {"RAY_raylet_start_wait_time_s": str(START_SECONDS)}

    def command(self, number: int) -> list[str]:
        program = os.path.join(os.path.dirname(sys.executable), "ray")
        quiet = ["--include-dashboard=false"] if number == 1 else []
        where = f"--temp-dir={self.base(number)}"
        return [program, "start", *self.options(number), where, "--disable-usage-stats", *quiet]

    def connection(self) -> dict[str, Any]:
        return {"address": f"{address(1)}:{self.port}", "_node_ip_address": address(1)}
