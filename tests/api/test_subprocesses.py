"""What tasks and actors start ends with their worker, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import oxiray as ray
import pytest
from conftest import is_alive, wait_until

SOON = 10


@ray.remote
class Starter:
    def start(self):
        """A program, one that a shell started, and one that has its own session."""
        plain = subprocess.Popen(["sleep", "1000"])
        shell = subprocess.Popen(
            "sleep 1000 & echo $!; wait", shell=True, stdout=subprocess.PIPE, text=True
        )
        script = "import os; os.fork() or print(os.getpid(), flush=True); os.system('sleep 1000')"
        forked = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        pids = [plain.pid, shell.pid, int(shell.stdout.readline()), forked.pid]
        return os.getpid(), [*pids, int(forked.stdout.readline())]

    def start_apart(self):
        return subprocess.Popen(["sleep", "1000"], start_new_session=True).pid


def gone(pids):
    return lambda: not any(map(is_alive, pids))


@pytest.mark.parametrize("how", ["ray.kill", "SIGKILL", "last handle", "exit", "shutdown"])
def test_they_end_with_an_actor(fresh, how):
    fresh()
    actor = Starter.remote()
    worker, pids = ray.get(actor.start.remote())
    assert all(map(is_alive, pids))
    if how == "ray.kill":
        ray.kill(actor)
    elif how == "SIGKILL":
        os.kill(worker, signal.SIGKILL)
    elif how == "last handle":
        del actor
    elif how == "exit":
        actor.__ray_call__.remote(lambda self: os._exit(3))
    else:
        ray.shutdown()
    wait_until(gone(pids), SOON, how)


def test_they_end_with_a_worker_of_tasks(fresh):
    fresh(num_cpus=1)

    @ray.remote
    def start():
        return os.getpid(), subprocess.Popen(["sleep", "1000"]).pid

    @ray.remote
    def look(pid):
        return is_alive(pid)

    worker, pid = ray.get(start.remote())
    assert ray.get(look.remote(pid)), "its worker lives"
    os.kill(worker, signal.SIGKILL)
    wait_until(gone([pid]), SOON)


@pytest.mark.parametrize("what", ["oxirayd", "zygote", "driver"])
def test_they_end_when_something_else_was_killed(driver, what):
    process = driver.start(
        """
        import os, subprocess, sys, time
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error")

        @ray.remote
        class Starter:
            def start(self):
                return os.getpid(), os.getppid(), subprocess.Popen(["sleep", "1000"]).pid

        starter = Starter.remote()
        worker, zygote, child = ray.get(starter.start.remote())
        with open(f"/proc/{zygote}/stat") as file:
            service = file.read().rpartition(")")[2].split()[1]
        print(os.getpid(), worker, zygote, service, child, flush=True)
        input()
        ray.kill(starter)
        input()
        """,
        stdin=subprocess.PIPE,
    )
    pids = [int(word) for word in process.stdout.readline().split()]
    me, worker, zygote, service, child = pids
    os.kill({"oxirayd": service, "zygote": zygote, "driver": me}[what], signal.SIGKILL)
    if what == "zygote":
        wait_until(gone([zygote]), SOON)
        assert is_alive(worker) and is_alive(child), "they do not need it"
        process.stdin.write("\n")
        process.stdin.flush()
    wait_until(gone([worker, child]), SOON)
    process.communicate()
    driver.clean()


def test_one_that_made_a_session_of_its_own_is_left_alone(fresh):
    fresh()
    actor = Starter.remote()
    pid = ray.get(actor.start_apart.remote())
    ray.kill(actor)
    ray.shutdown()
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)
