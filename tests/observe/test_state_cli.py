"""`oxiray list`, `get`, `summary`, `logs`, `stack`, `timeline`."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import tempfile
import termios

import oxiray as ray
import pytest
from conftest import BASE, wait_until
from oxiray.util import state

PROGRAM = os.path.join(os.path.dirname(sys.executable), "oxiray")
NOTHING_RUNS = 3
NASTY = "<b>\"'\n\x1b[31m\u202e"


def oxiray(*arguments, code=0, **env):
    done = subprocess.run(
        [PROGRAM, *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code, (arguments, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


def rows(*arguments):
    return json.loads(oxiray("list", *arguments, "--format=json"))


@ray.remote
class Speaker:
    def say(self, *lines):
        for line in lines:
            print(line)
        return os.getpid()


@ray.remote
def work(x):
    return x


@ray.remote
def fails():
    return 1 / 0


@ray.remote
def gate_keeper(gate):
    gate.wait()


@pytest.fixture(scope="module", autouse=True)
def session():
    ray.shutdown()
    ray.init(num_cpus=2, namespace="tests", logging_level="error")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def speaker(session):
    speaker = Speaker.options(name=NASTY).remote()
    ray.get(speaker.say.remote())
    return speaker


def test_status_shows_what_is_used_and_what_waits(gate):
    running = gate_keeper.remote(gate)
    never = work.options(num_cpus=9).remote(1)
    wait_until(lambda: "needs CPU: 9, the largest has 2" in oxiray("status"))
    wait_until(lambda: "1 of 2 in use" in oxiray("status"))
    gate.open()
    ray.get(running)
    del never
    nowhere = os.path.join(os.environ["OXIRAY_TMPDIR"], "nothing")
    assert oxiray("status", code=NOTHING_RUNS, OXIRAY_TMPDIR=nowhere)


def test_lists_of_everything(speaker):
    ray.get(work.remote(1))
    ref = ray.put(b"z" * 200_000)
    for resource in ("actors", "objects", "nodes", "workers", "jobs", "tasks"):
        wait_until(lambda resource=resource: rows(resource), message=resource)
        table = oxiray("list", resource)
        assert len(table.splitlines()) >= 2, table
        assert oxiray("list", resource, "--detail").count("\n") == table.count("\n")
        assert oxiray("list", resource, "--format=yaml").startswith("- ")
    del ref


def test_conditions_order_and_limit():
    assert rows("workers", "--filter=worker_type=driver")[0]["pid"] == os.getpid()
    others = rows("workers", "--filter", "worker_type!=DRIVER", "--filter=is_alive=true")
    assert others and all(row["worker_type"] == "WORKER" for row in others)
    sorted_pids = [row["pid"] for row in rows("workers", "--sort=-pid")]
    assert sorted_pids == sorted(sorted_pids, reverse=True)
    done = subprocess.run(
        [PROGRAM, "list", "workers", "--limit=1"], capture_output=True, text=True, timeout=60
    )
    assert len(done.stdout.splitlines()) == 2 and "--limit shows more" in done.stderr


def test_names_do_not_break_a_table(speaker):
    table = oxiray("list", "actors", "--filter=class_name=Speaker")
    assert len(table.splitlines()) == 2, table
    assert r"<b>\"'\n\u{1b}[31m\u{202e}" in table.replace("\"'", "\\\"'"), table
    assert "\x1b" not in table and "\u202e" not in table
    (row,) = rows("actors", "--filter=class_name=Speaker")
    assert row["name"] == NASTY


def test_yaml_is_yaml(speaker):
    yaml = pytest.importorskip("yaml")
    text = oxiray("list", "actors", "--format=yaml", "--detail")
    assert yaml.safe_load(text) == rows("actors", "--detail")


def test_get_shows_one(speaker):
    (row,) = rows("actors", "--filter=class_name=Speaker")
    shown = json.loads(oxiray("get", "actor", row["actor_id"], "--format=json"))
    assert shown["actor_id"] == row["actor_id"] and shown["state"] == "ALIVE"
    assert f'actor_id: "{row["actor_id"]}"' in oxiray("get", "actors", row["actor_id"][:20])
    assert "oxiray list actors" in oxiray("get", "actors", "ee" * 16, code=1)


def test_get_shows_all_holders_of_an_object():
    @ray.remote
    class Holder:
        def hold(self, refs):
            self.refs = refs
            return os.getpid()

    ref, holder = ray.put(b"z" * 200_000), Holder.remote()
    pid = ray.get(holder.hold.remote([ref]))
    held = json.loads(oxiray("get", "objects", ref.hex(), "--format=json"))
    assert [row["pid"] for row in held] == [os.getpid(), pid]
    assert oxiray("get", "objects", ref.hex()).count("object_id") == 2


def test_why_by_every_name(gate, tmp_path):
    @ray.remote
    class Busy:
        def wait(self):
            gate.wait()

        def next(self):
            pass

    busy = Busy.remote()
    running, waiting = busy.wait.remote(), busy.next.remote()
    runs = lambda: rows("tasks", "--filter=name=Busy.wait", "--filter=state=RUNNING")  # noqa: E731
    (row,) = wait_until(runs, message="it runs")
    (node,) = rows("nodes")
    for name in ("Busy.wait", "wait", running.hex(), row["task_id"], row["task_id"][:14]):
        said = oxiray("why", name)
        assert said.startswith(f"Busy.wait ({row['task_id']}) runs in process {row['worker_pid']} ")
        assert node["node_id"][:12] in said
    said = oxiray("why", "Busy.next")
    assert f"until it is done with Busy.wait ({row['task_id']}), which runs in process" in said
    gate.open()
    ray.get(waiting)
    done = wait_until(lambda: "FINISHED" in (said := oxiray("why", "Busy.wait")) and said)
    assert f"it ran in process {row['worker_pid']}" in done


def test_why_of_what_failed():
    @ray.remote(max_retries=0)
    def stumble():
        raise ValueError("over a stone")

    for _ in range(2):
        with pytest.raises(ValueError):
            ray.get(stumble.remote())
    said = oxiray("why", "stumble")
    assert "2 tasks called stumble are done: 0 FINISHED, 2 FAILED" in said
    assert "FAILED with TASK_EXECUTION_EXCEPTION: ValueError: over a stone" in said
    assert "there is no task or actor nobody" in oxiray("why", "nobody", code=1)


def test_summaries(speaker):
    ray.get([work.remote(i) for i in range(5)])

    def counted():
        lines = oxiray("summary", "tasks").splitlines()
        return [line for line in lines if line.startswith("work ")]

    wait_until(lambda: counted() and " FINISHED" in oxiray("summary", "tasks"), message="counted")
    summary = json.loads(oxiray("summary", "actors", "--format=json"))
    (group,) = [group for group in summary["rows"] if group["name"] == "Speaker"]
    assert group["states"]["ALIVE"] == 1


def test_summaries_say_every_state_in_the_order_of_a_life(speaker):
    ray.get(work.remote(1))
    titles = oxiray("summary", "workers").splitlines()[0].split()
    assert titles[:2] == ["NAME", "TYPE"] and "driver" in titles and "actor" in titles
    order = ["driver", "idle", "task", "actor", "ended"]
    assert titles[2:] == [activity for activity in order if activity in titles]


def test_conditions_are_taken_as_they_are_meant():
    ray.get(work.remote(1))
    wait_until(lambda: rows("tasks", "--filter=state==FINISHED"), message="a finished task")
    assert {row["name"] for row in rows("tasks", "--filter=NAME=work")} == {"work"}
    refusal = oxiray("list", "tasks", "--filter=state=FAILD", code=1)
    assert "FAILD" in refusal and "FINISHED, FAILED" in refusal
    with pytest.raises(ValueError, match="FINISHED, FAILED"):
        state.list_tasks(filters=[("state", "=", "FAILD")])


def test_how_busy_a_machine_is():
    """By two looks, also for whoever looks once."""
    (node,) = rows("nodes")
    assert 0 <= node["cpu_percent"] <= 100
    assert 0 <= state.list_nodes()[0].cpu_percent <= 100


COMMANDS = [
    ["list", "tasks"],
    ["list", "tasks", "--format=json"],
    ["list", "tasks", "--format=yaml"],
    ["summary", "tasks"],
    ["status"],
    ["memory"],
    ["logs"],
    ["dashboard"],
    ["timeline", "-o", "-"],
    ["--help"],
    ["list", "--help"],
    ["--version"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_output_that_takes_nothing(command):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [PROGRAM, *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 1, done.stderr
    said = done.stderr.splitlines()[-1]
    assert said == ("oxiray: the output cannot be written: No space left on device (os error 28)")
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as closed:
        done = subprocess.run(
            [PROGRAM, *command], stdout=closed, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert (done.returncode, done.stderr) == (0, "")


REMARKS = [
    ["list", "tasks", "--limit=1"],
    ["get", "task", "none"],
    ["why", "none"],
    ["status", "--address=1.2.3.4:5"],
    ["stack", "--pid=1"],
    ["start", "--address=127.0.0.1:1", "--insecure"],
    ["token", "--nothing"],
]


@pytest.mark.parametrize("command", [*COMMANDS, *REMARKS], ids=" ".join)
def test_an_error_stream_that_takes_nothing(command):
    wanted = subprocess.run([PROGRAM, *command], capture_output=True, timeout=60)
    with open("/dev/full", "w") as full:
        pipe = subprocess.PIPE
        done = subprocess.run([PROGRAM, *command], stdout=pipe, stderr=full, timeout=60)
        assert done.returncode == wanted.returncode >= 0
        assert bool(done.stdout) == bool(wanted.stdout)
        done = subprocess.run([PROGRAM, *command], stdout=full, stderr=full, timeout=60)
        assert done.returncode in (1, wanted.returncode)


def test_a_summary_shows_every_state_on_any_terminal(gate):
    holder = work.options(name="a_function_with_a_rather_long_name", num_cpus=0)
    ray.get(holder.remote(1))
    with pytest.raises(ZeroDivisionError):
        ray.get(fails.options(name="a_function_with_a_rather_long_name").remote())
    waiting = holder.remote(gate_keeper.remote(gate))
    wait_until(lambda: "PENDING_ARGS_AVAIL" in oxiray("summary", "tasks"))
    whole = oxiray("summary", "tasks")
    for columns in (80, 40):
        written = at_terminal([PROGRAM, "summary", "tasks"], columns)
        for heading in ("PENDING_ARGS_AVAIL", "RUNNING", "FINISHED", "FAILED"):
            assert heading in written and heading in whole, written
        assert columns < 80 or max(len(line) for line in written.splitlines()) <= columns
    gate.open()
    ray.get(waiting)


def test_a_table_fits_its_terminal(speaker):
    ray.get(work.options(name="a_task_with_" + "a_very_" * 10 + "long_name").remote(1))
    whole = oxiray("list", "tasks")
    assert max(len(line) for line in whole.splitlines()) > 120
    for columns in (100, 60):
        written = at_terminal([PROGRAM, "list", "tasks"], columns)
        assert max(len(line) for line in written.splitlines()) <= columns, written
        assert "…" in written and "TASK_ID" in written
        # What is left of an id is enough for `get`.
        (line,) = [line for line in written.splitlines() if " a_task_" in line]
        shown = json.loads(oxiray("get", "task", line.split()[0], "--format=json"))
        assert shown["name"].endswith("long_name")


def at_terminal(command, columns):
    """What a command shows at the terminal that is its standard output, less the colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    written = bytearray()
    try:
        while piece := os.read(ours, 65536):
            written += piece
    except OSError:  # the other side is closed
        pass
    finally:
        os.close(ours)
    assert process.wait(60) == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", written.decode())


