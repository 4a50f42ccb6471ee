"""How long from a process's start to its first result, and what an idle cluster then costs."""

import statistics
import time
from dataclasses import dataclass

from first_result import ALL_WORKERS_STARTED, FIRST_RESULT
from interpreter import Interpreter, Lost
from processes import members, memory_bytes, wait_until_idle

TIMEOUT_SECONDS = 90
SETTLE_SECONDS = 3


@dataclass(frozen=True)
class Start:
    first_result_seconds: float
    idle_uss_megabytes: float
    idle_pss_megabytes: float
    processes: int


def start_once(side: str, python: str) -> Start:
    """One start, from the outside: the clock runs from before the process exists."""
    begun = time.perf_counter()
    interpreter = Interpreter(side, python, "first_result.py")
    try:
        wait_for(interpreter, FIRST_RESULT)
        seconds = time.perf_counter() - begun
        wait_for(interpreter, ALL_WORKERS_STARTED)
        wait_until_idle([interpreter.token], SETTLE_SECONDS)
        pids = members(interpreter.token)
        uss, pss = memory_bytes(pids, "Private_"), memory_bytes(pids, "Pss:")
        return Start(seconds, uss / 1e6, pss / 1e6, len(pids))
    finally:
        interpreter.end()


def wait_for(interpreter: Interpreter, expected: str) -> None:
    while interpreter.listen(TIMEOUT_SECONDS) != expected:
        pass


def start_in_turn(pythons: dict[str, str], runs: int) -> dict[str, list[Start] | str]:
    """Several starts of every side, in turn so that noise hits all alike; or why there are none."""
    starts: dict[str, list[Start] | str] = {side: [] for side in pythons}
    for _ in range(runs):
        for side, python in pythons.items():
            so_far = starts[side]
            if isinstance(so_far, str):
                continue
            try:
                so_far.append(start_once(side, python))
            except Lost as lost:
                starts[side] = str(lost)
    return starts


def summary(starts: list[Start], field: str) -> tuple[float, float, float, int]:
    """Median, lowest and highest of one field, and of how many."""
    values = [getattr(start, field) for start in starts]
    return statistics.median(values), min(values), max(values), len(values)
