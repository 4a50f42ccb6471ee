"""How a row is measured: warm up, then several windows; the median, and how far they spread."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Plan:
    """How long to measure for. A call longer than a window makes a window of its own."""

    warm_up_seconds: float
    window_seconds: float
    windows: int
    # No further window is opened after this long, so that slow calls do not take all day.
    budget_seconds: float
    # A row that takes longer than this, setting up included, counts as hung.
    row_timeout_seconds: float
    startup_runs: int


PLANS = {
    "full": Plan(1.0, 1.0, 4, 20.0, 180.0, 3),
    "quick": Plan(0.3, 0.3, 3, 3.0, 45.0, 2),
}


@dataclass(frozen=True)
class Measurement:
    value: float
    lowest: float
    highest: float
    windows: int
    calls: int

    def milliseconds(self) -> "Measurement":
        """How long a call took, instead of how many there were in a second."""
        return replace(
            self,
            value=1000 / self.value,
            lowest=1000 / self.highest,
            highest=1000 / self.lowest,
        )


def measure(
    call: Callable[[], Any],
    worth: float,
    least_warm_up_calls: int,
    plan: Plan,
    own_clock: bool = False,
) -> Measurement:
    """Times `call`, each counting for `worth`. With a clock of its own, it returns seconds."""
    for _ in range(least_warm_up_calls - 1):
        call()
    calls_for = call_for_own_seconds if own_clock else call_for
    warm_up_calls, warm_up_seconds = calls_for(call, plan.warm_up_seconds, 1)
    # Looking at the clock a few dozen times a window keeps it out of the result of short calls.
    calls_between_looks = 1 + int(warm_up_calls * plan.window_seconds / warm_up_seconds / 30)
    rates: list[float] = []
    total_calls = 0
    opened = time.perf_counter()
    for _ in range(plan.windows):
        calls, seconds = calls_for(call, plan.window_seconds, calls_between_looks)
        rates.append(worth * calls / seconds)
        total_calls += calls
        if time.perf_counter() - opened > plan.budget_seconds:
            break
    return Measurement(statistics.median(rates), min(rates), max(rates), len(rates), total_calls)


def call_for(
    call: Callable[[], object], seconds: float, calls_between_looks: int
) -> tuple[int, float]:
    """Calls until `seconds` have passed, once at least; how often that was, and how long."""
    calls = 0
    begun = time.perf_counter()
    while True:
        for _ in range(calls_between_looks):
            call()
        calls += calls_between_looks
        elapsed = time.perf_counter() - begun
        if elapsed >= seconds:
            return calls, elapsed


def call_for_own_seconds(
    call: Callable[[], float], seconds: float, calls_between_looks: int
) -> tuple[int, float]:
    """Calls until `seconds` have passed by the calls' own clock, or ten times that by any other."""
    calls, counted = 0, 0.0
    give_up = time.perf_counter() + 10 * seconds
    while True:
        counted += sum(call() for _ in range(calls_between_looks))
        calls += calls_between_looks
        if counted >= seconds or time.perf_counter() > give_up:
            return calls, counted
