"""Compares oxiray with Ray from PyPI and with multiprocessing.Pool, in one run: `run.py --help`."""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from typing import Any

from interpreter import RESULTS
from processes import wait_until_idle
from ray_venv import ray_python
from report import PEERS, Line, Outcome, document, save
from side import Answer, Side
from startup import start_in_turn, summary
from timing import PLANS

SETTLE_SECONDS = 2.0

STARTUP_LINES = {
    "start to first result": ("s", "first_result_seconds"),
    "idle memory, USS, driver included": ("MB", "idle_uss_megabytes"),
    "idle memory, PSS, driver included *": ("MB", "idle_pss_megabytes"),
    "idle processes, driver included": ("processes", "processes"),
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter windows: under 4 minutes")
    parser.add_argument("--rows", default="", metavar="PATTERN", help="only rows it is found in")
    parser.add_argument("--sides", default="oxiray,ray,pool", help="of oxiray, ray, pool")
    parser.add_argument("--no-ray", action="store_true", help="leave Ray out")
    return parser.parse_args()


def interpreters(wanted: argparse.Namespace) -> dict[str, str]:
    """Which interpreter each side runs on."""
    sides = [side for side in ("oxiray", "ray", "pool") if side in wanted.sides.split(",")]
    pythons = {side: sys.executable for side in sides}
    if "ray" in pythons and wanted.no_ray:
        del pythons["ray"]
    if "ray" in pythons:
        try:
            pythons["ray"] = ray_python()
        except (OSError, subprocess.CalledProcessError) as error:
            progress(f"Ray is left out: {error}")
            del pythons["ray"]
    return pythons


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def startup_lines(pythons: dict[str, str], runs: int, pattern: str) -> list[Line]:
    names = [name for name in STARTUP_LINES if re.search(pattern, name, re.IGNORECASE)]
    if not names:
        return []
    progress(f"starting each side {runs} times")
    starts = start_in_turn(pythons, runs)
    lines = []
    for name in names:
        unit, field = STARTUP_LINES[name]
        line = Line(name, unit, lower_is_better=True)
        for side, found in starts.items():
            line.outcomes[side] = (
                Outcome(reason=found) if isinstance(found, str) else Outcome(*summary(found, field))
            )
        lines.append(line)
    return lines


def row_lines(sides: list[Side], pattern: str) -> list[Line]:
    """Every row on every side before the next row, so that noise of the machine hits all alike."""
    # The order is that of the side that has most rows; the others have some of the same.
    names = max((side.rows for side in sides), key=len, default=[])
    names = [name for name in names if re.search(pattern, name, re.IGNORECASE)]
    lines = []
    for index, name in enumerate(names):
        line = Line(name, "")
        # Nobody always goes first.
        for side in sides if index % 2 else reversed(sides):
            if name in side.rows or (side.broken and side.name not in PEERS):
                settle(sides)
                add_answer(line, side.name, side.measure(name))
        said = ", ".join(f"{side} {outcome.text()}" for side, outcome in line.outcomes.items())
        progress(f"[{index + 1}/{len(names)}] {name} {line.unit}: {said}")
        lines.append(line)
    return lines


def settle(sides: list[Side]) -> None:
    tokens = [side.interpreter.token for side in sides if side.interpreter]
    wait_until_idle(tokens, SETTLE_SECONDS)


def add_answer(line: Line, side: str, answer: Answer) -> None:
    line.unit = answer.get("unit", line.unit)
    if "reason" in answer:
        line.outcomes[side] = Outcome(reason=answer["reason"])
        return
    line.reduced = line.reduced or answer["items"] < answer["full_items"]
    line.outcomes[side] = Outcome(
        answer["per_second"], answer["lowest"], answer["highest"], answer["windows"]
    )


def facts(sides: list[Side], began: float, quick: bool) -> dict[str, Any]:
    """What a reader needs to know of where and how the numbers were made."""
    versions = {side.name: side.version for side in sides if side.version}
    return {
        **versions,
        "Python": platform.python_version(),
        "CPUs": os.cpu_count(),
        "load": f"{os.getloadavg()[1]:.1f}",
        "on": time.strftime("%Y-%m-%d"),
        "took": f"{time.monotonic() - began:.0f} s" + (" (quick)" if quick else ""),
    }


def main() -> None:
    wanted = options()
    plan_name = "quick" if wanted.quick else "full"
    pythons = interpreters(wanted)
    began = time.monotonic()
    for log in RESULTS.glob("*.log"):
        log.unlink()
    lines = startup_lines(pythons, PLANS[plan_name].startup_runs, wanted.rows)
    if set(pythons) & {"oxiray", "ray"}:
        pythons["memcpy"] = pythons.get("ray", sys.executable)
    sides: list[Side] = []
    try:
        for name, python in pythons.items():
            progress(f"starting {name}")
            sides.append(Side(name, python, plan_name))
            sides[-1].start()
        lines += row_lines(sides, wanted.rows)
    finally:
        for side in sides:
            side.stop()
    shown: list[str] = [name for name in ("oxiray", "ray") if name in pythons]
    known = facts(sides, began, wanted.quick)
    save(lines, shown, known, RESULTS)
    print(document(lines, shown, known))


if __name__ == "__main__":
    main()
