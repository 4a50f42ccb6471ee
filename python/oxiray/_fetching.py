"""Packages of a runtime environment, brought to this node: from another one, or from an address."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import urllib.parse
from collections.abc import Callable

from . import _native, _settings
from ._environment_parts import Parts
from ._template_progress import Progress, SetupFailed
from ._unpack import BadArchive, unpack

_ENDINGS = (".tar.gz", ".tgz", ".zip", ".whl")
# Bytes of an answer that are read at a time, and how long one may take to come.
_PIECE, _SILENCE_S = 1 << 20, 60


def unpacked(address: str, parts: Parts, install_wheel: Callable[[str, str], None]) -> str:
    """The directory with what the package at an address has in it."""
    scheme, _, rest = address.partition("://")
    name = rest.partition("?")[0]
    if scheme == "gcs":
        part = os.path.basename(name)
    else:
        part = "package-" + hashlib.sha256(address.encode()).hexdigest()[:32]
    for ending in _ENDINGS:
        part = part.removesuffix(ending)

    def make(path: str) -> None:
        with (
            Progress(f"fetching {shown(address)}"),
            tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as scratch,
        ):
            archive = os.path.join(scratch, urllib.parse.unquote(os.path.basename(name)))
            fetch(address, archive)
            if archive.endswith(".whl"):
                install_wheel(_named_as_made(archive), path)
                return
            most = int(_settings.text("OXIRAY_UNPACKED_MAX_BYTES"))
            try:
                # What a site packs has a directory around it; what we pack has not.
                unpack(archive, path, most, strip=scheme != "gcs")
            except BadArchive as error:
                raise SetupFailed(f"The archive {shown(address)} is refused: {error}") from None

    return parts.get(part, make)


def _named_as_made(wheel: str) -> str:
    """A wheel's name says what it is; ours have a hash before it."""
    folder, name = os.path.split(wheel)
    head, _, rest = name.partition("-")
    if len(head) != 32 or rest.count("-") < 4:
        return wheel
    named = os.path.join(folder, rest)
    os.rename(wheel, named)
    return named


def shown(address: str) -> str:
    """An address as it may stand in a message: without passwords and signatures."""
    parts = urllib.parse.urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))


def fetch(address: str, target: str) -> None:
    """Brings the file at an address to the path `target`."""
    scheme, _, rest = address.partition("://")
    if scheme == "gcs":
        _from_cluster(rest, target)
    elif scheme == "file":
        path = urllib.parse.unquote(rest)
        try:
            shutil.copyfile(path, target)
        except OSError as error:
            raise SetupFailed(f"{path} cannot be read on this node: {error.strerror}") from None
    elif scheme in ("http", "https"):
        _from_web(address, target)
    else:
        _from_bucket(address, target)


def _from_cluster(name: str, target: str) -> None:
    session = _settings.text("OXIRAY_SESSION_DIR")
    here = os.path.join(session, "packages", os.path.basename(name))
    try:
        os.link(here, target)
        return
    except FileNotFoundError:
        pass
    except OSError:
        shutil.copyfile(here, target)
        return
    try:
        found = _native.Observer(session).fetch_package(name, target)
    except OSError as error:
        raise SetupFailed(f"The package {name} could not be fetched: {error}") from None
    if not found:
        raise SetupFailed(
            f"No node of the cluster has the package {name} any more: the one where it was put has "
            "left. Start the program that uses it again."
        )
    # From now on this node has it for others.
    os.makedirs(os.path.dirname(here), mode=0o700, exist_ok=True)
    try:
        os.link(target, here)
    except OSError:
        return


def _from_web(address: str, target: str) -> None:
    import urllib.error
    import urllib.request

    try:
        request = urllib.request.Request(address, headers={"User-Agent": "oxiray"})
        with (
            urllib.request.urlopen(request, timeout=_SILENCE_S) as answer,
            open(target, "wb") as file,
        ):
            shutil.copyfileobj(answer, file, _PIECE)
    except (OSError, ValueError) as error:
        raise SetupFailed(f"{shown(address)} cannot be fetched: {error}") from None


def _from_bucket(address: str, target: str) -> None:
    from ._session import program

    command = [program(), "fetch", address, target]
    fetched = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if fetched.returncode:
        raise SetupFailed(f"{shown(address)} cannot be fetched: {fetched.stderr.strip()}")
