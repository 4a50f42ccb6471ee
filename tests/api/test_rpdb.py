"""Breakpoints in tasks, answered from another terminal, and what `ps` calls workers."""

from __future__ import annotations

import os
import subprocess
import sys

import oxiray as ray
from conftest import wait_until
from oxiray.util import rpdb

RAY = [sys.executable, "-c", "from oxiray._ray_command import main; main()"]


def stopped():
    session = ray.get_runtime_context()._view()["session_dir"]
    return rpdb.breakpoints(session)


def answer(text, *options):
    done = subprocess.run(
        [*RAY, "debug", *options], input=text, capture_output=True, text=True, timeout=60
    )
    return done.stdout, done.returncode, done.stderr


def test_a_breakpoint_of_a_task(fresh):
    fresh()

    @ray.remote
    def work(x):
        secret = x * 2
        rpdb.set_trace()
        return secret

    ref = work.remote(21)
    (point,) = wait_until(stopped)
    assert point.function == "work" and os.path.basename(__file__) in point.place
    assert ray.wait([ref], timeout=0) == ([], [ref])
    out, code, err = answer("p secret\nsecret = 99\np x + 1\nc\n")
    assert code == 0, err
    assert "0: work (pid" in out and "42" in out and "22" in out
    assert ray.get(ref, timeout=30) == 99
    assert stopped() == []


def test_who_leaves_lets_the_task_go_on(fresh):
    fresh()

    @ray.remote
    class Actor:
        def work(self):
            rpdb.set_trace()
            return 7

    ref = Actor.remote().work.remote()
    wait_until(stopped)
    _, code, _ = answer("")
    assert code == 0
    assert ray.get(ref, timeout=30) == 7


def test_a_task_at_a_breakpoint_can_be_cancelled(fresh):
    fresh()

    @ray.remote
    def work():
        rpdb.set_trace()

    ref = work.remote()
    wait_until(stopped)
    ray.cancel(ref)
    try:
        ray.get(ref, timeout=30)
        raise AssertionError("it was cancelled")
    except ray.exceptions.TaskCancelledError:
        pass
    wait_until(lambda: not stopped())


def test_there_is_none(fresh):
    fresh()
    ray.get_runtime_context().get_job_id()
    _, code, err = answer("")
    assert code == 1 and "no task waits at a breakpoint" in err


def test_what_ps_calls_workers(fresh):
    fresh()

    def title(pid):
        with open(f"/proc/{pid}/cmdline") as file, open(f"/proc/{pid}/comm") as comm:
            return file.read().rstrip("\0"), comm.read().strip()

    @ray.remote
    def crunch():
        return os.getpid()

    @ray.remote
    class ParameterServer:
        def pid(self):
            return os.getpid()

    assert title(ray.get(crunch.remote())) == ("ray::crunch", "ray::crunch")
    server = ParameterServer.remote()
    assert title(ray.get(server.pid.remote())) == ("ray::ParameterServer", "ray::ParameterS")

    @ray.remote
    def environment():
        return os.environ.get("OXIRAY_TMPDIR"), os.getpid()

    value, pid = ray.get(environment.remote())
    with open(f"/proc/{pid}/environ", "rb") as file:
        assert f"OXIRAY_TMPDIR={value}".encode() in file.read().split(b"\0")
