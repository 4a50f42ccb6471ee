"""The timeline: what happened to every task, as a Chrome trace."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from pathlib import Path

import oxiray as ray
import pytest
from conftest import wait_until
from rendezvous import Meeting

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
def timed_task():
    return ray.get_runtime_context().get_task_id()


@ray.remote
class Timed:
    def method(self):
        return 1

    def quiet(self):
        return 1


def slices(name, phase="X"):
    """Events of that name, the newest last."""
    found = [event for event in ray.timeline() if event["ph"] == phase and event["name"] == name]
    return sorted(found, key=lambda event: event["ts"])


def states(name):
    return [event["args"]["state"] for event in slices(name)]


def test_events_of_tasks():
    ids = ray.get([timed_task.remote() for _ in range(20)])
    events = {event["args"]["task_id"]: event for event in slices("timed_task")}
    for task_id in ids:
        event = events[task_id]
        assert event["cat"] == "task"
        assert event["dur"] > 0
        about = event["args"]
        assert about["state"] == "FINISHED"
        assert about["submitted_us"] <= about["sent_us"] <= event["ts"]
        parts = about["fetch_us"] + about["execute_us"] + about["store_us"]
        assert abs(parts - event["dur"]) < 1


def test_times_count_from_the_first_moment():
    before = time.time()
    ray.get(timed_task.remote())
    after = time.time()
    starts = {e["args"]["start_us"] for e in ray.timeline() if e["name"] == "process_name"}
    (start,) = starts
    last = slices("timed_task")[-1]
    assert before <= (start + last["ts"]) / 1e6 <= after
    # Viewers keep 53 bits: nanoseconds, unless they are counted from 1970.
    assert 0 <= last["ts"] < 2**53 / 1000


def test_spans_of_threads_do_not_overlap():
    """Perfetto drops a slice that overlaps another of its row."""

    @ray.remote
    def threaded():
        begun = threading.Barrier(3)

        def mark(number):
            with ray.profile(f"of thread {number}"):
                begun.wait()
                time.sleep(0.002 * number)

        threads = [threading.Thread(target=mark, args=[number]) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    ray.get(threaded.remote())
    ends = {}
    events = [event for event in ray.timeline() if event["ph"] == "X"]
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        open_ends = ends.setdefault((event["pid"], event["tid"]), [])
        end = event["ts"] + event["dur"]
        while open_ends and open_ends[-1] <= event["ts"] + 1e-4:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1] + 1e-4, event
        open_ends.append(end)


def test_rows_are_named_by_node_and_process():
    pid = ray.get(ray.remote(os.getpid).remote())
    rows = {
        event["tid"]: event["args"]["name"]
        for event in ray.timeline()
        if event["name"] == "thread_name"
    }
    assert rows[pid] == f"worker {pid}" and rows[os.getpid()] == f"driver {os.getpid()}"
    assert any(event["name"] == "process_name" for event in ray.timeline())


def test_actor_calls_are_there():
    actor = Timed.remote()
    ray.get(actor.method.remote())
    assert states("Timed.__init__")[-1] == "FINISHED"
    assert states("Timed.method")[-1] == "FINISHED"


def test_arrows_lead_from_arguments():
    @ray.remote
    def made():
        return 1

    @ray.remote
    def taken(a, b):
        return a + b

    assert ray.get(taken.remote(made.remote(), made.remote())) == 2
    (target,) = slices("taken")
    sources = slices("made")
    events = ray.timeline()
    ends = [e for e in events if e["ph"] == "f" and e["ts"] == target["ts"]]
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    assert len(ends) == 2
    for end in ends:
        start = starts[end["id"]]
        assert (end["pid"], end["tid"]) == (target["pid"], target["tid"])
        inside = [s for s in sources if s["ts"] <= start["ts"] <= s["ts"] + s["dur"]]
        assert inside, "an arrow begins within the slice that it comes from"


def test_parts_are_drawn_where_they_take_long():
    @ray.remote
    def large():
        return bytes(30_000_000)

    ray.get(large.remote())
    (event,) = slices("large")
    inside = [
        other
        for other in slices("store")
        if event["ts"] <= other["ts"] <= event["ts"] + event["dur"] and other["tid"] == event["tid"]
    ]
    assert inside


def test_a_child_knows_its_parent():
    @ray.remote
    def inner_task():
        return None

    @ray.remote
    def outer_task():
        ray.get(inner_task.remote())
        return ray.get_runtime_context().get_task_id()

    outer = ray.get(outer_task.remote())
    assert slices("inner_task")[-1]["args"]["parent_task_id"] == outer
    assert "parent_task_id" not in slices("outer_task")[-1]["args"]


def test_a_failure_has_its_text():
    @ray.remote
    def fails_in_timeline():
        raise KeyError("the missing é")

    with pytest.raises(KeyError):
        ray.get(fails_in_timeline.remote())
    about = slices("fails_in_timeline")[-1]["args"]
    assert about["state"] == "FAILED" and about["exception"] == "KeyError"
    assert about["error_type"] == "TASK_EXECUTION_EXCEPTION"
    assert "the missing é" in about["error"] and "fails_in_timeline" in about["error"]


def test_attempts_are_told_apart(tmp_path):
    @ray.remote(max_retries=3, retry_exceptions=True)
    def third_time(path):
        with open(path, "a") as file:
            file.write("x")
        if os.path.getsize(path) < 3:
            raise OSError("not yet")

    ray.get(third_time.remote(str(tmp_path / "tries")))
    found = [(e["args"].get("attempt", 0), e["args"]["state"]) for e in slices("third_time")]
    assert found == [(0, "FAILED"), (1, "FAILED"), (2, "FINISHED")]


def test_what_a_killed_worker_did_is_kept():
    @ray.remote
    def before_the_end():
        return os.getpid()

    @ray.remote(max_retries=0)
    def killed_here():
        os.kill(os.getpid(), signal.SIGKILL)

    pid = ray.get(before_the_end.remote())
    with pytest.raises(ray.exceptions.WorkerCrashedError):
        ray.get(killed_here.remote())
    assert slices("before_the_end")[-1]["tid"] == pid
    killed = slices("killed_here")[-1]
    assert killed["dur"] >= 0 and killed["args"]["error_type"] == "WORKER_DIED"
    assert "SIGKILL" in killed["args"]["error"]


def test_what_runs_now_is_there(gate):
    @ray.remote
    def still_running():
        gate.wait()

    ref = still_running.remote()
    begun = wait_until(lambda: slices("still_running"))
    assert begun[0]["args"]["state"] == "RUNNING"
    gate.open()
    ray.get(ref)
    assert states("still_running") == ["FINISHED"]


def test_enable_task_events():
    @ray.remote(enable_task_events=False)
    def unrecorded():
        return 1

    @ray.remote
    def by_call():
        return 1

    ray.get([unrecorded.remote(), by_call.options(enable_task_events=False).remote()])
    ray.get(unrecorded.options(enable_task_events=True, name="recorded after all").remote())
    quiet_actor = Timed.options(enable_task_events=False).remote()
    ray.get(quiet_actor.quiet.remote())
    ray.get(quiet_actor.method.options(enable_task_events=True, name="loud").remote())
    names = {event["name"] for event in ray.timeline()}
    assert {"recorded after all", "loud"} <= names
    assert not {"unrecorded", "by_call", "Timed.quiet"} & names


def test_profile_spans():
    @ray.remote
    def profiled():
        with ray.profile("outer span", extra_data={"step": 3}), ray.profiling.profile("inner span"):
            pass
        return ray.get_runtime_context().get_task_id()

    task = ray.get(profiled.remote())
    with pytest.raises(ZeroDivisionError), ray.profile("of the driver"):
        _ = 1 / 0
    (outer,), (inner,), (mine,) = map(slices, ("outer span", "inner span", "of the driver"))
    assert outer["args"] == {"task_id": task, "extra_data": {"step": 3}}
    assert outer["cat"] == "profile" and outer["ts"] <= inner["ts"]
    assert outer["tid"] == slices("profiled")[-1]["tid"]
    assert mine["tid"] == os.getpid()
    assert mine["args"]["extra_data"]["exception"].startswith("ZeroDivisionError")


def test_spans_of_a_task_that_is_not_recorded():
    @ray.remote
    def spanned(name):
        with ray.profile(name):
            pass

    ray.get(spanned.options(enable_task_events=False).remote("unseen span"))
    ray.get(spanned.remote("seen span"))
    assert slices("seen span") and not slices("unseen span")


def test_profile_refuses_nonsense():
    for bad in ("", None, 5):
        with pytest.raises(ValueError, match="name of a span"):
            ray.profile(bad)
    with pytest.raises(ValueError, match="dictionary"):
        ray.profile("x", extra_data=[1])
    with ray.profile("large", extra_data={"x": "y" * 100_000, "z": object()}) as span:
        span.set_attribute("more", 1)
    assert "cut" in slices("large")[-1]["args"]["extra_data"]


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


def test_a_span_never_hides_the_users_exception():
    with pytest.raises(Unspeakable), ray.profile("raises", extra_data={"x": Unspeakable()}):
        raise Unspeakable
    loop = {}
    loop["loop"] = loop
    with ray.profile("odd", extra_data=loop) as span:
        span.set_attribute("more", {Unspeakable(): 1})


def test_to_a_file(tmp_path, capsys):
    from oxiray.experimental import ui

    ray.get(timed_task.remote())
    path = tmp_path / "trace.json"
    assert ray.timeline(str(path)) is None
    assert any(event["name"] == "timed_task" for event in json.loads(path.read_text()))
    other = ui.task_timeline(str(tmp_path / "other.json"))
    assert other in capsys.readouterr().out
    assert json.loads((tmp_path / "other.json").read_text())
    nowhere = tmp_path / "no" / "such" / "directory.json"
    with pytest.raises(FileNotFoundError, match=r"directory\.json"):
        ray.timeline(nowhere)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "other.json", path]


def test_a_file_that_has_no_room_leaves_what_was_there(full_disk):
    program = Path(ray.__file__).parent / "_bin" / "oxiray"
    session = ray._native.context()["session_dir"]
    ray.get([timed_task.remote() for _ in range(2)])
    path = full_disk / "t.json"
    path.write_text("before")
    (full_disk / "filler").write_bytes(b"x" * ((1 << 20) - 4096))
    with pytest.raises(OSError, match=r"No space left on device.*t\.json"):
        ray.timeline(path)
    command = [program, "timeline", "-o", path, "--address", session]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert result.returncode == 1 and f"{path} cannot be written" in result.stderr, result
    assert path.read_text() == "before"
    assert sorted(full_disk.iterdir()) == [full_disk / "filler", path]


def test_in_a_notebook(monkeypatch):
    from oxiray.experimental import ui

    @ray.remote
    def f():
        return 1

    evil = "</script><script>alert(1)//"
    ray.get(f.options(name=evil).remote())
    shown = []
    kernel = types.SimpleNamespace(kernel=object())
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: kernel
    parts = types.ModuleType("IPython.display")
    parts.HTML, parts.display = str, shown.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", parts)
    assert ui.task_timeline() is None
    (page,) = shown
    assert page.count("</script>") == 1 and "alert(1)" in page
    assert "http" not in page, "it needs nothing from elsewhere"


def test_the_command(tmp_path):
    ray.get(timed_task.remote())
    path = tmp_path / "cli.json"
    program = Path(ray.__file__).parent / "_bin" / "oxiray"
    session = ray._native.context()["session_dir"]
    command = [program, "timeline", "-o", path, "--address", session]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert result.returncode == 0 and str(path) in result.stdout, result
    assert any(event["name"] == "timed_task" for event in json.loads(path.read_text()))
    result = subprocess.run(
        [program, "timeline", "--address", tmp_path / "none"], capture_output=True, text=True
    )
    assert result.returncode == 1 and "no session directory" in result.stderr


def test_without_a_session(driver):
    program = """
        import oxiray as ray
        with ray.profile("nothing happens"):
            print("fine")
        ray.timeline()
    """
    result = driver(program, check=False)
    assert result.stdout == "fine\n"
    assert "RuntimeError" in result.stderr and "init()" in result.stderr


@pytest.fixture
def full_disk(tmp_path):
    """A file system of a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_costs_events_and_never_tasks(full_disk, driver):
    program = f"""
        import os
        import oxiray as ray
        ray.init(num_cpus=2)
        session = ray._native.context()["session_dir"]
        os.symlink({str(full_disk)!r}, os.path.join(session, "events"))

        @ray.remote
        def f(x):
            return x

        for _ in range(20):
            assert ray.get([f.remote(x) for x in range(1000)]) == list(range(1000))
        names = [event["name"] for event in ray.timeline()]
        assert 0 < names.count("f") < 20_000, names.count("f")
        print("all done")
    """
    assert "all done" in driver(program).stdout


