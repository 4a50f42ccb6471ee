"""Machines that nodes are started on by the real commands: a directory of its own for each and, if
it has one, a network of its own."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap

import oxiray
from conftest import BASE, is_alive, processes_under, wait_until

PROGRAM = os.path.join(os.path.dirname(oxiray.__file__), "_bin", "oxiray")
NOTHING_RUNS = 3


class Machine:
    """Where `oxiray` is run, and programs that use it."""

    def __init__(self, ip="127.0.0.1", prefix=()):
        self.ip = ip
        self.prefix = list(prefix)
        self.comes_back = False
        self.base = tempfile.mkdtemp(prefix="m-", dir=BASE)
        ours = ("OXIRAY_", "RAY_")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            "OXIRAY_TMPDIR": self.base,
            "OXIRAY_KEEP_SESSIONS": "0",
            "OXIRAY_PYTHON": sys.executable,
            # Nodes of which nothing is heard are given up after 3 s: tests wait for that.
            "RAY_health_check_initial_delay_ms": "0",
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_timeout_ms": "1500",
            "RAY_health_check_failure_threshold": "4",
            "OXIRAY_PYTHON_VERSION": f"{sys.version_info[0]}.{sys.version_info[1]}",
        }

    def __call__(self, *arguments, code=0, **env):
        """The finished command, which ended with `code`; None: with any."""
        done = subprocess.run(
            [*self.prefix, PROGRAM, *map(str, arguments)],
            env={**self.environment, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert code in (None, done.returncode), (
            arguments,
            done.returncode,
            done.stdout,
            done.stderr,
        )
        return done

    def start_head(self, *arguments, port=0, **env):
        self.comes_back = any(str(argument).startswith("--store") for argument in arguments)
        head = ("start", "--head", f"--node-ip-address={self.ip}", f"--port={port}")
        self(*head, *arguments, **env)
        return self

    def stand_by(self, head, store, *arguments, **env):
        """Waits to take over from that head."""
        env.setdefault("OXIRAY_TOKEN", head("token").stdout.strip())
        return self.start_head("--standby", f"--store={store}", *arguments, **env)

    def kill(self):
        """Kills everything on it, at once."""
        for pid in processes_under(self.base):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_until(lambda: not any(map(is_alive, processes_under(self.base))), 10, "all are killed")

    def join(self, head, *arguments, **env):
        if "--insecure" not in arguments:
            env.setdefault("OXIRAY_TOKEN", head("token").stdout.strip())
        self(
            "start",
            f"--address={head.address}",
            f"--node-ip-address={self.ip}",
            *arguments,
            **env,
        )
        return self

    def record(self):
        """The fields of the node's file."""
        folder = f"{self.base}/started"
        (name,) = os.listdir(folder)
        with open(f"{folder}/{name}") as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file)

    @property
    def address(self):
        """Of the cluster's control service."""
        return self.record()["address"]

    @property
    def node_id(self):
        return self.record()["node_id"]

    def pid(self, which="node_pid"):
        return int(self.record()[which].split()[0])

    def start_program(self, source, *arguments):
        """Runs Python here, its output in pipes: a driver."""
        return subprocess.Popen(
            [*self.prefix, sys.executable, "-u", "-c", textwrap.dedent(source), *arguments],
            env=self.environment,
            cwd=self.base,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run_program(self, source, *arguments, timeout=60):
        """What the program printed, once it has ended well."""
        return finish(self.start_program(source, *arguments), timeout)

    def pause(self):
        """Stops the control service of this head."""
        os.kill(self.pid("control_pid"), signal.SIGSTOP)

    def resume(self):
        os.kill(self.pid("control_pid"), signal.SIGCONT)

    def kill_control(self):
        """Kills the control service of this head."""
        descriptor = os.pidfd_open(self.pid("control_pid"))
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            # Until all of its threads have ended: its first one is a zombie before.
            assert select.select([descriptor], [], [], 10)[0], "the control service does not die"
        finally:
            os.close(descriptor)

    def start_control_again(self, *arguments):
        """Starts it again after that, where it was."""
        port = self.address.rpartition(":")[2]
        self("start", "--head", f"--port={port}", *arguments)

    def end(self):
        """Stops everything; what does not end is killed and told. Then the directory goes."""
        trouble = []
        try:
            self("stop")
            wait_until(lambda: not processes_under(self.base), 20, "all processes end")
            # A cluster whose state is elsewhere is meant to come back, by its token.
            kept = ("clusters",) if self.comes_back else ()
            left = [name for name in os.listdir(self.base) if name not in kept]
            trouble += [f"left behind: {left}"] if left else []
        except BaseException as error:
            trouble.append(error)
        self.kill()
        shutil.rmtree(self.base)
        assert not trouble, trouble


def finish(process, timeout=60):
    """What a program printed, once it has ended well."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"not done within {timeout} s; it printed\n{out}\n{err}") from None
    assert process.returncode == 0, f"ended with {process.returncode}; it printed\n{out}\n{err}"
    return out
