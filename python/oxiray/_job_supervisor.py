"""The supervisor of a job: an actor that runs its entrypoint and writes down how that goes.

It is a detached actor, so that the job outlives whoever handed it in. The entrypoint's processes
are in the process group of the supervisor's worker, and so end with it, however it ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

from . import _jobs, _native, _settings, _threads

# What is of this worker, and not of the programs that it starts.
_OWN = ("OXIRAY_SESSION_DIR", "OXIRAY_SYS_PATH", "OXIRAY_DRIVER_MODULES", "OXIRAY_ENVIRONMENT",
        "OXIRAY_ENVIRONMENT_NUMBER", "OXIRAY_ENVIRONMENT_PATHS")  # fmt: skip


class Supervisor:
    def __init__(self, submission_id: str) -> None:
        self._id = submission_id
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_started = self._is_stopped = False

    def start(self, entrypoint: str) -> None:
        """Starts the entrypoint, once however often it is asked to; it may fail later."""
        with self._lock:
            if self._is_started:
                return None
            self._is_started = True
            if self._is_stopped:
                return self._end("STOPPED", None)
            path = os.path.join(_native.context()["session_dir"], "logs", _jobs.log_name(self._id))
            node = _native.context()["node_id"].hex()
            now = int(time.time() * 1000)
            _jobs.change(self._id, status="RUNNING", start_time=now, driver_node_id=node)
            try:
                with open(path, "ab", buffering=0, opener=_private) as log:
                    self._process = subprocess.Popen(
                        entrypoint,
                        shell=True,
                        executable="/bin/bash" if os.path.exists("/bin/bash") else None,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        env=self._environment(),
                    )
            except (OSError, ValueError) as error:
                return self._end("FAILED", None, f"It cannot be started: {error}")
        threading.Thread(target=self._watch, name="job", daemon=True).start()
        return None

    def stop(self) -> None:
        """Ends the entrypoint: by SIGTERM, and what is left of it after a while by SIGKILL."""
        with self._lock:
            self._is_stopped = True
        if self._process is None:
            return
        _signal_others(signal.SIGTERM)
        patience = _settings.number("RAY_JOB_STOP_WAIT_TIME_S", 0, 1e6)
        until = time.monotonic() + patience
        while time.monotonic() < until and _others():
            time.sleep(0.05)
        _signal_others(signal.SIGKILL)

    def ping(self) -> bool:
        return True

    def _environment(self) -> dict[str, str]:
        environment = {name: value for name, value in os.environ.items() if name not in _OWN}
        environment = _threads.without_ours(environment)
        address = _native.context()["control"]
        return {
            **environment,
            "RAY_ADDRESS": address,
            "OXIRAY_ADDRESS": address,
            "OXIRAY_JOB_RUNTIME_ENV": _native.environment(),
            "OXIRAY_JOB_SUBMISSION_ID": self._id,
            "PYTHONUNBUFFERED": "1",
            # Its `python` is the workers', which has the package.
            "PATH": os.pathsep.join(
                [os.path.dirname(sys.executable), environment.get("PATH", os.defpath)]
            ),
        }

    def _watch(self) -> None:
        assert self._process is not None
        code = self._process.wait()
        with self._lock:
            is_stopped = self._is_stopped
        if is_stopped:
            return self._end("STOPPED", code)
        if code == 0:
            return self._end("SUCCEEDED", code)
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        return self._end("FAILED", code, f"Job entrypoint command failed with {how}.")

    def _end(self, status: str, code: int | None, message: str | None = None) -> None:
        wrong = "JOB_ENTRYPOINT_COMMAND_ERROR" if status == "FAILED" else None
        if status == "FAILED" and self._process is None:
            wrong = "JOB_ENTRYPOINT_COMMAND_START_ERROR"
        _signal_others(signal.SIGKILL)  # what the entrypoint left behind
        _jobs.change(
            self._id,
            status=status,
            driver_exit_code=code,
            message=message,
            error_type=wrong,
            end_time=int(time.time() * 1000),
        )
        from . import _named_actors

        own = _named_actors.find(_jobs.actor_name(self._id), _jobs.NAMESPACE)
        if own is not None:
            own.__ray_terminate__.remote()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _others() -> list[int]:
    """The other processes of this one's group that live."""
    group, found = os.getpgid(0), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        pid = int(name)
        try:
            if pid == os.getpid() or os.getpgid(pid) != group:
                continue
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] not in "ZX":
                    found.append(pid)
        except OSError:
            continue
    return found


def _signal_others(number: signal.Signals) -> None:
    for pid in _others():
        try:
            os.kill(pid, number)
        except OSError:
            continue