def test_wrong_questions():
    assert "there are no 'things'" in oxiray("list", "things", code=1).replace('"', "'")
    refusal = oxiray("list", "nodes", "--filter=colour=red", code=1)
    assert "colour" in refusal and "node_ip" in refusal
    assert "key=value" in oxiray("list", "nodes", "--filter=red", code=1)
    oxiray("list", "nodes", "--format=xml", code=2)
    for command in (["list", "nodes"], ["memory"], ["why", "f"], ["dashboard"]):
        assert "1.2.3.4:5" in oxiray(*command, "--address=1.2.3.4:5", code=NOTHING_RUNS)
    refusal = oxiray("get", "task", "zz", code=1)
    assert "among the tasks; `oxiray list tasks` shows all" in refusal


def test_nothing_runs():
    with tempfile.TemporaryDirectory(dir=BASE) as empty:
        for command in (["list", "tasks"], ["get", "node", "ab"], ["summary", "tasks"], ["logs"]):
            text = oxiray(*command, code=NOTHING_RUNS, OXIRAY_TMPDIR=empty)
            assert "no Oxiray session" in text


def test_a_session_that_hangs_is_counted_and_not_waited_for():
    with tempfile.TemporaryDirectory(dir=BASE, prefix="session_0") as hung:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(f"{hung}/node.sock")
            listener.listen()
            done = subprocess.run(
                [PROGRAM, "list", "nodes"], capture_output=True, text=True, timeout=60
            )
        assert done.returncode == 0 and "--address shows 1 other" in done.stderr
    done = subprocess.run([PROGRAM, "list", "nodes"], capture_output=True, text=True, timeout=60)
    assert "other" not in done.stderr


