"""Whether a history could be that of one thing that does one operation at a time: linearizability.

A history is a list of operations, each with when it was asked for and when it was answered. It is
linearizable if each operation can be given one moment between the two, so that in the order of
these moments a model answers as the real thing did. One that was never answered may have happened
at any time after it was asked for, or not at all. The search is Wing and Gong's, with Lowe's memory
of the places that lead nowhere: an operation may be the next if none that is left was answered
before it was asked for.

Histories of different keys are apart (linearizability is local): `check` is given one key's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

#: An answer that never came.
LOST = object()


@dataclass(frozen=True)
class Operation:
    """One operation: what was asked, what was answered, and when both were."""

    asked: float
    answered: float
    question: tuple[Any, ...]
    answer: Any


#: From a state and a question to the answer and the state afterwards.
Model = Callable[[Hashable, tuple[Any, ...]], tuple[Any, Hashable]]


def check(history: Sequence[Operation], model: Model, begin: Hashable) -> list[Operation] | None:
    """An order in which the model answers like the history, or None: there is none."""
    left = sorted(history, key=lambda operation: operation.asked)
    dead_ends: set[tuple[int, Hashable]] = set()
    order: list[int] = []
    # What was tried at each depth: the operations done, the state, the next ones to try.
    stack = [(0, begin, _next(left, 0))]
    while stack:
        done, state, candidates = stack[-1]
        if all(done >> at & 1 or left[at].answer is LOST for at in range(len(left))):
            return [left[at] for at in order]
        step = None
        while candidates and step is None:
            at = candidates.pop()
            answer, after = model(state, left[at].question)
            is_lost = left[at].answer is LOST
            # One that was not answered and changes nothing might as well not have happened.
            if after != state if is_lost else left[at].answer == answer:
                place = (done | 1 << at, after)
                if place not in dead_ends:
                    dead_ends.add(place)
                    step = (at, place)
        if step is None:
            stack.pop()
            if order:
                order.pop()
            continue
        at, (done, after) = step
        order.append(at)
        stack.append((done, after, _next(left, done)))
    return None


def _next(history: list[Operation], done: int) -> list[int]:
    """The operations that may be next: asked for before any that is left was answered."""
    left = [at for at in range(len(history)) if not done >> at & 1]
    answered = [history[at].answered for at in left if history[at].answer is not LOST]
    until = min(answered, default=float("inf"))
    # The first to be answered is tried first.
    may_be = [at for at in left if history[at].asked <= until]
    return sorted(may_be, key=lambda at: -history[at].answered)


def register(state: Hashable, question: tuple[Any, ...]) -> tuple[Any, Hashable]:
    """A place for one value: ("write", value), ("read",), ("swap", old, new), ("delete",), and
    ("drop", value), which deletes that one alone."""
    match question:
        case ("read",):
            return state, state
        case ("write", value):
            return None, value
        case ("swap", old, new):
            return (True, new) if state == old else (False, state)
        case ("delete",):
            return state is not None, None
        case ("drop", value):
            return None, None if state == value else state
    raise ValueError(f"no operation of a register: {question}")
