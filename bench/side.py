"""One side of the comparison: an interpreter that does rows, replaced when a row takes it down."""

import json
from dataclasses import dataclass, field
from typing import Any

from interpreter import Interpreter, Lost
from timing import PLANS

START_TIMEOUT_SECONDS = 90
# A side that keeps going down would otherwise make the run last for ever.
MOST_LOSSES = 4

Answer = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Which rows a side does, and where."""

    # The module that has them, and a pattern that is found in the names of those that are wanted.
    rows: str
    pattern: str = ""
    # What the interpreter's command begins with, and what it is told.
    prefix: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    # How much longer a row may take than the plan says.
    patience_seconds: float = 0


class Side:
    def __init__(self, name: str, python: str, plan_name: str, place: Place) -> None:
        self.name = name
        self.python = python
        self.plan_name = plan_name
        self.place = place
        self.rows: list[str] = []
        self.version = ""
        self.losses = 0
        # Why nothing more can be asked of this side.
        self.broken: str | None = None
        self.interpreter: Interpreter | None = None

    def start(self) -> None:
        self.interpreter = Interpreter(
            self.name,
            self.python,
            "child.py",
            self.place.rows,
            self.plan_name,
            self.place.pattern,
            prefix=self.place.prefix,
            more=self.place.environment,
        )
        try:
            answer = json.loads(self.interpreter.listen(START_TIMEOUT_SECONDS))
        except Lost as lost:
            answer = {"reason": f"at start, {lost}"}
        self.rows = answer.get("rows") or self.rows
        self.version = answer.get("version") or self.version
        if "reason" in answer:
            self.broken = answer["reason"]
            self.stop()

    def measure(self, row: str) -> Answer:
        if self.broken:
            return {"reason": self.broken}
        if not self.interpreter:
            self.start()
            return self.measure(row)
        self.interpreter.tell(row)
        try:
            patience = PLANS[self.plan_name].row_timeout_seconds + self.place.patience_seconds
            return json.loads(self.interpreter.listen(patience))
        except Lost as lost:
            self.losses += 1
            if self.losses == MOST_LOSSES:
                self.broken = f"given up after {MOST_LOSSES} rows that hung or crashed"
            self.stop()
            return {"reason": str(lost)}

    def stop(self) -> None:
        if self.interpreter:
            self.interpreter.end()
            self.interpreter = None