def test_logs(speaker):
    pid = ray.get(speaker.say.remote("first", "second", "third"))
    name = f"worker-{pid}.out"
    wait_until(lambda: name in oxiray("logs"), message="the file is listed")
    assert oxiray("logs", name) == "first\nsecond\nthird\n"
    assert (
        oxiray("logs", name, "--tail=1") == oxiray("logs", f"--pid={pid}", "--tail=1") == "third\n"
    )
    (row,) = rows("actors", "--filter=class_name=Speaker")
    assert oxiray("logs", "--actor-id", row["actor_id"], "--tail=2") == "second\nthird\n"
    node = state.list_nodes()[0].node_id
    assert name in oxiray("logs", f"--node-id={node[:16]}")
    assert "no log file" in oxiray("logs", "../node.sock", code=1)
    assert "no node" in oxiray("logs", "--node-id=zz", code=1)


def test_logs_are_followed(speaker):
    pid = ray.get(speaker.say.remote("begin"))
    wait_until(lambda: f"worker-{pid}.out" in oxiray("logs"), message="the file is listed")
    follow = subprocess.Popen(
        [PROGRAM, "logs", f"--pid={pid}", "--follow", "--tail=1"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert follow.stdout.readline() == "begin\n"
        ray.get(speaker.say.remote("and more"))
        assert follow.stdout.readline() == "and more\n"
    finally:
        follow.kill()
        follow.communicate()


def test_stacks_or_how_to_have_them(speaker):
    done = subprocess.run([PROGRAM, "stack"], capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        assert "Process" in done.stdout
        (row,) = rows("actors", "--filter=class_name=Speaker")
        assert f"actor Speaker ({row['actor_id']})" in done.stdout
    else:
        assert "pip install py-spy" in done.stderr or "ptrace" in done.stderr, done.stderr
    assert "none of the session's" in oxiray("stack", "--pid=1", code=1)


def test_a_timeline_is_written(tmp_path):
    ray.get(work.remote(1))
    path = tmp_path / "t.json"

    def written():
        oxiray("timeline", "-o", str(path))
        return any(event.get("name") == "work" for event in json.loads(path.read_text()))

    wait_until(written, message="the task is in it")
    assert json.loads(oxiray("timeline", "-o", "-"))
    assert "cannot be written" in oxiray("timeline", "-o", "/nowhere/t.json", code=1)
