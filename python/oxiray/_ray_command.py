"""The command `ray`: Ray's words for what the command `oxiray` does.

Most words are the same. Options that have no meaning here are taken, so that scripts run, and said.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

from ._cli import become
from ._version import ray_version

# Of `ray start`: options that oxiray has none for, and whether a value follows.
_WITHOUT_MEANING = {
    "--node-name": True,
    "--redis-username": True,
    "--redis-password": True,
    "--redis-shard-ports": True,
    "--object-manager-port": True,
    "--min-worker-port": True,
    "--max-worker-port": True,
    "--worker-port-list": True,
    "--ray-client-server-port": True,
    "--dashboard-agent-listen-port": True,
    "--dashboard-agent-grpc-port": True,
    "--dashboard-grpc-port": True,
    "--runtime-env-agent-port": True,
    "--plasma-directory": True,
    "--autoscaling-config": True,
    "--no-redirect-output": False,
    "--system-config": True,
    "--enable-object-reconstruction": False,
    "--metrics-export-port": True,
    "--no-monitor": False,
    "--tracing-startup-hook": True,
    "--ray-debugger-external": False,
    "--disable-usage-stats": False,
    "--include-log-monitor": True,
    "--logging-level": True,
    "--logging-format": True,
    "--log-style": True,
    "--log-color": True,
    "--verbose": False,
    "-v": False,
}

# Words that are the same, with the same options.
_THE_SAME = frozenset(
    "stop status memory list get summary logs timeline stack microbenchmark token why job "
    "doctor drain kill-random-node man".split()
)

_NOT_HERE = {
    "up": "clusters of machines that are rented for it are not started from here",
    "down": "clusters of machines that are rented for it are not started from here",
    "attach": "log in to the machine",
    "exec": "run the program on a machine of the cluster",
    "submit": "run the program on a machine of the cluster",
    "rsync-up": "copy files with a program made for it",
    "rsync-down": "copy files with a program made for it",
    "monitor": "there is no autoscaler whose log could be shown; see ray status",
    "client": "there is no Ray Client",
    "serve": "Ray Serve is not part of this",
}

_USAGE = """Usage: ray COMMAND [OPTIONS]

  start           Start a cluster on this machine (--head), or let it join one (--address)
  stop            Stop what was started on this machine
  status          Show the cluster: resources, actors, what waits and why
  drain-node      Let a node leave: what it has goes elsewhere first
  health-check    Exit with 0 if the cluster answers
  debug           Answer a breakpoint of a task on this machine (ray.util.rpdb.set_trace)
  job             Hand in jobs, follow, stop and list them
  memory, list, get, summary, logs, timeline, stack, microbenchmark
  kill-random-node  Kill a node of this machine that is not the head, for tests
  completion      Print what a shell needs to complete these commands

The same commands as `oxiray`, which this is: `oxiray COMMAND --help` says more."""


def main() -> NoReturn:
    """The console script of the distribution named `ray`."""
    word, *options = sys.argv[1:] or ["--help"]
    if word in ("--version", "version"):
        print(f"ray, version {ray_version}")
        sys.exit(0)
    if word in ("--help", "-h", "help"):
        print(_USAGE)
        sys.exit(0)
    if word in _THE_SAME:
        become("oxiray", [word, *options])
    translate = _TRANSLATED.get(word)
    if translate is not None:
        become("oxiray", translate(options))
    if word == "debug":
        sys.exit(_debug(options))
    why = _NOT_HERE.get(word)
    _say(
        f"there is no command {word!r}" + (f": {why}" if why else ". `ray --help` shows which are")
    )
    sys.exit(2)


def _start(options: list[str]) -> list[str]:
    from ._start_labels import translated

    kept: list[str] = ["start"]
    unused: list[str] = []
    try:
        left = iter(translated(options))
    except ValueError as error:
        _say(str(error))
        sys.exit(2)
    for option in left:
        name = option.partition("=")[0]
        if name not in _WITHOUT_MEANING:
            kept.append(option)
            continue
        unused.append(name)
        if _WITHOUT_MEANING[name] and "=" not in option:
            next(left, None)
    if unused:
        _say(f"without effect here: {', '.join(unused)}")
    return kept


def _debug(options: list[str]) -> int:
    """Shows the breakpoints that wait on this machine, and lets the user answer one."""
    import os

    from . import _native
    from .util.rpdb import breakpoints, converse

    folder = _native.sessions_folder()
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = [point for name in names for point in breakpoints(os.path.join(folder, name))]
    if not found:
        _say("no task waits at a breakpoint on this machine")
        return 1
    for number, point in enumerate(found):
        print(f"{number}: {point.function} (pid {point.pid}) at {point.place}", flush=True)
    chosen = options[0] if options else ""
    if not chosen and len(found) > 1:
        print("Which? ", end="", flush=True)
        chosen = sys.stdin.readline().strip()
    if chosen and not (chosen.isdigit() and int(chosen) < len(found)):
        _say(f"there is no breakpoint {chosen!r}: name one by its number")
        return 2
    converse(found[int(chosen or 0)].path, sys.stdin, sys.stdout)
    return 0


def _health_check(options: list[str]) -> list[str]:
    """Exits with 0 if the cluster answers, and says how it is."""
    left = iter(options)
    kept = ["status"]
    for option in left:
        if option == "--component":
            next(left, None)
        elif not option.startswith("--component=") and option != "--skip-version-check":
            kept.append(option)
    return kept


def _completion(options: list[str]) -> list[str]:
    return ["completion", "--name", "ray", *options]


def _drain_node(options: list[str]) -> list[str]:
    """Ray's words for `oxiray drain`."""
    said: dict[str, str] = {}
    left = iter(options)
    for option in left:
        name, equals, value = option.partition("=")
        said[name] = value if equals else next(left, "")
    kept = ["drain", said.pop("--node-id", "here")]
    reason = said.pop("--reason", "").removeprefix("DRAIN_NODE_REASON_").replace("_", " ").lower()
    message = said.pop("--reason-message", "")
    kept += ["--reason", ": ".join(filter(None, (reason, message)))]
    if "--deadline-remaining-seconds" in said:
        kept += ["--deadline", said.pop("--deadline-remaining-seconds")]
    return kept + [word for pair in said.items() for word in pair]


_TRANSLATED: dict[str, Callable[[list[str]], list[str]]] = {
    "start": _start,
    "health-check": _health_check,
    "completion": _completion,
    "drain-node": _drain_node,
}


def _say(text: str) -> None:
    try:
        print(f"ray: {text}", file=sys.stderr)
    except OSError:  # nowhere to say it
        pass
