"""The clerk of a cluster's jobs: answers what the dashboard is asked about them.

The dashboard starts it as `python -m oxiray._job_clerk SESSION_DIR`. It is connected as a program
of the cluster. Each line of its input is a question in JSON, each line of its output the answer:
`{"status": an HTTP status, "body": ...}`. When its input ends it ends, but not before the jobs that
it was to start have started. If it was killed before, the next clerk starts them.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import Any

import oxiray as ray

from . import _address, _jobs, _native
from ._job_programs import Programs
from ._job_supervisor import Supervisor
from ._version import ray_version
from .exceptions import RayError, RuntimeEnvSetupError

_ID = re.compile(r"[A-Za-z0-9._-]{1,200}")
_LETTERS = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_FIELDS = {
    "entrypoint": str,
    "submission_id": str,
    "job_id": str,
    "runtime_env": dict,
    "metadata": dict,
    "entrypoint_num_cpus": (int, float),
    "entrypoint_num_gpus": (int, float),
    "entrypoint_memory": int,
    "entrypoint_resources": dict,
    "entrypoint_label_selector": dict,
}


class Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Clerk:
    def __init__(self) -> None:
        # What says that a job has started, or why it has not.
        self._starting: dict[str, ray.ObjectRef] = {}
        # Of those the ones whose supervisor a clerk before this one made: it may go with that.
        self._inherited: set[str] = set()
        for job in _jobs.ids():
            self._details(job)

    def answer(self, question: dict[str, Any]) -> tuple[int, Any]:
        verb = question["verb"]
        self._look_at_starts()
        try:
            if verb == "version":
                return 200, self._version()
            if verb == "submit":
                return 200, self._submit(question["wanted"])
            if verb == "list":
                return 200, self._all()
            job = question["id"]
            if not _ID.fullmatch(job) or _jobs.get(job) is None:
                raise Refused(404, f"Job {job} does not exist: no job was handed in by that id.")
            if verb == "info":
                return 200, Programs().with_driver(self._details(job))
            if verb == "stop":
                return 200, {"stopped": self._stop(job)}
            if verb == "delete":
                return 200, {"deleted": self._delete(job)}
            return 200, self._logs(job, question.get("after"))
        except Refused as refused:
            return refused.status, {"error": str(refused)}
        except (ValueError, TypeError) as error:
            return 400, {"error": str(error)}
        except (RayError, OSError) as error:
            return 500, {"error": str(error)}

    def finish(self) -> None:
        """Waits until every job has started, or failed to."""
        while self._starting:
            ray.wait(list(self._starting.values()), timeout=10)
            self._look_at_starts()

    def _version(self) -> dict[str, str]:
        return {
            "version": "4",
            "ray_version": ray_version,
            "ray_commit": "oxiray",
            "session_name": os.path.basename(_native.context()["session_dir"]),
        }

    def _submit(self, wanted: Any) -> dict[str, str]:
        if not isinstance(wanted, dict):
            raise Refused(400, "The body must be a JSON object with 'entrypoint'.")
        for name, value in wanted.items():
            if name not in _FIELDS:
                raise Refused(400, f"{name!r} is not a field of a job; {', '.join(_FIELDS)} are.")
            if value is not None and not isinstance(value, _FIELDS[name]):  # type: ignore[arg-type]
                raise Refused(400, f"{name} has the wrong type: {value!r}")
        entrypoint = wanted.get("entrypoint")
        if not entrypoint:
            raise Refused(400, "A job needs an 'entrypoint': the command that it runs.")
        if "\0" in entrypoint:
            raise Refused(400, "entrypoint: a command cannot have a null character in it.")
        metadata = wanted.get("metadata") or {}
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise Refused(400, f"metadata must be a dict of strings to strings, not {metadata!r}")
        job = wanted.get("submission_id") or wanted.get("job_id") or _new_id()
        if not _ID.fullmatch(job):
            raise Refused(400, f"submission_id: {job!r} may have letters, digits and `._-` only.")
        info = {
            **{name: wanted.get(name) for name in _FIELDS if name.startswith("entrypoint")},
            "status": "PENDING",
            "message": _jobs.message("PENDING"),
            "submission_id": job,
            "metadata": metadata,
            "runtime_env": wanted.get("runtime_env") or {},
            "start_time": int(time.time() * 1000),
        }
        supervisor = _supervisor(job, info)  # what is wrong with it is told before it is a job
        if not _jobs.add(job, info):
            raise Refused(
                400,
                f"Job with submission_id {job} already exists. Please use a different "
                "submission_id.",
            )
        try:
            self._begin(job, entrypoint, supervisor)
        except BaseException:
            _jobs.remove(job)
            raise
        return {"job_id": job, "submission_id": job}

    def _begin(self, job: str, entrypoint: str, supervisor: Any) -> None:
        self._starting[job] = supervisor.remote(job).start.remote(entrypoint)

    def _begin_again(self, job: str, info: dict[str, Any]) -> None:
        """Its clerk was killed before it had begun."""
        try:
            supervisor = _supervisor(job, info)
        except (ValueError, TypeError, RayError) as error:
            self._fail(job, "JOB_SUPERVISOR_ACTOR_START_FAILURE", str(error))
            return
        try:
            self._begin(job, info["entrypoint"], supervisor)
        except ValueError:
            pass  # the one before has the name still: the next question finds it gone
        except RayError as error:
            self._fail(job, "JOB_SUPERVISOR_ACTOR_START_FAILURE", str(error))

    def _look_at_starts(self) -> None:
        if not self._starting:
            return
        refs = list(self._starting.values())
        done, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        for job, ref in list(self._starting.items()):
            if ref in done:
                del self._starting[job]
                self._note_failed_start(job, ref)
                self._inherited.discard(job)

    def _note_failed_start(self, job: str, ref: ray.ObjectRef) -> None:
        try:
            ray.get(ref)
        except RuntimeEnvSetupError as error:
            wrong, why = "RUNTIME_ENV_SETUP_FAILURE", f"runtime_env setup failed: {error}"
        except RayError as error:
            info = _jobs.get(job)
            if job in self._inherited and info and info.get("status") == "PENDING":
                self._begin_again(job, info)
                return
            wrong, why = "JOB_SUPERVISOR_ACTOR_START_FAILURE", str(error)
        else:
            return
        self._fail(job, wrong, why)

    def _fail(self, job: str, wrong: str, why: str) -> None:
        now = int(time.time() * 1000)
        _jobs.change(job, status="FAILED", message=why, error_type=wrong, end_time=now)

    def _details(self, job: str) -> dict[str, Any]:
        info = _jobs.get(job) or {}
        if info.get("status") not in _jobs.ENDED and job not in self._starting:
            is_waiting = info.get("status") == "PENDING"
            try:
                supervisor: Any = ray.get_actor(_jobs.actor_name(job), _jobs.NAMESPACE)
                if is_waiting:
                    self._starting[job] = supervisor.start.remote(info["entrypoint"])
                    self._inherited.add(job)
            except ValueError:
                if is_waiting:
                    self._begin_again(job, info)
                else:
                    # It may have ended by itself just now, and said so before.
                    self._fail(job, "JOB_SUPERVISOR_ACTOR_DIED", "The process that ran it is gone.")
                info = _jobs.get(job) or {}
        return {"type": "SUBMISSION", "job_id": None, **info}

    def _all(self) -> list[dict[str, Any]]:
        jobs = [self._details(each) for each in _jobs.ids()]
        programs = Programs()
        return [programs.with_driver(job) for job in jobs] + programs.drivers()

    def _stop(self, job: str) -> bool:
        info = self._details(job)
        if info["status"] in _jobs.ENDED:
            return False
        try:
            supervisor = ray.get_actor(_jobs.actor_name(job), _jobs.NAMESPACE)
        except ValueError:
            return False
        if info["status"] == "PENDING":
            # It waits for room or its environment, and will not begin.
            _jobs.change(job, status="STOPPED", end_time=int(time.time() * 1000))
            self._starting.pop(job, None)
            ray.kill(supervisor)
        else:
            supervisor.stop.remote()
        return True

    def _delete(self, job: str) -> bool:
        info = self._details(job)
        if info["status"] not in _jobs.ENDED:
            raise Refused(
                400,
                f"Attempted to delete job {job}, but it is in a non-terminal state, "
                f"{info['status']}: stop it first",
            )
        _jobs.remove(job)
        return True

    def _logs(self, job: str, after: str | None) -> dict[str, Any]:
        info = self._details(job)
        node = info.get("driver_node_id")
        place: Any = json.loads(after) if after else None
        said = b""
        if node:
            try:
                said, place = _jobs.read_log(job, node, place)
            except (FileNotFoundError, ValueError) as error:
                said = f"The log is gone: {error}\n".encode() if place is None else b""
        is_over = info["status"] in _jobs.ENDED
        return {
            "logs": said.decode(errors="replace"),
            "after": json.dumps(place) if place else "",
            "status": info["status"],
            "is_over": is_over,
        }


def _supervisor(job: str, info: dict[str, Any]) -> Any:
    """What a job's actor is made by."""
    return ray.remote(Supervisor).options(
        name=_jobs.actor_name(job),
        namespace=_jobs.NAMESPACE,
        lifetime="detached",
        num_cpus=info.get("entrypoint_num_cpus") or 0,
        num_gpus=info.get("entrypoint_num_gpus"),
        memory=info.get("entrypoint_memory"),
        resources=info.get("entrypoint_resources"),
        label_selector=info.get("entrypoint_label_selector"),
        runtime_env=info.get("runtime_env") or None,
        max_concurrency=4,
    )


def _new_id() -> str:
    import secrets

    return "raysubmit_" + "".join(secrets.choice(_LETTERS) for _ in range(16))


def main() -> None:
    session = os.path.realpath(sys.argv[1])
    nodes = [n for n in _address.running() if os.path.realpath(n.session_dir) == session]
    if not nodes:
        refusal = {"error": "Jobs are handed in to a cluster: start one with `oxiray start --head`"}
        for line in sys.stdin:
            # Of a job by its name it is true, too, that there is none.
            status = 404 if "id" in json.loads(line) else 400
            print(json.dumps({"status": status, "body": refusal}), flush=True)
        return
    # What is printed must not get between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    ray.init(
        nodes[0].address, namespace=_jobs.NAMESPACE, log_to_driver=False, logging_level="error"
    )
    clerk = Clerk()
    for line in sys.stdin:
        status, body = clerk.answer(json.loads(line))
        answers.write(json.dumps({"status": status, "body": body}) + "\n")
        answers.flush()
    clerk.finish()


if __name__ == "__main__":
    main()
