"""Which processes belong to a side, and what they cost: memory of their own, CPU time.

A side's interpreter is started with a token in its environment. Servers that it starts inherit
the token even when they are re-parented; processes that overwrite their environment to change
their title are found as children of those.
"""

import os
import signal
import time
from pathlib import Path

TOKEN_VARIABLE = "OXIRAY_BENCH_TOKEN"

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
# More than Ray's servers use when nothing happens, less than anything that happens.
IDLE_SHARE_OF_A_CORE = 0.15


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the command's name, which may itself contain anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def members(token: str) -> set[int]:
    """The living processes that carry the token, and all their descendants."""
    marker = f"{TOKEN_VARIABLE}={token}".encode()
    parents: dict[int, int] = {}
    found: set[int] = set()
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        fields = stat_fields(pid)
        if not fields or fields[0] in "ZX":
            continue
        parents[pid] = int(fields[1])
        try:
            if marker in Path(f"/proc/{pid}/environ").read_bytes():
                found.add(pid)
        except OSError:
            continue
    while children := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= children
    return found


def memory_bytes(pids: set[int], kinds: str) -> int:
    """The sum over all processes of the lines of smaps_rollup that begin so.

    `Private_` gives the unique set size, USS: pages that one process alone has mapped. It counts
    a page that forked siblings share for none of them; `Pss:` counts it once for all of them,
    but also their share of libraries that the rest of the machine uses.
    """
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith(kinds))
    return total * 1024


def cpu_seconds(pids: set[int]) -> float:
    ticks = 0
    for pid in pids:
        fields = stat_fields(pid)
        if fields:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / CLOCK_TICKS


def wait_until_idle(tokens: list[str], at_most_seconds: float) -> None:
    """Waits for what earlier work left running (ending actors, starting workers) to be over."""
    interval = 0.2
    give_up = time.monotonic() + at_most_seconds
    while time.monotonic() < give_up:
        pids = set().union(*(members(token) for token in tokens))
        before = cpu_seconds(pids)
        time.sleep(interval)
        if cpu_seconds(pids) - before <= interval * IDLE_SHARE_OF_A_CORE:
            return


def kill_all(token: str) -> None:
    """Ends every process of a side, those started meanwhile included."""
    give_up = time.monotonic() + 10
    while (pids := members(token)) and time.monotonic() < give_up:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
