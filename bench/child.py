"""One side's interpreter: does the rows it is asked for, answering each with a line of JSON.

Asked by lines on stdin (a row's name), ends when stdin does. The first line it says, unasked,
is whether the side is up and which rows it has, of those in whose names a pattern is found.
"""

import gc
import importlib
import json
import os
import re
import sys
from dataclasses import asdict
from typing import Any, TextIO

from registry import ROWS, Row, Skip
from timing import PLANS, Plan, measure

NOT_YET = (NotImplementedError, AttributeError, ImportError)


def reason(error: BaseException) -> str:
    """One line that says why a row has no number."""
    if isinstance(error, Skip):
        return f"skipped: {error}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # A remote error's text is a traceback, whose last line is the error itself.
    text = lines[-1] if lines else ""
    if isinstance(error, NOT_YET):
        return f"not yet: {text}"
    return f"failed: {type(error).__name__}: {text}"


class Cluster:
    """The side's running cluster, restarted only for a row that wants other arguments."""

    def __init__(self, rows: str) -> None:
        self.module = importlib.import_module(rows)
        self.version = getattr(getattr(self.module, "ray", None), "__version__", "")
        self.arguments: dict[str, Any] | None = None

    def ensure(self, arguments: dict[str, Any]) -> None:
        if self.arguments == arguments:
            return
        self.stop()
        self.module.start(**arguments)
        self.arguments = arguments

    def stop(self) -> None:
        if self.arguments is not None:
            self.arguments = None
            self.module.stop()


def run_row(cluster: Cluster, row: Row, plan: Plan, quick: bool) -> dict[str, Any]:
    items = row.quick_items if quick else row.items
    try:
        cluster.ensure(row.init)
        call = row.prepare(items)
        worth = items * row.weight
        measurement = measure(call, worth, row.warm_up_calls, plan, row.own_clock)
    except Exception as error:
        return {"reason": reason(error), "unit": row.unit}
    if row.lower_is_better:
        measurement = measurement.milliseconds()
    return {
        **asdict(measurement),
        "unit": row.unit,
        "lower_is_better": row.lower_is_better,
        "items": items,
        "full_items": row.items,
    }


def main() -> None:
    rows, plan_name, pattern = sys.argv[1:]
    answers = take_stdout()
    names: list[str] = []
    try:
        cluster = Cluster(rows)
        names = [name for name in ROWS if re.search(pattern, name, re.IGNORECASE)]
        if names:
            cluster.ensure(ROWS[names[0]].init)
    except Exception as error:
        say(answers, {"reason": reason(error), "rows": names})
        return
    say(answers, {"rows": names, "version": cluster.version})
    for line in sys.stdin:
        row = ROWS[line.rstrip("\n")]
        say(answers, run_row(cluster, row, PLANS[plan_name], plan_name == "quick"))
        # Actors end with their handles; let none live on into the next row.
        gc.collect()
    cluster.stop()


def take_stdout() -> TextIO:
    """Keeps stdout for answers alone; whatever libraries print goes to stderr instead."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def say(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
