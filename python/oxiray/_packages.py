"""Packages: directories, modules and archives of this machine, put where every node finds them.

A package is a file named by its content in the directory `packages` of this node's session; the
node service reads it to any other node that wants it. What is there already is not put again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections.abc import Callable
from typing import Any

from . import _native, _settings
from ._ignore_rules import files_below
from .exceptions import RuntimeEnvSetupError

_PREFIX = "_ray_pkg_"
_PIECE = 1 << 20
_MOST_NAMED = 10
# The first moment that a zip file can name: what is in a package does not depend on the time.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


class Folder:
    """Where packages are put: of this node's session, unless it is another's."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path or os.path.join(_native.context()["session_dir"], "packages")

    def put_directory(self, field: str, path: str, excludes: list[str], below: str = "") -> str:
        """The address of a package of what is in a directory; in the package it is in `below`."""
        root = os.path.abspath(os.path.expanduser(path))
        files = _files(field, root, excludes)
        name = f"{_PREFIX}{_hash_of(root, files, below)}.zip"
        return self._put(name, lambda target: _zip(root, files, below, target))

    def put_file(self, field: str, path: str) -> str:
        """The address of a package that is a file as it is: an archive, or a wheel."""
        path = os.path.abspath(os.path.expanduser(path))
        _refuse_if_large(field, path, {os.path.basename(path): os.path.getsize(path)})
        name = os.path.basename(path)
        if not name.endswith(".whl"):  # whose name says what it is
            ending = next(end for end in (".tar.gz", ".tgz", ".zip") if name.endswith(end))
            name = _PREFIX + _digest(path).hexdigest()[:32] + ending
        else:
            name = f"{_digest(path).hexdigest()[:32]}-{name}"
        return self._put(name, lambda target: _copy(path, target))

    def put_module_file(self, field: str, path: str) -> str:
        """The address of a package of a module that is one file."""
        path = os.path.abspath(path)
        root, name = os.path.split(path)
        _refuse_if_large(field, path, {name: os.path.getsize(path)})
        packed = f"{_PREFIX}{_hash_of(root, [name], '')}.zip"
        return self._put(packed, lambda target: _zip(root, [name], "", target))

    def _put(self, name: str, write: Callable[[str], None]) -> str:
        os.makedirs(self._path, mode=0o700, exist_ok=True)
        path = os.path.join(self._path, name)
        if not os.path.exists(path):
            draft = f"{path}.{os.getpid()}"
            try:
                write(draft)
                os.rename(draft, path)
            finally:
                if os.path.exists(draft):
                    os.unlink(draft)
        return f"gcs://{name}"


def _files(field: str, root: str, excludes: list[str]) -> list[str]:
    ignore = [".rayignore"]
    if not _settings.is_on("RAY_RUNTIME_ENV_IGNORE_GITIGNORE"):
        ignore.insert(0, ".gitignore")
    setting = "RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES"
    # Set, but to nothing, it leaves out nothing.
    usual = _settings.given(setting)[1] if _settings.is_set(setting) else _settings.text(setting)
    rules = [name for name in usual.split(",") if name] + excludes
    try:
        files = files_below(root, rules, tuple(ignore))
    except OSError as error:
        raise ValueError(f"runtime_env[{field!r}]: {error.filename}: {error.strerror}") from None
    sizes = {}
    for name in files:
        path = os.path.join(root, name)
        if os.path.islink(path):
            _refuse_if_leaving(field, root, name)
        else:
            sizes[name] = os.path.getsize(path)
    _refuse_if_large(field, root, sizes)
    return files


def _refuse_if_leaving(field: str, root: str, name: str) -> None:
    real, inside = os.path.realpath(os.path.join(root, name)), os.path.realpath(root)
    if os.path.isabs(os.readlink(os.path.join(root, name))) or not real.startswith(inside + os.sep):
        raise ValueError(
            f"runtime_env[{field!r}]: the link {name} in {root} leads to {real}, which is not in "
            "that directory and would not be there on other nodes. Copy what it leads to, or name "
            "the link in runtime_env['excludes']."
        )


class PackageTooLarge(RuntimeEnvSetupError, ValueError):
    """A directory is larger than a package may be: Ray's error, and one of the argument."""


def _refuse_if_large(field: str, root: str, sizes: dict[str, int]) -> None:
    most = int(_settings.text("OXIRAY_PACKAGE_MAX_BYTES"))
    total = sum(sizes.values())
    if total <= most:
        return
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:_MOST_NAMED]
    lines = "".join(f"\n    {_native.show_bytes(size)}  {name}" for name, size in largest)
    raise PackageTooLarge(
        f"runtime_env[{field!r}]: {root} has {_native.show_bytes(total)}, more than the "
        f"{_native.show_bytes(most)} that a package may have. The largest files are{lines}\n"
        "Leave out what workers do not need with runtime_env['excludes'] or a .gitignore, or "
        "raise OXIRAY_PACKAGE_MAX_BYTES."
    )


def _digest(path: str) -> Any:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest


def _hash_of(root: str, files: list[str], below: str) -> str:
    """Of names, contents, and what may be executed."""
    whole = hashlib.sha256(below.encode() + b"\0")
    for name in files:
        path = os.path.join(root, name)
        whole.update(name.encode(errors="surrogateescape") + b"\0")
        if os.path.islink(path):
            whole.update(b"link" + os.readlink(path).encode(errors="surrogateescape"))
        else:
            is_program = os.stat(path).st_mode & stat.S_IXUSR
            whole.update((b"x" if is_program else b"-") + _digest(path).digest())
    return whole.hexdigest()[:32]


def _zip(root: str, files: list[str], below: str, target: str) -> None:
    # Not compressed: it is read where it is, or over a network that is faster than compressing.
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name in files:
            path = os.path.join(root, name)
            about = os.lstat(path)
            info = zipfile.ZipInfo(os.path.join(below, name), _NO_TIME)
            info.external_attr = about.st_mode << 16
            info.file_size = about.st_size
            if stat.S_ISLNK(about.st_mode):
                archive.writestr(info, os.readlink(path))
                continue
            with open(path, "rb") as source, archive.open(info, "w") as packed:
                while piece := source.read(_PIECE):
                    packed.write(piece)


def _copy(path: str, target: str) -> None:
    import shutil

    shutil.copyfile(path, target)
