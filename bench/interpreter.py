"""A child interpreter that is talked to by lines, and that may hang or crash without harm."""

import os
import select
import signal
import subprocess
import time
import types
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from processes import TOKEN_VARIABLE, kill_all, members

HERE = Path(__file__).parent
RESULTS = HERE / "results"

# Those of the sides that are not called as theirs.
MODULES = {"pool": "multiprocessing", "memcpy": "mmap"}

# Would connect the side to a cluster that happens to run, or have it do other work than asked.
NOT_INHERITED = ("RAY_ADDRESS", "OXIRAY_ADDRESS")
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class Lost(Exception):
    """The interpreter hung or crashed; its text says which."""


def environment(side: str, token: str) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if key not in NOT_INHERITED}
    # Ours must not shadow the real Ray with the alias package, whose name is `ray` too.
    search_path = "" if side == "ray" else inherited.get("PYTHONPATH", "")
    return {
        **inherited,
        **QUIET,
        # Workers import the rows by name.
        "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), search_path])),
        "BENCH_MODULE": MODULES.get(side, side),
        TOKEN_VARIABLE: token,
    }


class Interpreter:
    def __init__(
        self,
        side: str,
        python: str,
        script: str,
        *arguments: str,
        prefix: Sequence[str] = (),
        more: Mapping[str, str] = types.MappingProxyType({}),
    ) -> None:
        """`prefix` is what its command begins with, `more` what its environment has besides."""
        self.token = uuid.uuid4().hex
        self.heard = b""
        RESULTS.mkdir(exist_ok=True)
        self.log = RESULTS / f"{side}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*prefix, python, str(HERE / script), *arguments],
                env={**environment(side, self.token), **more},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def tell(self, line: str) -> None:
        assert self.process.stdin
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            # It has ended; `listen` will say how.
            return

    def listen(self, at_most_seconds: float) -> str:
        """The next line it says. Where none comes, ends the side and raises `Lost`."""
        assert self.process.stdout
        stdout = self.process.stdout.fileno()
        give_up = time.monotonic() + at_most_seconds
        while b"\n" not in self.heard:
            if time.monotonic() > give_up:
                kill_all(self.token)
                raise Lost(f"hung: killed after {at_most_seconds:.0f} s")
            ready, _, _ = select.select([stdout], [], [], 0.1)
            chunk = os.read(stdout, 65536) if ready else b""
            self.heard += chunk
            # The pipe's end does not tell: a process forked off may hold it open.
            if not chunk and self.process.poll() is not None:
                kill_all(self.token)
                raise Lost(f"crashed: {self.how_it_ended()}")
        line, _, self.heard = self.heard.partition(b"\n")
        return line.decode()

    def end(self) -> None:
        """Lets it end by itself, and then makes sure that nothing of it stays."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            kill_all(self.token)
        give_up = time.monotonic() + 5
        while members(self.token) and time.monotonic() < give_up:
            time.sleep(0.1)
        kill_all(self.token)
        self.process.wait()
        self.process.stdout.close()

    def how_it_ended(self) -> str:
        """The signal, or else the last thing it complained of."""
        if self.process.returncode < 0:
            return signal.Signals(-self.process.returncode).name
        complaints = self.log.read_text(errors="replace").split("\n")
        last = next((line for line in reversed(complaints) if line.strip()), "")
        return last or f"exit code {self.process.returncode}"
