"""The limit for transfers between hosts: sockets alone, or sockets and TLS, by the same crate.

`BENCH_MODULE` says which of `tcp` and `tls`; there are as many connections as the engine has.
"""

import os
import subprocess
from pathlib import Path

from hosts import address, at
from registry import Call, row

CONNECTIONS = 4
MEGABYTE = 1_000_000

ROOT = Path(__file__).parent.parent
EXAMPLE = ["cargo", "build", "--quiet", "--release", "-p", "oxiray-net", "--example", "wire"]

running: list[subprocess.Popen[str]] = []


def wire_program() -> str:
    """The program's path; builds it."""
    if chosen := os.environ.get("OXIRAY_BENCH_WIRE"):
        return chosen
    subprocess.run(EXAMPLE, cwd=ROOT, check=True)
    return str(ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/examples/wire")


def run(prefix: list[str], *arguments: str) -> subprocess.Popen[str]:
    command = [*prefix, os.environ["BENCH_WIRE"], *arguments]
    pipe = subprocess.PIPE
    running.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1))
    return running[-1]


def start() -> None:
    there = at(os.environ["BENCH_NETWORK"], 2)
    server = run(there, "serve", f"{address(2)}:0", os.environ["BENCH_MODULE"])
    assert server.stdout
    run([], "fetch", *server.stdout.readline().split(), str(CONNECTIONS))


def stop() -> None:
    for process in running:
        process.kill()
        process.wait()
    running.clear()


def fetch(megabytes: int) -> Call:
    client = running[-1]

    def call() -> None:
        assert client.stdin and client.stdout
        client.stdin.write(f"{megabytes * MEGABYTE}\n")
        if not client.stdout.readline():
            raise RuntimeError("the program has ended, see the log")

    return call


@row("cluster: transfer of 512 MB *", "GB/s", weight=0.512)
def large(_: int) -> Call:
    return fetch(512)


@row("cluster: transfer of 32 MB *", "GB/s", weight=0.032)
def medium(_: int) -> Call:
    return fetch(32)


@row("cluster: transfer of 1 MB *", "GB/s", weight=0.001)
def small(_: int) -> Call:
    return fetch(1)
