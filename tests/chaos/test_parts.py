"""The parts of the chaos run by themselves: a judge that cannot find anything would be no judge."""

from __future__ import annotations

import random
from xml.etree import ElementTree

import pytest

from chaos import oracle, report
from chaos.schedule import BY_NAME, MOST_AT_ONCE, draw, ends
from chaos.switch import Way


def record(kind="tasks", begin=0.0, end=1.0, outcome="value", error="", text=""):
    given = {"kind": kind, "begin": begin, "end": end, "tasks": 1}
    return given | {"outcome": outcome, "error": error, "text": text}


def fault(kind="cut", begin=0.0, end=0.0, lasts=0.0, host=3):
    given = {"kind": kind, "begin": begin, "end": end, "lasts": lasts, "host": host}
    return given | {"missed": ""}


def run(call, rule, life="a", at=0.0, actor=""):
    return {"call": call, "rule": rule, "life": life, "at": at, "actor": actor}


def test_the_same_seed_gives_the_same_faults():
    names = set(BY_NAME)
    assert draw(7, 60, 0.5, names) == draw(7, 60, 0.5, names)
    assert draw(7, 60, 0.5, names) != draw(8, 60, 0.5, names)


@pytest.mark.parametrize("seed", range(20))
def test_faults_that_last_do_not_meet_at_one_host(seed):
    faults = draw(seed, 120, 0.3, set(BY_NAME))
    assert {one.kind for one in faults} <= BY_NAME.keys() and len(faults) > 60
    for number, one in enumerate(faults):
        assert one.host in BY_NAME[one.kind].hosts and one.host != one.other
        assert one.at + one.lasts <= 120
        under_way = [e for e in faults[:number] if e.lasts and e.at + e.lasts > one.at]
        assert len(under_way) <= MOST_AT_ONCE
        assert not any(ends(earlier) & ends(one) for earlier in under_way)


def test_only_what_is_wanted_is_drawn():
    assert {one.kind for one in draw(1, 30, 0.2, {"loss", "delay"})} == {"loss", "delay"}
    assert draw(1, 30, 0.2, set()) == []


def test_all_is_well():
    records = [record(), record("fragile", outcome="error", error="ActorDiedError", text="why")]
    runs = [run("a", "once"), run("b", "once-a-life", "x"), run("b", "once-a-life", "y")]
    assert oracle.judge(records, runs, []) == []


@pytest.mark.parametrize(
    "records, runs",
    [
        ([record(outcome="wrong", text="3 instead of 4")], []),
        ([record(outcome="error", error="WorkerCrashedError", text="why")], []),
        ([record("fragile", outcome="error", error="ActorDiedError", text="")], []),
        ([record("fragile", outcome="error", error="ValueError", text="why")], []),
        ([], [run("a", "once"), run("a", "once", "b")]),
        ([], [run("a", "once-a-life"), run("a", "once-a-life")]),
        ([], [run("a", "-", "x", 1, "n"), run("b", "-", "y", 2, "n"), run("c", "-", "x", 3, "n")]),
    ],
)
def test_what_must_not_be_is_found(records, runs):
    assert len(oracle.judge(records, runs, [])) == 1


def test_a_full_disk_excuses_only_what_met_it():
    full = [fault("disk-full", 10, 20)]
    error = {"outcome": "error", "error": "OutOfDiskError", "text": "no room"}
    assert not oracle.judge([record(begin=15, end=16, **error)], [], full)
    assert oracle.judge([record(begin=1, end=2, **error)], [], full)


def test_a_broken_link_excuses_calls_that_may_have_run():
    error = {"outcome": "error", "error": "ActorUnavailableError", "text": "why"}
    calls, tasks = record("restartable", **error), record("tasks", **error)
    assert not oracle.judge([calls], [], [fault("one-way")])
    assert oracle.judge([calls], [], [fault("worker-kill")])
    assert oracle.judge([tasks], [], [fault("one-way")])


def test_time_in_a_fault_is_not_held_against_it():
    cuts = [fault(begin=10, end=14), fault(begin=12, end=16), fault(begin=30, end=40)]
    assert oracle.covered(8, 20, cuts) == 6
    late = record(begin=8, end=25)
    assert oracle.waits([late], cuts) == [11]
    assert len(list(oracle.too_late([late], cuts, 10))) == 1
    assert not list(oracle.too_late([late], cuts, 12))


def test_a_picture_is_one():
    records = [record(end=0.5), record(end=2.5)]
    faults = [fault("cut", 1, 2, 1.0), fault("<kill>", 2, 2)]
    done = report.per_second(records, 2.5)
    assert done == [1, 0, 1]
    text = report.picture({"seed": 1, "tasks_per_second": done, "faults": faults})
    titles = [e.text for e in ElementTree.fromstring(text).iter() if e.tag.endswith("title")]
    assert len(titles) == 2 and "cut at host 3 for 1.0 s" in titles[1]


def test_a_way_that_is_cut_slow_late_or_lossy():
    way, dice = Way(), random.Random(1)

    def arrives(size=1000, now=5.0, **trouble):
        way.troubles = {"a": trouble}
        way.sum_up()
        return way.leaves(size, now, dice)

    assert arrives() == 5.0
    assert arrives(cut=True) is None
    assert arrives(delay=0.5) == 5.5
    assert arrives(rate=1000.0) == 6.0
    assert arrives(rate=1000.0) is None, "it keeps half a second of its rate"
    lost = [arrives(loss=0.1) for _ in range(1000)].count(None)
    assert 50 < lost < 200
