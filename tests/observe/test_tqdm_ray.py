"""Progress bars of workers, drawn together by the driver."""

from __future__ import annotations

import re

import oxiray as ray
import pytest
from oxiray import _bars
from oxiray._bar_text import Bar, bar_line, cut, width
from oxiray._bar_views import StreamsAround, TerminalView
from oxiray._log_folding import Line
from oxiray.experimental import tqdm_ray
from terminal import run_at_terminal, screen

TWO_WORKERS = """
    import time
    import oxiray as ray
    from oxiray import _bars
    from oxiray.experimental import tqdm_ray
    ray.init(num_cpus=2, logging_level="error")

    @ray.remote(num_cpus=0)
    class Gate:
        is_open = False
        def open(self):
            self.is_open = True
        def is_it_open(self):
            return self.is_open

    @ray.remote
    def work(name, gate):
        for step in tqdm_ray.tqdm(range(40), desc=name, flush_interval_s=0):
            while step == 10 and not ray.get(gate.is_it_open.remote()):
                time.sleep(0.001)
            if step == 20:
                print(name, "is half done")
        return name

    gate = Gate.remote()
    refs = [work.remote(name, gate) for name in ("red", "blue")]
    print("the driver waits")
    bars = _bars.bars()
    while len(bars._live) < 2 or bars._changed:  # until both have been drawn
        time.sleep(0.001)
    gate.open.remote()
    print("done:", *ray.get(refs))
"""


def test_bars_of_two_workers_at_a_terminal(driver):
    written = run_at_terminal(driver, TWO_WORKERS)
    lines = screen(written)
    for name in ("red", "blue"):
        full = rf"\(work pid=\d+\) {name}: 100%\|█+\| 40/40 \[\d\d:\d\d<00:00, [\d.k]+it/s\]"
        assert sum(bool(re.fullmatch(full, line)) for line in lines) == 1, lines
        said = [line for line in lines if line.endswith(f"{name} is half done")]
        assert len(said) == 1, lines
    assert "the driver waits" in lines and "done: red blue" in lines
    assert len([line for line in lines if line]) == 6, lines
    # While it ran, two bars were drawn one below the other, and drawn over.
    assert "\x1b[2A" in written


def test_elsewhere_a_bar_is_a_line_when_it_is_done(driver):
    result = driver(TWO_WORKERS, env={"RAY_DEDUP_LOGS": "0"})
    bars = result.stderr.splitlines()
    assert len(bars) == 2 and all("40/40" in line and "100%" in line for line in bars), bars
    assert "\x1b" not in result.stdout + result.stderr
    assert "\x1e" not in result.stdout + result.stderr


def test_states_are_not_in_log_files(driver):
    result = driver(
        """
        import glob
        import oxiray as ray
        from oxiray.experimental import tqdm_ray
        context = ray.init(num_cpus=1, logging_level="error")

        @ray.remote
        def work():
            for _ in tqdm_ray.tqdm(range(10), flush_interval_s=0):
                pass
            print("written")

        ray.get(work.remote())
        text = ""
        while "written" not in text:  # the node service writes it when it comes by
            files = glob.glob(context["session_dir"] + "/logs/worker-*.out")
            text = "".join(open(file).read() for file in files)
        assert text == "written\\n", text
        """
    )
    assert "10/10" in result.stderr


def test_a_dead_workers_bar_does_not_stay_alive(driver):
    lines = screen(
        run_at_terminal(
            driver,
            """
            import os, time
            import oxiray as ray
            from oxiray import _bars
            from oxiray.experimental import tqdm_ray
            ray.init(num_cpus=1, logging_level="error")

            @ray.remote(max_retries=0)
            def work():
                bar = tqdm_ray.tqdm(total=10, desc="cut short")
                bar.update(3)
                os._exit(1)

            try:
                ray.get(work.remote())
            except ray.exceptions.WorkerCrashedError:
                pass
            while not _bars.bars()._drawn:  # it may have been, and be gone again
                time.sleep(0.01)
            while _bars.bars().next_draw():
                time.sleep(0.01)
            print("nothing is drawn any more")
            """,
        )
    )
    assert any(" 3/10 " in line for line in lines) and "nothing is drawn any more" in lines, lines


