"""The fields of a runtime environment: a table of each one's check, which returns its usual form.

`None` as a usual form means that the field says nothing, and is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

SETUP_TIMEOUT_S = 600

_ADDRESSES = ("gcs", "file", "https", "http", "s3", "gs", "azure", "abfss", "pin_gcs")
_ARCHIVES = (".zip", ".whl", ".tar.gz", ".tgz")


def _wrong(name: str, wanted: str, value: object) -> TypeError:
    kind = type(value).__name__
    return TypeError(f"runtime_env[{name!r}] must be {wanted}, got {kind}: {value!r}")


def env_vars(value: Any) -> dict[str, str] | None:
    wanted = "of type Dict[str, str]"
    if not isinstance(value, dict):
        raise _wrong("env_vars", wanted, value)
    for key, text in value.items():
        for what, part in (("key", key), ("value", text)):
            if not isinstance(part, str):
                raise TypeError(
                    f"runtime_env['env_vars'] must be {wanted}, but the {what} {part!r} of "
                    f"{key!r} is of type {type(part).__name__}"
                )
        if not key or "=" in key or "\0" in key + text:
            raise ValueError(
                f"runtime_env['env_vars']: {key!r} cannot be the name of a variable with the "
                f"value {text!r}"
            )
    return dict(value) or None


def is_address(text: str) -> bool:
    """Whether it names a package by its address rather than a path of this machine."""
    return "://" in text


def _place(name: str, value: str) -> str:
    """A path of this machine that is there, or the address of an archive."""
    if not is_address(value):
        path = os.path.abspath(os.path.expanduser(value))
        if not os.path.exists(path):
            raise ValueError(f"runtime_env[{name!r}]: there is no {path}")
        return value
    scheme, _, rest = value.partition("://")
    if scheme not in _ADDRESSES:
        raise ValueError(
            f"runtime_env[{name!r}]: {value!r} begins with {scheme}://, which is none of "
            + ", ".join(f"{known}://" for known in _ADDRESSES)
        )
    if scheme != "gcs" and not rest.partition("?")[0].endswith(_ARCHIVES):
        raise ValueError(
            f"runtime_env[{name!r}]: {value!r} must be the address of a file that ends with "
            f"{', '.join(_ARCHIVES)}"
        )
    return value


def working_dir(value: Any) -> str | None:
    if not isinstance(value, (str, os.PathLike)):
        raise _wrong("working_dir", "a path or an address", value)
    text = os.fspath(value)
    return _place("working_dir", text) if text else None


def py_modules(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong("py_modules", "a list of paths, modules or addresses", value)
    checked: list[Any] = []
    for each in value:
        if isinstance(each, (str, os.PathLike)):
            checked.append(_place("py_modules", os.fspath(each)))
        elif hasattr(each, "__path__") or hasattr(each, "__file__"):
            checked.append(each)
        else:
            raise TypeError(
                "runtime_env['py_modules'] must be a list of paths, modules or addresses, not of "
                f"{type(each).__name__}: {each!r}"
            )
    return checked


def excludes(value: Any) -> list[str] | None:
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise _wrong("excludes", "of type List[str]", value)
    return value or None


def _requirements(name: str, path: str) -> list[str]:
    if not os.path.isfile(path):
        raise ValueError(f"runtime_env[{name!r}]: {path!r} is not a valid file of requirements")
    with open(path, encoding="utf-8") as file:
        return file.read().strip().splitlines()


def _strings(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise _wrong(name, "of type List[str]", value)
    return value


def _packages(tool: str, options: dict[str, type]) -> Callable[[Any], dict[str, Any] | None]:
    """The check of `pip` or `uv`, whose options besides `packages` have these types."""

    def check(value: Any) -> dict[str, Any] | None:
        if isinstance(value, str):
            checked: dict[str, Any] = {"packages": _requirements(tool, value)}
        elif isinstance(value, list):
            checked = {"packages": _strings(tool, value)}
        elif isinstance(value, dict):
            unknown = sorted(value.keys() - options.keys() - {"packages"})
            if unknown:
                raise ValueError(
                    f"runtime_env[{tool!r}] can only have these fields: packages, "
                    f"{', '.join(options)}, but got: {', '.join(unknown)}"
                )
            if "packages" not in value:
                raise ValueError(f"runtime_env[{tool!r}] must include field 'packages': {value!r}")
            for name, wanted in options.items():
                if name in value and not isinstance(value[name], wanted):
                    kind = f"of type {wanted.__name__}"
                    raise _wrong(f"{tool}']['{name}", kind, value[name])
                if wanted is list and name in value:
                    _strings(f"{tool}']['{name}", value[name])
            checked = dict(value)
            packages = checked["packages"]
            if isinstance(packages, str):
                checked["packages"] = _requirements(tool, packages)
            elif not isinstance(packages, list):
                raise ValueError(
                    f"runtime_env[{tool!r}]['packages'] must be of type list or str, "
                    f"got: {type(packages).__name__}"
                )
            else:
                _strings(f"{tool}']['packages", packages)
        else:
            raise _wrong(tool, "of type str, List[str] or dict", value)
        checked.setdefault(f"{tool}_check", False)
        checked["packages"] = list(dict.fromkeys(checked["packages"]))
        return checked if checked["packages"] else None

    return check


def conda(value: Any) -> Any:
    if isinstance(value, dict):
        return value or None
    if not isinstance(value, str):
        raise _wrong("conda", "of type str or dict", value)
    if value.endswith((".yaml", ".yml")):
        if not os.path.isfile(value):
            raise ValueError(f"runtime_env['conda']: there is no file {value!r}")
        try:
            import yaml  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise ValueError(
                "runtime_env['conda'] as the path of a YAML file needs the package pyyaml; or "
                "give what is in the file as a dict"
            ) from None
        with open(value, encoding="utf-8") as file:
            return yaml.safe_load(file)
    return value


def config(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong("config", "of type dict or RuntimeEnvConfig", value)
    known = ("setup_timeout_seconds", "eager_install", "log_files")
    unknown = sorted(value.keys() - set(known))
    if unknown:
        raise ValueError(f"runtime_env['config'] has {', '.join(known)}, not {', '.join(unknown)}")
    timeout = value.get("setup_timeout_seconds", SETUP_TIMEOUT_S)
    if isinstance(timeout, bool) or not isinstance(timeout, int):
        raise TypeError(f"setup_timeout_seconds must be of type int, got: {type(timeout).__name__}")
    if timeout <= 0 and timeout != -1:
        raise ValueError(
            f"setup_timeout_seconds must be greater than zero or equals to -1, got: {timeout}"
        )
    eager = value.get("eager_install", True)
    if not isinstance(eager, bool):
        raise TypeError(f"eager_install must be a boolean. got {type(eager).__name__}")
    files = value.get("log_files") or []
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise TypeError(f"log_files must be a list of strings or None, got {files!r}")
    return {"setup_timeout_seconds": timeout, "eager_install": eager, "log_files": files}


def _text(name: str) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        if not isinstance(value, str):
            raise _wrong(name, "of type str", value)
        return value or None

    return check


def container(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        raise _wrong("container", "a dict with 'image', and perhaps 'run_options'", value)
    return value or None


def setup_hook(value: Any) -> Any:
    if not isinstance(value, (str, dict)) and not callable(value):
        raise TypeError(
            "runtime_env['worker_process_setup_hook'] must be a function or the name of one "
            f"('module.function'), got {type(value).__name__}"
        )
    return value


def _anything(value: Any) -> Any:
    return value


def _unsupported(name: str, why: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value:
            raise ValueError(f"runtime_env[{name!r}] is not supported: {why}")

    return check


EXTENSIONS = ("_ray_release", "_ray_commit", "_inject_current_ray")

CHECKS: dict[str, Callable[[Any], Any]] = {
    "env_vars": env_vars,
    "working_dir": working_dir,
    "py_modules": py_modules,
    "excludes": excludes,
    "pip": _packages("pip", {"pip_check": bool, "pip_version": str, "pip_install_options": list}),
    "uv": _packages("uv", {"uv_check": bool, "uv_version": str, "uv_pip_install_options": list}),
    "conda": conda,
    "config": config,
    "py_executable": _text("py_executable"),
    "worker_process_setup_hook": setup_hook,
    "image_uri": _text("image_uri"),
    "container": container,
    "java_jars": _unsupported("java_jars", "there are no Java workers"),
    "_nsight": _unsupported("nsight", "workers are forked, and Nsight must start them itself"),
    "_rocprof_sys": _unsupported("rocprof_sys", "workers are forked, and it must start them"),
    **dict.fromkeys(EXTENSIONS, _anything),
}


def check(name: str, value: Any) -> Any:
    """The usual form of a field."""
    rule = CHECKS.get(name)
    if rule is not None:
        return None if value is None else rule(value)
    from difflib import get_close_matches

    known = [known for known in CHECKS if not known.startswith("_")]
    close = get_close_matches(str(name), known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"runtime_env has no field {name!r}{hint} Its fields are {', '.join(known)}."
        if hint
        else f"runtime_env has no field {name!r}. Its fields are {', '.join(known)}."
    )


def refuse_containers(given: dict[str, Any]) -> None:
    """Raises if workers are to run in a container: nothing starts them there."""
    for name in ("image_uri", "container"):
        if given.get(name):
            raise ValueError(
                f"runtime_env[{name!r}] is not supported: workers are forked from a process of "
                "their node, and nothing here starts that in a container. Run `oxiray start` in a "
                "container of the image, and send work to it by a label or a resource."
            )


def refuse_together(given: dict[str, Any]) -> None:
    """Raises if fields are given that contradict each other."""
    installers = [name for name in ("pip", "uv", "conda") if given.get(name)]
    if len(installers) > 1:
        raise ValueError(
            "The 'pip' field, 'uv' field, and 'conda' field of runtime_env cannot be specified at "
            f"the same time: {' and '.join(installers)} were. Packages for pip in a conda "
            "environment belong into the dict or file of 'conda'."
        )
    for name in ("container", "image_uri"):
        others = given.keys() - {name, "config", "env_vars"}
        if given.get(name) and others:
            raise ValueError(
                f"The {name!r} field of runtime_env cannot be used together with "
                f"{', '.join(sorted(others))}"
            )
