"""Makes a runtime environment, and becomes the zygote of its workers.

The node service starts it as `python -m oxiray._template`, with the zygote's socket as descriptor 3
and the environment in OXIRAY_ENVIRONMENT:

    template -> node service    making WHAT     (it takes long, and people wait)
                                failed WHY      (and it ends)

The zygote that it becomes says `ready`, and then speaks as any other.

Everything that must be there when a process starts (variables, the interpreter, the directory) is
in place before the zygote is: this program replaces itself by it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from . import _settings
from ._template_progress import SOCKET, Progress, SetupFailed, say


class Recipe:
    """How the zygote is started; each field of the environment adds to it."""

    def __init__(self, environment: dict[str, Any]) -> None:
        self.python = [sys.executable]
        self.variables = expanded(environment.get("env_vars", {}), os.environ)
        self.directory = ""
        # Modules are looked for here before anywhere else.
        self.paths: list[str] = []
        # Programs are looked for here first.
        self.programs: list[str] = []


def make(environment: dict[str, Any]) -> Recipe:
    recipe = Recipe(environment)
    if environment.get("working_dir") or environment.get("py_modules"):
        _add_packages(environment, recipe)
    for tool in ("pip", "uv"):
        if environment.get(tool):
            _add_installed(tool, environment[tool], recipe)
    if environment.get("conda"):
        _add_conda(environment["conda"], recipe)
    if environment.get("py_executable"):
        import shlex

        recipe.python = shlex.split(environment["py_executable"])
    return recipe


def _parts() -> Any:
    from ._environment_parts import Parts

    return Parts(_settings.text("OXIRAY_SESSION_DIR"))


def _add_packages(environment: dict[str, Any], recipe: Recipe) -> None:
    from . import _fetching, _installing

    parts = _parts()

    def install_wheel(wheel: str, path: str) -> None:
        with Progress(f"installing {os.path.basename(wheel)}") as progress:
            _installing.install_wheel(wheel, path, progress)

    if address := environment.get("working_dir"):
        recipe.directory = _fetching.unpacked(address, parts, install_wheel)
        recipe.paths.append(recipe.directory)
    for address in environment.get("py_modules", ()):
        recipe.paths.append(_fetching.unpacked(address, parts, install_wheel))


def _add_installed(tool: str, wanted: dict[str, Any], recipe: Recipe) -> None:
    from . import _installing

    lines = "\n".join(wanted["packages"]).splitlines()
    names = ", ".join(line for line in lines if line and not line.startswith(("-", "#")))
    shown = names if len(names) <= 200 else names[:199] + "…"

    def make(path: str) -> None:
        with Progress(f"installing {shown} with {tool}") as progress:
            _installing.install(tool, wanted, path, recipe.variables, recipe.directory, progress)

    path = _parts().get(_installing.name_of(tool, wanted, recipe.directory), make)
    recipe.python = [os.path.join(path, "bin", "python")]
    recipe.paths.append(_installing.site_packages(path))
    recipe.programs.append(os.path.join(path, "bin"))
    recipe.variables = {"VIRTUAL_ENV": path, **recipe.variables}


def _add_conda(wanted: Any, recipe: Recipe) -> None:
    from . import _installing

    found: list[str] = []

    def make(path: str) -> None:
        with Progress("making a conda environment") as progress:
            found.append(_installing.conda_python(wanted, path, progress))

    if isinstance(wanted, dict):
        path = _parts().get(_installing.name_of("conda", wanted, ""), make)
        found = [os.path.join(path, "bin", "python")]
    else:
        make("")
    recipe.python = found
    recipe.programs.append(os.path.dirname(found[0]))


def expanded(variables: dict[str, str], around: Mapping[str, str]) -> dict[str, str]:
    """`${NAME}` and `$NAME` are what that variable was; `${NAME}` of one that was not, nothing."""
    known = dict(around)
    made: dict[str, str] = {}
    for name, value in variables.items():
        made[name] = known[name] = re.sub(
            r"\$(\w+|\{\w+\})",
            lambda match: known.get(match[1].strip("{}"), "" if "{" in match[1] else match[0]),
            value,
        )
    return made


# Not the current directory: a file of the user's must not stand in for one of the library. The
# option for that, -P, is not there before Python 3.11.
_ZYGOTE = (
    "import sys; sys.path[:] = filter(None, sys.path); from oxiray._zygote import main; main()"
)


def become_zygote(recipe: Recipe) -> NoReturn:
    environment = {**os.environ, **recipe.variables}
    environment["OXIRAY_ENVIRONMENT_PATHS"] = json.dumps(recipe.paths)
    if recipe.programs:
        path = [*recipe.programs, environment.get("PATH", os.defpath)]
        environment["PATH"] = os.pathsep.join(path)
    command = [*recipe.python, "-c", _ZYGOTE]
    if recipe.directory:
        os.chdir(recipe.directory)
        environment["PWD"] = recipe.directory
    os.set_inheritable(SOCKET, True)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise SetupFailed(f"{command[0]} cannot be run: {error.strerror}") from None


def _limit(seconds: int) -> None:
    """Ends the making when it takes longer."""

    def stop(*_: object) -> NoReturn:
        raise SetupFailed(
            f"It was not made within {seconds} s, which is config['setup_timeout_seconds']"
        )

    if seconds > 0:
        signal.signal(signal.SIGALRM, stop)
        signal.alarm(seconds)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at the driver's terminal is the driver's
    try:
        environment = json.loads(_settings.text("OXIRAY_ENVIRONMENT"))
        _limit(environment.get("config", {}).get("setup_timeout_seconds", 600))
        recipe = make(environment)
        signal.alarm(0)
        become_zygote(recipe)
    except SetupFailed as error:
        say("failed", str(error))
    except OSError as error:
        say("failed", f"{error.filename or 'A file'}: {error.strerror}")
    except Exception:
        import traceback

        say("failed", traceback.format_exc())


if __name__ == "__main__":
    main()
