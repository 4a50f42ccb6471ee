"""Compares oxiray with Ray from PyPI and with multiprocessing.Pool, in one run: `run.py --help`."""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from typing import Any

from cluster import cluster_places
from hosts import NoHosts
from interpreter import RESULTS
from processes import wait_until_idle
from ray_venv import ray_python
from report import PEERS, Line, Outcome, document, save
from side import Answer, Place, Side
from startup import start_in_turn, summary
from timing import PLANS

SETTLE_SECONDS = 2.0

ROW_MODULES = {"oxiray": "rows", "ray": "rows", "pool": "pool_rows", "memcpy": "memcpy_rows"}

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


def measured(
    places: dict[str, Place], pythons: dict[str, str], plan_name: str, versions: dict[str, str]
) -> list[Line]:
    """The lines of rows that some sides do, all of them alive meanwhile."""
    sides: list[Side] = []
    try:
        for name, place in places.items():
            progress(f"starting {name} ({place.rows})")
            sides.append(Side(name, pythons.get(name, sys.executable), plan_name, place))
            sides[-1].start()
        return row_lines(sides)
    finally:
        versions.update({side.name: side.version for side in sides if side.version})
        for side in sides:
            side.stop()


def cluster_lines(
    pythons: dict[str, str], plan_name: str, pattern: str, versions: dict[str, str]
) -> list[Line]:
    """The lines of rows about several hosts, if there can be any."""
    engines: list[str] = [side for side in ("oxiray", "ray") if side in pythons]
    if not engines:
        return []
    try:
        with cluster_places(engines, pattern) as places:
            return measured(places, pythons, plan_name, versions)
    except NoHosts as reason:
        progress(f"rows about clusters are SKIPPED: {reason}")
        skipped = Outcome(reason=f"skipped: {reason}")
        return [Line("cluster: all rows *", "", outcomes=dict.fromkeys(engines, skipped))]


def row_lines(sides: list[Side]) -> list[Line]:
    """Every row on every side before the next row, so that noise of the machine hits all alike."""
    # The order is that of the side that has most rows; the others have some of the same.
    names = max((side.rows for side in sides), key=len, default=[])
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
    line.lower_is_better = answer.get("lower_is_better", line.lower_is_better)
    if "reason" in answer:
        line.outcomes[side] = Outcome(reason=answer["reason"])
        return
    line.reduced = line.reduced or answer["items"] < answer["full_items"]
    line.outcomes[side] = Outcome(
        answer["value"], answer["lowest"], answer["highest"], answer["windows"]
    )


def facts(versions: dict[str, str], began: float, quick: bool) -> dict[str, Any]:
    """What a reader needs to know of where and how the numbers were made."""
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
    shown: list[str] = [name for name in ("oxiray", "ray") if name in pythons]
    if shown:
        pythons["memcpy"] = pythons.get("ray", sys.executable)
    versions: dict[str, str] = {}
    places = {side: Place(ROW_MODULES[side], wanted.rows) for side in pythons}
    lines += measured(places, pythons, plan_name, versions)
    lines += cluster_lines(pythons, plan_name, wanted.rows, versions)
    known = facts(versions, began, wanted.quick)
    save(lines, shown, known, RESULTS)
    print(document(lines, shown, known))


if __name__ == "__main__":
    main()
