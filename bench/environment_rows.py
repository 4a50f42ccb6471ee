"""Rows about runtime environments: the first task in a new one, and in one that is there.

Archives and wheels are made here, of a few bytes: what is measured is what the sides do with them.
"""

import atexit
import importlib
import itertools
import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any


from registry import Call, row

ray: Any = importlib.import_module(os.environ["BENCH_MODULE"])

PACKAGE = "oxt_bench_package"
WHEEL = "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@ray.remote
def of_directory() -> str:
    return str(__import__("of_working_dir").VALUE)


@ray.remote
def of_package() -> str:
    return str(__import__(PACKAGE).VALUE)


def scratch() -> Path:
    folder = tempfile.mkdtemp(prefix="oxiray-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def written(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def directory(folder: Path, value: str) -> dict[str, Any]:
    """An environment with a working_dir: an archive with a directory around what is in it."""
    files = {"top/of_working_dir.py": f"VALUE = {value!r}\n", "top/data.txt": "x" * 10_000}
    return {"working_dir": written(folder / f"{value}.zip", files).as_uri()}


def package(folder: Path, value: str) -> dict[str, Any]:
    """An environment with a package that pip installs from a folder."""
    about = f"{PACKAGE}-{value}.dist-info"
    files = {
        f"{PACKAGE}.py": f"VALUE = {value!r}\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {value}\n",
        f"{about}/WHEEL": WHEEL,
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
    written(folder / f"{PACKAGE}-{value}-py3-none-any.whl", files)
    return {"pip": ["--no-index", f"--find-links {folder}", f"{PACKAGE}=={value}"]}


def in_new(function: Any, make: Any) -> Call:
    folder, numbers = scratch(), itertools.count(1)

    def call() -> None:
        value = f"{next(numbers)}.0"
        found = ray.get(function.options(runtime_env=make(folder, value)).remote())
        assert found == value, found

    return call


def in_known(function: Any, make: Any) -> Call:
    known = function.options(runtime_env=make(scratch(), "0.1"))
    return lambda: ray.get(known.remote())


@row("first task in a new working_dir environment *", "ms")
def new_directory(_: int) -> Call:
    return in_new(of_directory, directory)


@row("next task in a working_dir environment *", "ms")
def known_directory(_: int) -> Call:
    return in_known(of_directory, directory)


@row("first task in a new pip environment *", "ms", warm_up_calls=0)
def new_package(_: int) -> Call:
    return in_new(of_package, package)


@row("next task in a pip environment *", "ms")
def known_package(_: int) -> Call:
    return in_known(of_package, package)
