"""Archives from anywhere, unpacked without trusting them.

Nothing is written outside of the target: names that are absolute or climb out, links that lead out,
devices and pipes are refused, and so is an archive that turns out larger than the limit. What was
unpacked before the refusal is the caller's to remove.
"""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from typing import IO, NamedTuple

_PIECE = 1 << 20
_MOST_ENTRIES = 1_000_000
_LONGEST_LINK = 4096


class BadArchive(Exception):
    """The archive is broken, or not to be trusted; the text says why."""


class _Entry(NamedTuple):
    name: str
    kind: str  # "directory", "file" or "link"
    is_program: bool
    link: str
    data: IO[bytes] | None


def unpack(archive: str, target: str, most_bytes: int, strip: bool) -> None:
    """Unpacks a zip or tar file into the directory `target`, which is there and empty.

    `strip`: a single directory that everything is in is left away.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                top = _only_directory(opened.namelist()) if strip else ""
                _write(_of_zip(opened), target, most_bytes, top)
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tar:
                top = _only_directory(tar.getnames()) if strip else ""
                _write(_of_tar(tar), target, most_bytes, top)
        else:
            raise BadArchive("it is neither a zip nor a tar file")
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, RuntimeError, NotImplementedError) as e:
        raise BadArchive(f"it is broken: {e}") from None
    except Exception as error:
        if type(error).__name__ == "error" and type(error).__module__ == "zlib":
            raise BadArchive(f"it is broken: {error}") from None
        raise


def _only_directory(names: list[str]) -> str:
    parts = [name.split("/") for name in names if name.split("/")[0] != "__MACOSX"]
    tops = {part[0] for part in parts}
    if len(tops) != 1 or any(len(part) < 2 and name in names for part, name in _singles(parts)):
        return ""
    return tops.pop()


def _singles(parts: list[list[str]]) -> list[tuple[list[str], str]]:
    """Those that are no deeper than the top, unless something is below them."""
    has_below = {part[0] for part in parts if len(part) > 1 and part[1]}
    return [(part, part[0]) for part in parts if len(part) < 2 and part[0] not in has_below]


def _of_zip(archive: zipfile.ZipFile) -> Iterator[_Entry]:
    for info in archive.infolist():
        mode = info.external_attr >> 16
        kind = stat.S_IFMT(mode)
        if info.is_dir():
            yield _Entry(info.filename, "directory", False, "", None)
        elif kind == stat.S_IFLNK:
            if info.file_size > _LONGEST_LINK:
                raise BadArchive(f"its link {info.filename!r} is too long")
            link = os.fsdecode(archive.read(info))
            yield _Entry(info.filename, "link", False, link, None)
        elif kind in (0, stat.S_IFREG):
            with archive.open(info) as data:
                yield _Entry(info.filename, "file", bool(mode & stat.S_IXUSR), "", data)
        else:
            raise _unknown_kind(info.filename)


def _of_tar(archive: tarfile.TarFile) -> Iterator[_Entry]:
    for info in archive:
        if info.isdir():
            yield _Entry(info.name, "directory", False, "", None)
        elif info.issym():
            yield _Entry(info.name, "link", False, info.linkname, None)
        elif info.isfile():
            data = archive.extractfile(info)
            yield _Entry(info.name, "file", bool(info.mode & stat.S_IXUSR), "", data)
        else:
            raise _unknown_kind(info.name)


def _unknown_kind(name: str) -> BadArchive:
    return BadArchive(f"{name!r} in it is neither a file nor a directory nor a link")


def _write(entries: Iterator[_Entry], target: str, most_bytes: int, top: str) -> None:
    left = most_bytes
    links: list[tuple[str, str, str]] = []
    for count, entry in enumerate(entries):
        if count >= _MOST_ENTRIES:
            raise BadArchive(f"it has more than {_MOST_ENTRIES} entries")
        name = _inside(entry.name, top)
        if name is None:
            continue
        path = os.path.join(target, name)
        if entry.kind == "directory":
            os.makedirs(path, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if entry.kind == "link":
            links.append((entry.name, path, entry.link))
            continue
        assert entry.data is not None
        # A second file of the same name replaces the first; links come last, so none is followed.
        with open(path, "wb") as file:
            while piece := entry.data.read(_PIECE):
                left -= len(piece)
                if left < 0:
                    raise BadArchive(
                        f"it is larger than {most_bytes} bytes when it is unpacked, which is "
                        "OXIRAY_UNPACKED_MAX_BYTES"
                    )
                file.write(piece)
        if entry.is_program:
            os.chmod(path, 0o755)
    for name, path, link in links:
        _make_link(name, path, link, target)


def _inside(name: str, top: str) -> str | None:
    """The path below the target; None: it is not unpacked."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or "\0" in name or parts[0].endswith(":"):
        raise BadArchive(f"{name!r} in it would be written outside of where it is unpacked")
    parts = [part for part in parts if part not in ("", ".")]
    if parts and parts[0] == "__MACOSX":
        return None
    if top and parts and parts[0] == top:
        parts = parts[1:]
    return os.path.join(*parts) if parts else None


def _make_link(name: str, path: str, link: str, target: str) -> None:
    inside = os.path.realpath(target)
    leads_to = os.path.realpath(os.path.join(os.path.dirname(path), link))
    is_within = leads_to == inside or leads_to.startswith(inside + os.sep)
    at = os.path.realpath(os.path.dirname(path))
    if os.path.isabs(link) or not is_within or not (at + os.sep).startswith(inside + os.sep):
        raise BadArchive(f"its link {name!r} leads to {link!r}, outside of where it is unpacked")
    if os.path.lexists(path):
        raise BadArchive(f"its link {name!r} has the name of something else in it")
    os.symlink(link, path)
