"""What is installed: versions that must agree, programs that must run, and another Ray."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Iterator

from .. import _native
from .._version import __version__, ray_version
from .finding import Finding, fine, trouble, warning

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_REINSTALL = "pip install --force-reinstall oxiray"


def check() -> Iterator[Finding]:
    yield _python()
    yield versions({"package": __version__, "module": _native.__version__, **program_versions()})
    yield _cloudpickle()
    yield other_ray(_distribution("ray"))


def _python() -> Finding:
    threads = ", free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return fine(
        "Python",
        f"{platform.python_implementation()} {platform.python_version()}{threads} "
        f"({sys.executable})",
    )


def versions(found: dict[str, str]) -> Finding:
    """All of one wheel, by the part; what is not a version says what is wrong with that part."""
    if set(found.values()) == {__version__}:
        return fine("Oxiray", f"{__version__} ({', '.join(found)}), Ray's API as of {ray_version}")
    parts = ", ".join(f"{part} {version}" for part, version in found.items())
    return trouble("Oxiray", f"its parts are not of one version: {parts}", _REINSTALL)


def program_versions(folder: str = os.path.join(_PACKAGE, "_bin")) -> dict[str, str]:
    found = {}
    for name in ("oxiray", "oxirayd"):
        try:
            done = subprocess.run(
                [os.path.join(folder, name), "--version"],
                capture_output=True,
                text=True,
                timeout=20,
            )
            words = done.stdout.split()
            found[name] = words[-1] if words else f"(status {done.returncode})"
        except (OSError, subprocess.SubprocessError) as error:
            found[name] = f"({error})"
    return found


def _cloudpickle() -> Finding:
    try:
        return fine("cloudpickle", importlib.metadata.version("cloudpickle"))
    except importlib.metadata.PackageNotFoundError:
        return trouble("cloudpickle", "is not installed", "pip install 'cloudpickle>=3.1'")


def other_ray(version: str | None) -> Finding:
    if version is None:
        return fine("import ray", "not installed; the alias makes it mean oxiray")
    alias = f"the alias of oxiray, {version}"
    if "+oxiray" not in version:
        return warning(
            "import ray",
            f"Ray {version} is installed too",
            "`import ray` is Ray, `import oxiray` is Oxiray; for both names to mean Oxiray: "
            "pip uninstall ray, then install the alias",
        )
    if not version.startswith(ray_version):
        return warning(
            "import ray", alias, f"it is of another release: install that of Ray {ray_version}"
        )
    return fine("import ray", alias)


def _distribution(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
