"""One side of the comparison: an interpreter that does rows, replaced when a row takes it down."""

import json
from typing import Any

from interpreter import Interpreter, Lost
from timing import PLANS

START_TIMEOUT_SECONDS = 90
# A side that keeps going down would otherwise make the run last for ever.
MOST_LOSSES = 4

Answer = dict[str, Any]


class Side:
    def __init__(self, name: str, python: str, plan_name: str) -> None:
        self.name = name
        self.python = python
        self.plan_name = plan_name
        self.rows: list[str] = []
        self.version = ""
        self.losses = 0
        # Why nothing more can be asked of this side.
        self.broken: str | None = None
        self.interpreter: Interpreter | None = None

    def start(self) -> None:
        self.interpreter = Interpreter(
            self.name, self.python, "child.py", self.name, self.plan_name
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
            return json.loads(self.interpreter.listen(PLANS[self.plan_name].row_timeout_seconds))
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
