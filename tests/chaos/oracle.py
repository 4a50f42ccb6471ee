"""Judges a run: what the load recorded, and what its tasks and actors wrote down that they ran.

Pure. A *record* is one operation of the load: its kind, when it began and ended, and how: `value`
(the right one), `wrong`, `error` or `late` (it did not end in time). A *run* is one execution that
a task or call noted where no fault reaches.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

# Errors that a kind of operation may end with; all others must bring their value.
MAY_FAIL = {
    "fragile": {"ActorDiedError", "ActorUnavailableError"},
    "unretried": {"ActorDiedError", "ActorUnavailableError"},
    "named": {"ActorDiedError", "ActorUnavailableError"},
}
# What a fault may do to any of them, while it lasts and a little after.
BY_FAULT = {
    "disk-full": {"ObjectStoreFullError", "OutOfDiskError", "RaySystemError", "OSError"},
}
# A call that may have run in an actor that lives on, unreached, is not made again.
UNREACHED = "ActorUnavailableError"
BREAK_LINKS = {"cut", "blink", "pair-cut", "one-way", "driver-cut", "loss", "node-stop"}
BREAK_LINKS |= {"host-stop"}
AFTERWARDS_S = 10.0


def judge(records, runs, faults):
    """Sentences about what must not be; none: all is well."""
    return [
        *wrong_values(records),
        *unpromised_errors(records, faults),
        *nameless_errors(records),
        *run_too_often(runs),
        *two_at_once(runs),
    ]


def wrong_values(records):
    for record in records:
        if record["outcome"] == "wrong":
            yield f"{record['kind']} at {record['begin']:.1f}: wrong: {record['text']}"


def unpromised_errors(records, faults):
    for record in records:
        if record["outcome"] != "error":
            continue
        allowed = set(MAY_FAIL.get(record["kind"], ()))
        for fault in faults:
            before_end = fault["begin"] <= record["end"]
            if before_end and fault["end"] + AFTERWARDS_S >= record["begin"]:
                allowed |= BY_FAULT.get(fault["kind"], set())
                if fault["kind"] in BREAK_LINKS and record["kind"] in ("restartable", "named"):
                    allowed.add(UNREACHED)
        if record["error"] not in allowed:
            yield (
                f"{record['kind']} at {record['begin']:.1f}: {record['error']} where a value was "
                f"promised: {record['text'][:300]}"
            )


def nameless_errors(records):
    for record in records:
        if record["outcome"] == "error":
            text = record["text"]
            if not text.strip() or "panicked" in text or "internal error" in text:
                yield f"{record['kind']}: an error that says nothing: {record['error']}: {text!r}"


def run_too_often(runs):
    """Calls without retries run at most once, those with retries once an incarnation."""
    once = Counter(run["call"] for run in runs if run["rule"] == "once")
    per_life = Counter((run["call"], run["life"]) for run in runs if run["rule"] == "once-a-life")
    for call, count in once.items():
        if count > 1:
            yield f"{call} ran {count} times, and may run once"
    for (call, life), count in per_life.items():
        if count > 1:
            yield f"{call} ran {count} times in one incarnation, {life}"


def two_at_once(runs):
    """An actor's incarnations follow each other: none runs a call when a later one has begun."""
    lives = defaultdict(dict)
    for run in runs:
        if run.get("actor"):
            first, last = lives[run["actor"]].get(run["life"], (run["at"], run["at"]))
            lives[run["actor"]][run["life"]] = (min(first, run["at"]), max(last, run["at"]))
    for actor, spans in lives.items():
        ordered = sorted(spans.values())
        for (_, last), (first, _) in pairwise(ordered):
            if last > first:
                yield f"{actor} had two incarnations at once, for {last - first:.2f} s"


def covered(begin, end, faults):
    """How much of a span lies in a fault that lasts."""
    total, until = 0.0, begin
    for fault in sorted(faults, key=lambda fault: fault["begin"]):
        first, last = max(fault["begin"], until), min(fault["end"], end)
        if last > first:
            total += last - first
            until = last
    return total


def waits(records, faults):
    """For each operation, how long it took beyond the faults that it met."""
    return [
        record["end"] - record["begin"] - covered(record["begin"], record["end"], faults)
        for record in records
    ]


def too_late(records, faults, most):
    """Sentences about operations that took more than `most` seconds beyond the faults they met."""
    for record, beyond in zip(records, waits(records, faults), strict=True):
        if beyond > most or record["outcome"] == "late":
            yield (
                f"{record['kind']} at {record['begin']:.1f} took "
                f"{record['end'] - record['begin']:.1f} s, {beyond:.1f} s beyond the faults it "
                f"met, and ended with {record['error'] or record['outcome']}: "
                f"{record['text'][:200]}"
            )


def by_kind(records, faults):
    """A row for each kind of operation."""
    rows = {}
    for record, beyond in zip(records, waits(records, faults), strict=True):
        row = rows.setdefault(
            record["kind"],
            {"operations": 0, "tasks": 0, "values": 0, "errors": {}, "slowest": 0.0, "beyond": 0.0},
        )
        row["operations"] += 1
        row["tasks"] += record["tasks"]
        row["values"] += record["outcome"] == "value"
        if record["error"]:
            row["errors"][record["error"]] = row["errors"].get(record["error"], 0) + 1
        row["slowest"] = max(row["slowest"], round(record["end"] - record["begin"], 2))
        row["beyond"] = max(row["beyond"], round(beyond, 2))
    return rows


def by_fault(records, faults):
    """A row for each kind of fault: how many, and what those operations were like that met one."""
    rows = {}
    for fault in faults:
        row = rows.setdefault(
            fault["kind"], {"faults": 0, "missed": 0, "met": 0, "errors": 0, "stall": 0.0}
        )
        row["faults"] += 1
        row["missed"] += bool(fault["missed"])
        met = [r for r in records if r["begin"] <= fault["end"] and r["end"] >= fault["begin"]]
        row["met"] += len(met)
        row["errors"] += sum(r["outcome"] == "error" for r in met)
        row["stall"] = max(row["stall"], round(stall_after(fault["begin"], records), 2))
    return rows


def stall_after(begin, records):
    """From a fault's begin until the next operation ended well."""
    ends = [r["end"] for r in records if r["outcome"] == "value" and r["end"] >= begin]
    return min(ends) - begin if ends else 0.0
