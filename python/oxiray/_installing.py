"""Packages of pip, uv and conda, installed for a runtime environment.

A virtual environment is made that finds everything this interpreter finds, and into which the
packages are installed: what is there already in a version that will do is not installed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from typing import Any

from ._template_progress import Progress, SetupFailed

# In files of requirements, as Ray has it: where the working_dir is.
WORKING_DIR = "RAY_RUNTIME_ENV_CREATE_WORKING_DIR"
_LINES_KEPT = 60


def run(command: list[str], environment: dict[str, str], directory: str, progress: Progress) -> str:
    """What the program printed; one that fails raises with the end of that."""
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=directory or None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise SetupFailed(f"{command[0]} cannot be run: {error.strerror}") from None
    lines: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)  # into the log of this template
        progress.note(line.strip())
        lines.append(line)
        del lines[:-_LINES_KEPT]
    if process.wait():
        said = "".join(lines).strip()
        raise SetupFailed(
            f"`{' '.join(command)}` failed with exit code {process.returncode}. It printed\n{said}"
        )
    return "".join(lines)


def name_of(tool: str, wanted: Any, working_dir: str) -> str:
    """The name of the part that has these packages, for this interpreter."""
    about = [tool, wanted, sys.version, sys.prefix]
    if WORKING_DIR in json.dumps(wanted):
        about.append(working_dir)
    return f"{tool}-{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]}"


def install(
    tool: str,
    wanted: dict[str, Any],
    path: str,
    variables: dict[str, str],
    working_dir: str,
    progress: Progress,
) -> None:
    """Makes a virtual environment with these packages at `path`."""
    _make_venv(path)
    environment = {**os.environ, **variables, "VIRTUAL_ENV": path, WORKING_DIR: working_dir}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    environment.pop("PYTHONPATH", None)
    python = os.path.join(path, "bin", "python")
    listed = os.path.join(path, "requirements.txt")
    with open(listed, "w", encoding="utf-8") as file:
        file.write("\n".join(wanted["packages"]) + "\n")
    pip = _pip(python, environment, working_dir, progress)
    if tool == "pip":
        if version := wanted.get("pip_version"):
            run([*pip, "install", f"pip{version}"], environment, working_dir, progress)
        options = wanted.get("pip_install_options") or []
        installing, checking = [*pip, "install", *options, "-r", listed], [*pip, "check"]
    else:
        uv = _uv(wanted.get("uv_version"), pip, path, environment, working_dir, progress)
        options = wanted.get("uv_pip_install_options") or []
        which = ["--python", python]
        installing = [*uv, "pip", "install", *which, *options, "-r", listed]
        checking = [*uv, "pip", "check", *which]
    run(installing, environment, working_dir, progress)
    if wanted.get(f"{tool}_check"):
        run(checking, environment, working_dir, progress)


def _make_venv(path: str) -> None:
    import venv

    venv.EnvBuilder(system_site_packages=True, symlinks=True, with_pip=False).create(path)
    # Everything that this interpreter finds, found after what is installed here. `addsitedir`
    # follows what the directories themselves add, as of packages that are edited in place.
    ours = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    ours += [place for place in sys.path if place.endswith(("site-packages", "dist-packages"))]
    lines = [f"import site; site.addsitedir({place!r})" for place in dict.fromkeys(ours)]
    with open(os.path.join(site_packages(path), "_oxiray_parent.pth"), "w") as file:
        file.write("\n".join(lines) + "\n")


def site_packages(path: str) -> str:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return os.path.join(path, "lib", version, "site-packages")


def _pip(python: str, environment: dict[str, str], directory: str, progress: Progress) -> list[str]:
    from importlib.util import find_spec

    if find_spec("pip") is None:
        run([python, "-m", "ensurepip"], environment, directory, progress)
    return [python, "-m", "pip"]


def _uv(
    version: str | None,
    pip: list[str],
    path: str,
    environment: dict[str, str],
    directory: str,
    progress: Progress,
) -> list[str]:
    found = shutil.which("uv", path=environment.get("PATH"))
    if found and not version:
        return [found]
    run([*pip, "install", f"uv{version or ''}"], environment, directory, progress)
    return [os.path.join(path, "bin", "uv")]


def install_wheel(wheel: str, path: str, progress: Progress) -> None:
    """Unpacks a wheel so that its modules can be imported from `path`."""
    pip = _pip(sys.executable, dict(os.environ), path, progress)
    command = [*pip, "install", "--no-deps", "--target", path, wheel]
    run(command, dict(os.environ), path, progress)


def conda_python(wanted: Any, path: str, progress: Progress) -> str:
    """The interpreter of a conda environment: one that is there, or one made at `path`."""
    conda = shutil.which("conda") or os.environ.get("CONDA_EXE")
    if not conda:
        raise SetupFailed("runtime_env['conda'] needs conda, which is not installed on this node")
    environment = dict(os.environ)
    if isinstance(wanted, dict):
        listed = f"{path}.json"  # which is YAML, too
        with open(listed, "w") as file:
            json.dump(wanted, file)
        os.rmdir(path)
        command = [conda, "env", "create", "--prefix", path, "--file", listed]
        run(command, environment, "", progress)
        return os.path.join(path, "bin", "python")
    if os.path.isabs(wanted):
        return os.path.join(wanted, "bin", "python")
    said = run([conda, "env", "list", "--json"], environment, "", progress)
    for prefix in json.loads(said)["envs"]:
        if os.path.basename(prefix) == wanted:
            return os.path.join(prefix, "bin", "python")
    raise SetupFailed(f"there is no conda environment {wanted!r} on this node")
