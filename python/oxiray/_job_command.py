"""`oxiray job` and `ray job`: hands in jobs, and shows what becomes of them."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
from typing import Any, NoReturn

from .job_submission import JobDetails, JobStatus, JobSubmissionClient


def main(arguments: list[str] | None = None) -> NoReturn:
    given = sys.argv[1:] if arguments is None else arguments
    parser = _parser()
    options = parser.parse_args(given)
    try:
        sys.exit(options.run(options))
    except (ValueError, TypeError, RuntimeError, ConnectionError) as error:
        print(f"oxiray job: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="oxiray job", description=__doc__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Any, about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about)
        added.add_argument(
            "--address",
            help="of the dashboard, as `oxiray dashboard` prints it; the cluster of this machine "
            "unless given",
        )
        added.add_argument("--headers", type=_json, help="sent with every request, as JSON")
        added.add_argument("--verify", default=True, type=_verify, help="False, or a certificate")
        added.add_argument("-v", "--verbose", action="store_true", help=argparse.SUPPRESS)
        added.set_defaults(run=run)
        return added

    submit = command("submit", _submit, "Run a command on the cluster.")
    submit.add_argument("--submission-id", "--job-id", help="its id; made up unless given")
    submit.add_argument("--runtime-env", help="a file of JSON or YAML")
    submit.add_argument("--runtime-env-json", type=_json_text, help="the environment as JSON")
    submit.add_argument("--working-dir", help="the current directory of the job: a path or address")
    submit.add_argument("--metadata-json", type=_json, help="texts by names, as JSON")
    submit.add_argument("--entrypoint-num-cpus", type=float, help="reserved for the command")
    submit.add_argument("--entrypoint-num-gpus", type=float)
    submit.add_argument("--entrypoint-memory", type=int, help="in bytes")
    submit.add_argument("--entrypoint-resources", type=_json, help="amounts by names, as JSON")
    submit.add_argument("--no-wait", action="store_true", help="do not follow what it prints")
    submit.add_argument("entrypoint", nargs=argparse.REMAINDER, help="-- COMMAND ARGUMENT ...")
    for name, run, about in (
        ("status", _status, "Show how a job is."),
        ("stop", _stop, "End a job: cleanly, and if it does not, by force."),
        ("delete", _delete, "Forget a job that is over."),
        ("logs", _logs, "Show what a job has printed."),
    ):
        command(name, run, about).add_argument("job_id", metavar="ID")
    commands.choices["logs"].add_argument("-f", "--follow", action="store_true")
    commands.choices["stop"].add_argument("--no-wait", action="store_true")
    command("list", _list, "List jobs, and programs that connected by themselves.")
    return parser


def _json_text(text: str) -> str:
    _json(text)
    return text


def _json(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("this must be an object of JSON: {...}")
    return value


def _verify(text: str) -> str | bool:
    return {"true": True, "false": False}.get(text.lower(), text)


def _client(options: argparse.Namespace) -> JobSubmissionClient:
    return JobSubmissionClient(options.address, headers=options.headers, verify=options.verify)


def _submit(options: argparse.Namespace) -> int:
    words = options.entrypoint[1:] if options.entrypoint[:1] == ["--"] else options.entrypoint
    if not words:
        raise ValueError("submit needs the command to run: oxiray job submit -- python program.py")
    client = _client(options)
    job = client.submit_job(
        entrypoint=shlex.join(words) if len(words) > 1 else words[0],
        submission_id=options.submission_id,
        runtime_env=_runtime_env(options),
        metadata=options.metadata_json,
        entrypoint_num_cpus=options.entrypoint_num_cpus,
        entrypoint_num_gpus=options.entrypoint_num_gpus,
        entrypoint_memory=options.entrypoint_memory,
        entrypoint_resources=options.entrypoint_resources,
    )
    print(f"Job '{job}' submitted successfully", flush=True)
    print(f"    oxiray job logs {job} --follow\n    oxiray job stop {job}", flush=True)
    if options.no_wait:
        return 0
    return _follow(client, job)


def _runtime_env(options: argparse.Namespace) -> dict[str, Any]:
    from .job_submission._arguments import parse_runtime_env_args

    try:
        return parse_runtime_env_args(
            options.runtime_env, options.runtime_env_json, options.working_dir
        )
    except OSError as error:
        raise ValueError(f"--runtime-env {options.runtime_env}: {error.strerror}") from None


def _follow(client: JobSubmissionClient, job: str) -> int:
    async def print_all() -> None:
        async for text in client.tail_job_logs(job):
            sys.stdout.write(text)
            sys.stdout.flush()

    asyncio.run(print_all())
    return _say(client.get_job_info(job))


def _say(info: JobDetails) -> int:
    """How a job is; as an exit code, whether it has failed."""
    name = info.submission_id or info.job_id
    more = f": {info.message}" if info.message and info.status is not JobStatus.SUCCEEDED else ""
    print(f"Job '{name}' {_WORDS[info.status]}{more}")
    return 0 if info.status in (JobStatus.SUCCEEDED, JobStatus.RUNNING, JobStatus.PENDING) else 1


_WORDS = {
    JobStatus.PENDING: "has not started yet",
    JobStatus.RUNNING: "is running",
    JobStatus.STOPPED: "was stopped",
    JobStatus.SUCCEEDED: "succeeded",
    JobStatus.FAILED: "failed",
}


def _status(options: argparse.Namespace) -> int:
    info = _client(options).get_job_info(options.job_id)
    print(f"Status for job '{info.submission_id}': {info.status}")
    if info.message:
        print(f"Status message: {info.message}")
    return 0


def _logs(options: argparse.Namespace) -> int:
    client = _client(options)
    if options.follow:
        return _follow(client, options.job_id)
    sys.stdout.write(client.get_job_logs(options.job_id))
    return 0


def _stop(options: argparse.Namespace) -> int:
    import time

    client = _client(options)
    if not client.stop_job(options.job_id):
        print(f"Job '{options.job_id}' was over already")
        return 0
    while not options.no_wait:
        info = client.get_job_info(options.job_id)
        if info.status.is_terminal():
            print(f"Job '{options.job_id}' {_WORDS[info.status]}")
            return 0
        time.sleep(0.2)
    print(f"Job '{options.job_id}' is being stopped")
    return 0


def _delete(options: argparse.Namespace) -> int:
    _client(options).delete_job(options.job_id)
    print(f"Job '{options.job_id}' deleted successfully")
    return 0


def _list(options: argparse.Namespace) -> int:
    jobs = _client(options).list_jobs()
    if not jobs:
        print("There are no jobs")
    for job in jobs:
        name = job.submission_id or job.job_id or ""
        print(f"{name:28} {job.type.value:10} {job.status.value:9} {job.entrypoint}")
    return 0


if __name__ == "__main__":
    main()