def test_what_a_driver_leaves_behind_has_failed(driver):
    left = """
        import os, time
        import oxiray as ray
        ray.init(address="auto", log_to_driver=False)

        @ray.remote
        def left_behind():
            time.sleep(600)

        ref = left_behind.remote()
        while not [event for event in ray.timeline() if event["name"] == "left_behind"]:
            time.sleep(0.01)
        os._exit(1)
    """
    program = f"""
        import os, subprocess, sys, time
        import oxiray as ray
        from oxiray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, connect=True, head_node_args={{"num_cpus": 1}})
        assert subprocess.run([sys.executable, "-c", {textwrap.dedent(left)!r}]).returncode == 1

        def states():
            events = [e for e in ray.timeline() if e["name"] == "left_behind"]
            return [(e["args"]["state"], e["args"].get("error_type")) for e in events]

        while states() != [("FAILED", "OWNER_DIED")]:
            time.sleep(0.01)
        ray.shutdown()
        cluster.shutdown()
        print("failed")
    """
    assert "failed" in driver(program).stdout


def test_all_nodes_of_a_cluster_are_in_it(driver):
    program = """
        import oxiray as ray
        from oxiray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 1})
        cluster.add_node(num_cpus=1, resources={"there": 1})

        @ray.remote(resources={"there": 1})
        def far(x):
            return x

        @ray.remote(resources={"there": 1})
        def fails_far_away():
            raise ValueError("very far")

        @ray.remote(num_cpus=0)
        def near():
            return 1

        assert ray.get(far.remote(near.remote())) == 1
        try:
            ray.get(fails_far_away.remote())
        except ValueError:
            pass
        events = ray.timeline()
        named = {event["name"]: event for event in events if event["ph"] == "X"}
        assert named["far"]["pid"] != named["near"]["pid"], named
        assert "very far" in named["fails_far_away"]["args"]["error"]
        (start,), (end,) = ([e for e in events if e["ph"] == phase] for phase in "sf")
        assert (start["pid"], end["pid"]) == (named["near"]["pid"], named["far"]["pid"])
        ray.shutdown()
        cluster.shutdown()
        print("both are there")
    """
    assert "both are there" in driver(program).stdout


