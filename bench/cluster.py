"""Where the rows about several hosts are done."""

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hosts import Network, at
from side import Place
from wire_rows import wire_program

# Clusters are started for some rows, and Ray's take their time.
PATIENCE_SECONDS = 120

WIRES = ("tls", "tcp")


@contextmanager
def cluster_places(engines: list[str], pattern: str) -> Iterator[dict[str, Place]]:
    """The hosts are there for as long as this is; raises `NoHosts` if they cannot be had."""
    with Network() as network, tempfile.TemporaryDirectory(prefix="oxb-", dir="/tmp") as scratch:
        told = {"BENCH_NETWORK": network.name}
        rows = dict.fromkeys(engines, "cluster_rows")
        try:
            told["BENCH_WIRE"] = wire_program()
            rows.update(dict.fromkeys(WIRES, "wire_rows"))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"raw TCP and TLS are left out: {error}", file=sys.stderr)
        places = {}
        for side, module in rows.items():
            # Sockets are in it, whose paths must be short.
            own = Path(scratch, side)
            own.mkdir()
            more = {**told, "BENCH_SCRATCH": str(own)}
            if side == "ray":
                # Its clusters have a token unless told otherwise; this one's is of this run.
                more |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
            prefix = at(network.name, 1)
            places[side] = Place(module, pattern, prefix, more, PATIENCE_SECONDS)
        yield places
