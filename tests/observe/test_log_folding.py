"""Lines that several workers print are shown once and then counted. No session: time is given."""

from __future__ import annotations

import pytest
from oxiray._log_folding import Folder, FoldingRules, Line
from oxiray._log_text import harmless, who, written


def line(text, pid=1, host=""):
    return Line("f", pid, host, text)


@pytest.fixture
def folder():
    return Folder(FoldingRules())


def test_the_first_is_shown_at_once_and_the_others_counted(folder):
    assert folder.add(line("loss 0.5", pid=1), 0.0) == line("loss 0.5", pid=1)
    assert folder.next_due() is None
    for pid in range(2, 14):
        assert folder.add(line(f"loss 0.{pid}", pid=pid), 1.0) is None
    assert folder.next_due() == 5.0
    assert folder.due(4.9) == []
    [counted] = folder.due(5.0)
    assert (counted.text, counted.pid, counted.repeated) == ("loss 0.13", 13, 12)
    assert written(counted, terminal=False, colours=False) == (
        "(f pid=13) loss 0.13 [repeated 12x across cluster]\n"
    )


def test_it_goes_on_in_windows_as_long_as_there_is_something_to_count(folder):
    folder.add(line("step", pid=1), 0.0)
    for pid in (2, 3):
        folder.add(line("step", pid=pid), 1.0)
    assert [found.repeated for found in folder.due(5.0)] == [2]
    # The kind is remembered: nothing of it is shown at once.
    assert folder.add(line("step", pid=1), 6.0) is None
    assert folder.add(line("step", pid=1), 6.0) is None
    assert [found.repeated for found in folder.due(10.0)] == [2]
    assert folder.due(15.0) == []
    assert folder.add(line("step", pid=1), 16.0) is not None


def test_one_that_was_held_back_is_shown_as_it_is(folder):
    folder.add(line("done 1", pid=1), 0.0)
    folder.add(line("done 2", pid=2), 0.0)
    assert folder.due(5.0) == [line("done 2", pid=2)]
    assert folder.next_due() is None


def test_a_process_that_repeats_itself_is_always_heard(folder):
    shown = [folder.add(line(f"epoch {i}"), 0.0) for i in range(100)]
    assert all(shown) and folder.flush() == []


def test_processes_of_two_machines_may_have_the_same_number(folder):
    assert folder.add(line("hello", pid=7, host="10.0.0.1"), 0.0)
    assert folder.add(line("hello", pid=7, host="10.0.0.2"), 0.0) is None


def test_numbers_alone_and_empty_lines_are_always_shown(folder):
    for text in ("0.5", "1 2 3", "0xff", "", "   "):
        for pid in (1, 2):
            assert folder.add(line(text, pid=pid), 0.0) is not None


def test_the_end_loses_nothing(folder):
    folder.add(line("a", pid=1), 0.0)
    for pid in (2, 3, 4):
        folder.add(line("a", pid=pid), 0.0)
    folder.add(line("b", pid=1), 0.0)
    folder.add(line("b", pid=2), 0.0)
    assert [(found.text, found.repeated) for found in folder.flush()] == [("a", 3), ("b", 0)]
    assert folder.flush() == [] and folder.next_due() is None


def test_what_is_remembered_is_bounded(folder):
    for i in range(5000):
        word = "".join(chr(97 + int(digit)) for digit in str(i))
        assert folder.add(line(word), 0.0)
    assert len(folder._kinds) == 1000
    long = "x" * 100_000
    assert folder.add(line(long, pid=1), 0.0) and folder.add(line(long, pid=2), 0.0)


def rules(monkeypatch, **settings):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return FoldingRules.from_environment()


def test_the_environment_says_what_is_folded(monkeypatch):
    folder = Folder(
        rules(
            monkeypatch,
            RAY_DEDUP_LOGS_ALLOW_REGEX="^important",
            RAY_DEDUP_LOGS_SKIP_REGEX="boring",
            RAY_DEDUP_LOGS_AGG_WINDOW_S="2",
        )
    )
    for pid in (1, 2, 3):
        assert folder.add(line("important boring", pid=pid), 0.0)
        assert folder.add(line("so boring", pid=pid), 0.0) is None
        folder.add(line("x", pid=pid), 0.0)
    assert [found.repeated for found in folder.due(2.0)] == [2]


def test_off(monkeypatch):
    assert rules(monkeypatch, RAY_DEDUP_LOGS="0") is None
    assert rules(monkeypatch, OXIRAY_DEDUP_LOGS="1") is not None  # ours counts more
    assert rules(monkeypatch, OXIRAY_DEDUP_LOGS="0", RAY_DEDUP_LOGS="1") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("RAY_DEDUP_LOGS_SKIP_REGEX", "("), ("OXIRAY_DEDUP_LOGS_AGG_WINDOW_S", "soon")],
)
def test_what_is_wrong_is_said(monkeypatch, name, value):
    with pytest.raises(ValueError, match=name):
        rules(monkeypatch, **{name: value})


def test_a_process_keeps_its_colour():
    colours = [who("f", pid, "", colours=True) for pid in range(100, 106)]
    assert colours == [who("f", pid, "", colours=True) for pid in range(100, 106)]
    assert len({colour[: colour.index("m")] for colour in colours}) == 6
    assert who("f", 7, "10.0.0.2", colours=False) == "(f pid=7, ip=10.0.0.2)"
    assert who("", 7, "", colours=False) == "(pid=7)"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\ttext", "plain\ttext"),
        ("\x1b[31mred", "\x1b[31mred\x1b[0m"),
        ("\x1b[2J\x1b[Hcleared", "cleared"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]0;title that never ends", ""),
        ("\x1bPdevice\x1b\\text", "text"),
        ("\x1bc\x1b(Btext\x1b", "text"),
        ("\x9b2Jtext", "2Jtext"),
        (" 10%\r 20%\r 30%\r", " 30%"),
        ("bell\x07 nul\x00", "bell nul"),
    ],
)
def test_only_colours_pass_to_a_terminal(text, seen):
    assert harmless(text) == seen