@ray.remote(max_concurrency=4)
class InThreads:
    def meet(self, meeting, name):
        with ray.profiling.profile("marked"):
            return meeting.attend(name)


@ray.remote
class OnALoop:
    def __init__(self):
        self.inside, self.all_there = 0, asyncio.Event()

    async def meet(self, count):
        self.inside += 1
        if self.inside == count:
            self.all_there.set()
        await self.all_there.wait()


def assert_none_over_another(events):
    rows = {}
    for event in events:
        rows.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["dur"]))
    for row in rows.values():
        row.sort()
        for (start, took), (following, _) in itertools.pairwise(row):
            assert start + took <= following + 0.001
    return len(rows)


def test_calls_at_once_have_rows_of_their_own(tmp_path):
    actor = InThreads.remote()
    meeting = Meeting(str(tmp_path), 4)
    assert all(ray.get([actor.meet.remote(meeting, name) for name in range(4)]))
    ray.get([actor.meet.remote(meeting, 0) for _ in range(50)])
    events = slices("InThreads.meet")
    assert assert_none_over_another(events) == 4 and len(events) == 54
    row_of = {event["args"]["task_id"]: event["tid"] for event in events}
    for mark in slices("marked"):
        assert mark["tid"] == row_of[mark["args"]["task_id"]], "a mark is within its call"

    loop = OnALoop.remote()
    ray.get([loop.meet.remote(100) for _ in range(100)])
    events = slices("OnALoop.meet")
    assert assert_none_over_another(events) == 100 == len(events)
