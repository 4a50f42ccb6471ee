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
    "stop status memory list get summary logs timeline stack microbenchmark token why".split()
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
    "job": "programs cannot be handed in from outside yet: run them on a machine of the cluster",
    "debug": "there is no debugger of tasks yet",
    "client": "there is no Ray Client",
    "serve": "Ray Serve is not part of this",
}

_USAGE = """Usage: ray COMMAND [OPTIONS]

  start           Start a cluster on this machine (--head), or let it join one (--address)
  stop            Stop what was started on this machine
  status          Show the cluster: resources, actors, what waits and why
  health-check    Exit with 0 if the cluster answers
  memory, list, get, summary, logs, timeline, stack, microbenchmark

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
    why = _NOT_HERE.get(word)
    _say(
        f"there is no command {word!r}" + (f": {why}" if why else ". `ray --help` shows which are")
    )
    sys.exit(2)


def _start(options: list[str]) -> list[str]:
    kept: list[str] = ["start"]
    unused: list[str] = []
    left = iter(options)
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


_TRANSLATED: dict[str, Callable[[list[str]], list[str]]] = {
    "start": _start,
    "health-check": _health_check,
}


def _say(text: str) -> None:
    try:
        print(f"ray: {text}", file=sys.stderr)
    except OSError:  # nowhere to say it
        pass
