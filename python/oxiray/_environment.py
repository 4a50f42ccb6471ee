"""The runtime environment of what this process submits: inherited, merged, and said in one text.

An environment is known by its text: JSON with sorted keys, empty for none. Equal texts are one
environment, whose workers come from one template (`_template`).
"""

from __future__ import annotations

import json
import os
from typing import Any

from . import _environment_fields as fields
from . import _native, _settings
from .runtime_env import RuntimeEnv

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from ._packages import Folder

# It goes with every request for a worker, in one message.
_LONGEST = 24 * 1024


def check(name: str, value: Any) -> RuntimeEnv | None:
    """The option of a task or actor, or an argument of `init()`."""
    if value is None or value == {}:
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError(f"{name} is a string, but not JSON: {value!r}") from None
    if isinstance(value, RuntimeEnv):
        return value
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be a dict or a RuntimeEnv, not {value!r}")
    known = {"nsight": "_nsight", "rocprof_sys": "_rocprof_sys"}
    return RuntimeEnv(**{known.get(str(key), str(key)): each for key, each in value.items()})


def merge(parent: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    """What a child that says `child` has: its own fields, and the parent's others; of variables,
    each."""
    merged = {**parent, **child}
    variables = {**parent.get("env_vars", {}), **child.get("env_vars", {})}
    if variables:
        merged["env_vars"] = variables
    # One of them installs packages, and the child says which.
    installers = [name for name in ("pip", "uv", "conda") if name in child]
    if installers:
        for name in {"pip", "uv", "conda"} - set(installers):
            merged.pop(name, None)
    return merged


def text_of(environment: dict[str, Any]) -> str:
    said = {name: value for name, value in environment.items() if value is not None}
    if not said:
        return ""
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    if len(text.encode()) > _LONGEST:
        largest = max(said, key=lambda name: len(json.dumps(said[name])))
        raise ValueError(
            f"The runtime environment has {len(text)} bytes, and can have {_LONGEST}; most of it "
            f"is runtime_env[{largest!r}]"
        )
    return text


def of_text(text: str) -> dict[str, Any]:
    return json.loads(text) if text else {}


class Own:
    """The environment that a function or class was given: makes the text of it when it is first
    needed in a session, because what it names may have to be packed and uploaded for that."""

    def __init__(self, given: RuntimeEnv) -> None:
        self._given = given

    def __call__(self, inherited: str) -> str:
        return text_of(merge(of_text(inherited), packed(self._given)))


def own(options: dict[str, Any]) -> Own | None:
    given = options.get("runtime_env")
    return Own(given) if given else None


def packed(given: RuntimeEnv, folder: Folder | None = None) -> dict[str, Any]:
    """`given` with everything in a form that any node understands; packages go into `folder`."""
    said = given.to_dict()
    fields.refuse_containers(said)
    excludes = said.pop("excludes", [])
    if "working_dir" in said or "py_modules" in said:
        from ._packages import Folder

        folder = folder or Folder()
        place = said.pop("working_dir", None)
        if place is not None:
            said["working_dir"] = _packed_place(folder, "working_dir", place, excludes)
        modules = said.pop("py_modules", [])
        if modules:
            places = [_packed_place(folder, "py_modules", each, excludes) for each in modules]
            said["py_modules"] = places
    hook = said.get("worker_process_setup_hook")
    if callable(hook):
        said["worker_process_setup_hook"] = {"pickled": _pickled(hook)}
    return said


def _packed_place(folder: Folder, field: str, place: Any, excludes: list[str]) -> str:
    """The address of a package that has what is at a path of this machine, or of a module."""
    if not isinstance(place, str):
        paths = list(getattr(place, "__path__", [])) or [place.__file__]
        if len(paths) != 1:
            raise ValueError(
                f"runtime_env[{field!r}]: the module {place.__name__} is in several directories: "
                f"{', '.join(paths)}. Name the ones that are meant by their paths."
            )
        place = paths[0]
    path: str = place
    if fields.is_address(path):
        return path
    if os.path.isdir(os.path.expanduser(path)):
        name = os.path.basename(os.path.abspath(os.path.expanduser(path)))
        # A module is imported by the name of its directory.
        below = name if field == "py_modules" else ""
        return folder.put_directory(field, path, excludes, below)
    if field == "py_modules" and path.endswith(".py"):
        return folder.put_module_file(field, path)
    endings = (".zip", ".tar.gz", ".tgz", *((".whl",) if field == "py_modules" else ()))
    if not path.endswith(endings):
        raise ValueError(
            f"runtime_env[{field!r}]: {path!r} is no directory and does not end with "
            f"{', '.join(endings)}"
        )
    return folder.put_file(field, path)


def _pickled(hook: Any) -> str:
    import base64

    from ._remote_function import dump_definition

    name = getattr(hook, "__name__", repr(hook))
    return base64.b64encode(dump_definition(hook, hook, "function", name)).decode()


def begin(given: RuntimeEnv | None) -> None:
    """The session that has just started has this environment, and that of the job that it is."""
    said = packed(given) if given else {}
    of_job = of_text(_settings.text("OXIRAY_JOB_RUNTIME_ENV"))
    if of_job:
        _refuse_other(of_job, said)
        said = merge(of_job, said)
    _native.set_environment(text_of(said))


def _refuse_other(of_job: dict[str, Any], said: dict[str, Any]) -> None:
    """Raises if `init()` says other than the job was handed in with."""
    if _settings.is_on("RAY_OVERRIDE_JOB_RUNTIME_ENV"):
        return
    variables = of_job.get("env_vars", {})
    names = [
        name
        for name, value in said.items()
        if name not in ("env_vars", "config") and name in of_job and of_job[name] != value
    ]
    names += [
        f"env_vars[{name!r}]"
        for name, value in said.get("env_vars", {}).items()
        if variables.get(name, value) != value
    ]
    if names:
        raise ValueError(
            "init(runtime_env=) contradicts the environment that the job was handed in with, in "
            f"{', '.join(names)}. Leave it out there or here; RAY_OVERRIDE_JOB_RUNTIME_ENV=1 lets "
            "that of init() count."
        )


def current() -> RuntimeEnv:
    return RuntimeEnv.deserialize(_native.environment() or "{}")
