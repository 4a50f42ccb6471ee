"""Logs as they grow: by the command line, by Python and by the dashboard."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading

import oxiray as ray
import pytest
from conftest import wait_until
from dashboard_client import Dashboard
from oxiray.cluster_utils import Cluster
from oxiray.util import state

PROGRAM = os.path.join(os.path.dirname(sys.executable), "oxiray")


@ray.remote(num_cpus=0)
class Speaker:
    def pid(self):
        return os.getpid()

    def say(self, *lines):
        for line in lines:
            print(line)

    def chatter(self, first, last):
        for number in range(first, last):
            print(f"line {number:6}")


@pytest.fixture(scope="module")
def session():
    """A session whose logs are cut into many short parts."""
    ray.shutdown()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ROTATION_MAX_BYTES", "20000")
        patch.setenv("RAY_ROTATION_BACKUP_COUNT", "1000")
        yield ray.init(num_cpus=1, logging_level="error", log_to_driver=False, dashboard_port=0)
    ray.shutdown()


@pytest.fixture
def speaker(session):
    return Speaker.remote()


def oxiray_logs(*arguments, code=0):
    done = subprocess.run([PROGRAM, "logs", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (arguments, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


class Follower:
    """`oxiray logs --follow`, ended with the test."""

    def __init__(self, *arguments, **env):
        self.program = subprocess.Popen(
            [PROGRAM, "logs", "--follow", *arguments],
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self.program

    def __exit__(self, *_):
        self.program.kill()
        self.program.communicate()


def numbers(text):
    return [int(number) for number in re.findall(r"^line +(\d+)$", text, re.MULTILINE)]


def test_no_line_is_lost_or_doubled_when_files_are_renamed(session, speaker):
    ray.get(speaker.chatter.remote(0, 10))
    pid = ray.get(speaker.pid.remote())
    name = f"worker-{pid}.out"
    wait_until(lambda: oxiray_logs(name, "--tail=1").endswith("     9\n"), message="it is written")
    board = Dashboard(session.dashboard_url)
    last = 20_000
    seen = {"python": "", "page": ""}

    def read(who, pieces):
        for text in pieces:
            seen[who] += text
            if f"line {last - 1:6}\n" in seen[who]:
                return

    def page():
        path = f"/api/logs/{ray.get_runtime_context().get_node_id()}/{name}/stream"
        for event, piece in board.stream(path):
            if event == "text":
                assert not piece["is_after_loss"]
                yield piece["text"]

    follow = state.get_log(pid=pid, follow=True, _interval=0.01)
    begun = next(page_events := page())
    assert numbers(begun) == list(range(10))
    readers = [
        threading.Thread(target=read, args=("python", follow)),
        threading.Thread(target=read, args=("page", page_events)),
    ]
    with Follower(f"--pid={pid}", "--tail=-1") as command:
        [reader.start() for reader in readers]
        ray.get(speaker.chatter.remote(10, last))
        lines = [command.stdout.readline() for _ in range(last)]
        assert numbers("".join(lines)) == list(range(last))
    [reader.join(60) for reader in readers]
    assert numbers(seen["python"]) == list(range(last))
    assert numbers(begun + seen["page"]) == list(range(last))
    # What is kept is all there, from the beginning and from the end.
    assert f"{name}.5\n" in oxiray_logs()
    assert numbers(oxiray_logs(name, "--tail=-1")) == list(range(last))
    assert numbers(oxiray_logs(name, "--tail=5000")) == list(range(last - 5000, last))
    assert numbers("".join(state.get_log(filename=name))) == list(range(last))
    assert numbers("".join(state.get_log(pid=pid, tail=5000))) == list(range(last - 5000, last))
    assert numbers(oxiray_logs(f"{pid}.out", "--tail=-1")) == list(range(last)), "by a part of it"
    # A part that is named is read alone.
    part = numbers(oxiray_logs(f"{name}.1", "--follow", "--tail=-1"))
    assert 0 < part[0] and part[-1] < last - 1 and part == list(range(part[0], part[-1] + 1))


def test_who_lost_the_connection_goes_on_where_it_was(session, speaker):
    ray.get(speaker.chatter.remote(0, 100))
    pid = ray.get(speaker.pid.remote())
    path = f"/api/logs/{ray.get_runtime_context().get_node_id()}/worker-{pid}.out"
    board = Dashboard(session.dashboard_url)
    wait_until(lambda: f"worker-{pid}.out" in oxiray_logs(), message="there is a log")
    wait_until(lambda: numbers(board.json(path)["text"])[-1:] == [99], message="it is written")
    begun = board.json(path)
    ray.get(speaker.chatter.remote(100, 10_000))
    text, events = (
        begun["text"],
        board.stream(f"{path}/stream?part={begun['part']}&offset={begun['next']}"),
    )
    while numbers(text)[-1] < 9999:
        event, piece = next(events)
        text += piece["text"] if event == "text" else ""
    events.close()
    assert numbers(text) == list(range(10_000))
    earlier = board.json(f"{path}?part={begun['part']}&offset=12&most=12")
    assert earlier["part"] == begun["part"] and earlier["text"] == f"line {1:6}\n"


def test_a_worker_that_has_printed_nothing_is_waited_for(session, speaker):
    pid = ray.get(speaker.pid.remote())
    said = oxiray_logs(f"--pid={pid}", code=1)
    assert said == f"oxiray: it has printed nothing: there is no file worker-{pid}.out\n"
    assert oxiray_logs(f"--pid={pid}", "--node-id=127.0.0.1", code=1) == said
    follow = state.get_log(actor_id=speaker._actor_id.hex(), follow=True, tail=3, _interval=0.01)
    with Follower(f"--actor-id={speaker._actor_id.hex()}", "--tail=2") as command:
        ray.get(speaker.say.remote("at last"))
        assert command.stdout.readline() == "at last\n"
        assert next(follow) == "at last\n"
        ray.get(speaker.say.remote("more"))
        assert command.stdout.readline() == next(follow) == "more\n"


def test_what_is_not_understood_is_refused(session, speaker):
    assert "no worker with the process id 1; " in oxiray_logs("--pid=1", code=1)
    assert "no worker with the process id 1; " in oxiray_logs("--pid=1", "--follow", code=1)
    actor = speaker._actor_id.hex()
    assert "cannot be used with" in oxiray_logs("--pid=1", f"--actor-id={actor}", code=2)
    assert "cannot be used with" in oxiray_logs("oxirayd.log", "--pid=1", code=2)
    assert "or -1 for all" in oxiray_logs("oxirayd.log", "--tail=-5", code=2)
    assert "which log" in oxiray_logs("--follow", code=1)
    with pytest.raises(ValueError, match="one of"):
        state.get_log(pid=1, actor_id=actor)
    with pytest.raises(ValueError, match="no worker with the process id 1"):
        state.get_log(pid=1)
    with pytest.raises(ValueError, match="or -1 for all"):
        state.get_log(pid=1, tail=-5)


def test_it_ends_when_nobody_reads_it(session, speaker):
    ray.get(speaker.say.remote("one"))
    with Follower(f"--pid={ray.get(speaker.pid.remote())}") as command:
        assert command.stdout.readline() == "one\n"
        command.stdout.close()
        # Nothing is printed that would tell it.
        assert command.wait(20) == 0


def test_it_ends_with_the_session(driver):
    program = driver.start(
        """
        import os, sys
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error", log_to_driver=False)

        @ray.remote
        def speak():
            print("one")
            return os.getpid()

        print(ray.get(speak.remote()))
        sys.stdin.read()
        """,
        stdin=subprocess.PIPE,
    )
    try:
        pid = int(program.stdout.readline())
        with Follower(f"--pid={pid}", OXIRAY_TMPDIR=driver.base) as command:
            assert command.stdout.readline() == "one\n"
            program.stdin.close()
            assert command.wait(20) == 0
            said = command.stderr.read()
        assert said == "oxiray: the session has ended, and its logs with it\n"
    finally:
        program.kill()
        program.wait()
        program.stdout.close()
        program.stderr.close()
    driver.clean()


def test_an_actor_whose_node_left_is_not_said_to_have_printed_nothing():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        other = cluster.add_node(num_cpus=1, resources={"there": 1})
        ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
        actor = Speaker.options(resources={"there": 1}).remote()
        ray.get(actor.say.remote("one"))
        id = actor._actor_id.hex()
        wait_until(lambda: state.get_actor(id).node_id == other.node_id, message="it is known")
        cluster.remove_node(other, allow_graceful=False)
        wait_until(lambda: state.get_actor(id).state == "DEAD", message="it is dead")
        said = oxiray_logs("--actor-id", id, code=1)
        assert f"node {other.node_id} is gone" in said and "Its logs" in said
    finally:
        ray.shutdown()
        cluster.shutdown()