class Screen:
    """A terminal in memory."""

    encoding = "utf-8"

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text.replace("\n", "\r\n")

    def flush(self):
        pass

    def fileno(self):
        raise OSError


def test_more_bars_than_rows_and_prints_in_between():
    stream = Screen()
    view = TerminalView(stream, StreamsAround(_bars.hidden))
    view.show([], [f"bar {i}" for i in range(100)], 0.0)
    lines = screen(stream.text)
    assert len(lines) <= 24 and lines[0] == "bar 0" and lines[-2] == "… and 79 more"
    view.hide()
    stream.write("printed\n")
    view.show(["bar 0 is done"], ["bar 1"], 1.0)
    assert screen(stream.text) == ["printed", "bar 0 is done", "bar 1", ""]
    view.show([], [], 2.0)
    assert screen(stream.text) == ["printed", "bar 0 is done", ""]


@pytest.mark.parametrize(
    ("bar", "line"),
    [
        (Bar("", 0.0, "x", 5, 10), "x:  50%|█████     | 5/10 [00:02<00:02, 2.50it/s]"),
        (Bar("", 0.0, "", 1500), "1.5kit [00:02, 750.00it/s]"),
        (Bar("", 0.0, "x", 0, 10), "x:   0%|          | 0/10 [00:02<?, ?it/s]"),
        (Bar("", 0.0, "x", 12, 10), "x: 100%|██████████| 12/10 [00:02<?, 6.00it/s]"),
        (Bar("", 0.0, "x", -1, 10), "x:   0%|          | -1/10 [00:02<?, ?it/s]"),
        (Bar("", 0.0, "x", 10**15, 10**17, "B"), None),
        (Bar("(a rather long name pid=123)", 0.0, "and text", 5, 10), None),
        (Bar("", 0.0, "进度" * 40, 5, 10), None),
    ],
)
def test_a_bar_as_text(bar, line):
    columns = width(line) if line else 40
    assert width(bar_line(bar, 2.0, columns)) <= columns
    if line:
        assert bar_line(bar, 2.0, columns) == line


def test_cut_counts_wide_characters():
    assert cut("进度条", 6) == "进度条" and cut("进度条", 5) == "进度…" and cut("abc", 0) == "…"


@pytest.mark.parametrize(
    "state",
    [
        "",
        "{",
        "[]",
        "null",
        '{"n": "many", "total": [], "desc": {}, "position": NaN}',
        '{"n": 1e999}',
    ],
)
def test_what_is_no_state_is_passed_over(state):
    bars = _bars.Bars()
    bars.take(Line("f", 1, "", _bars.MARK + state), 0.0)
    for bar in bars._live.values():
        assert (bar.n, bar.total, bar.position) == (0, None, 0)


def test_text_in_a_state_cannot_harm_a_terminal():
    bars = _bars.Bars()
    bars.take(Line("f", 1, "", _bars.MARK + '{"desc": "a\\u001b[2J\\nb", "unit": "\\r"}'), 0.0)
    [bar] = bars._live.values()
    assert bar.desc == "a b" and "\r" not in bar_line(bar, 1.0, 80)


def test_in_the_driver_without_a_session(capsys):
    ray.shutdown()
    with tqdm_ray.tqdm(total=4, desc="mine", unit="B", position=1) as bar:
        bar.update(2)
        bar.set_description("still mine")
        bar.total = 2
        bar.refresh()
        assert (bar.n, len(bar)) == (2, 2)
    bar.close()
    assert list(tqdm_ray.tqdm(iter("abc"))) == ["a", "b", "c"]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "still mine: 100%" in lines[0] and lines[1].startswith("3it ["), (
        lines
    )
    with pytest.raises(ValueError, match="no iterable"):
        list(tqdm_ray.tqdm(total=3))
