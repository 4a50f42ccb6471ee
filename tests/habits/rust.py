"""Rust as far as habits need it: code without comments and strings, tests apart, functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_NOT_CODE = re.compile(
    r"""
      (?P<comment> //[^\n]* | /\*.*?\*/ )
    | b? r (?P<hashes>\#*) " .*? " (?P=hashes)
    | b? " (?: \\. | [^"\\] )* "
    | b? ' (?: \\ (?: x[0-9a-fA-F]{2} | u\{[0-9a-fA-F_]+\} | . ) | [^'\\\n] ) '
    """,
    re.VERBOSE | re.DOTALL,
)
_FOR_TESTS = re.compile(r"#\[cfg\((?:all\()?[^\]]*\btest\b[^\]]*\)\]|#\[test\]")
_MODULE = re.compile(r"\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
_FUNCTION = re.compile(r"\bfn\s+(\w+)")


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


@dataclass(frozen=True)
class Function:
    name: str
    line: int
    lines: int


class RustFile:
    """One file; lines keep their numbers in everything that is made of it."""

    def __init__(self, root: Path, path: Path):
        self.full_path = path
        self.path = path.relative_to(root).as_posix()
        self.text = path.read_text()

    @property
    def crate(self) -> str:
        return self.path.split("/")[1]

    @cached_property
    def code(self) -> str:
        """Without comments, and with nothing in its strings."""
        return _NOT_CODE.sub(lambda found: _blank(found[0]), self.text)

    @cached_property
    def production(self) -> str:
        """The code without what is only for tests."""
        code = self.code
        at = 0
        while found := _FOR_TESTS.search(code, at):
            at = found.end()
            if "not(test)" in found[0]:
                continue
            end = _end_of_item(code, at)
            code = code[: found.start()] + _blank(code[found.start() : end]) + code[end:]
            at = end
        return code

    @cached_property
    def test_modules(self) -> set[Path]:
        """Files and folders of modules that are declared for tests only."""
        name = self.full_path.name
        alone = name in ("lib.rs", "main.rs", "mod.rs")
        folder = self.full_path.parent if alone else self.full_path.with_suffix("")
        found = set()
        for mark in _FOR_TESTS.finditer(self.code):
            module = _MODULE.match(self.code, mark.end())
            if module and "not(test)" not in mark[0]:
                found |= {folder / f"{module[1]}.rs", folder / module[1]}
        return found

    def functions(self, code: str) -> Iterator[Function]:
        """Those that have a body."""
        for found in _FUNCTION.finditer(code):
            body = _opening(code, found.end())
            if body is not None:
                line = code.count("\n", 0, found.start()) + 1
                lines = code.count("\n", found.start(), _closing(code, body)) + 1
                yield Function(found[1], line, lines)


def _opening(code: str, at: int) -> int | None:
    """Where the body of the item begins, if it has one."""
    depth = 0
    for index in range(at, len(code)):
        match code[index]:
            case "(" | "[":
                depth += 1
            case ")" | "]":
                depth -= 1
            case "{" if depth == 0:
                return index
            case ";" if depth == 0:
                return None
    return None


def _closing(code: str, opening: int) -> int:
    depth = 0
    for index in range(opening, len(code)):
        if code[index] == "{":
            depth += 1
        elif code[index] == "}":
            depth -= 1
            if depth == 0:
                return index
    return len(code) - 1


def _end_of_item(code: str, at: int) -> int:
    """Behind the item that begins at `at`, which ends with its body or a semicolon."""
    body = _opening(code, at)
    if body is not None:
        return _closing(code, body) + 1
    end = code.find(";", at)
    return len(code) if end < 0 else end + 1


class Tree:
    """Every Rust file of the crates."""

    def __init__(self, root: Path):
        self.root = root
        self.files = [RustFile(root, path) for path in sorted(root.glob("crates/**/*.rs"))]
        self._for_tests = {path for file in self.files for path in file.test_modules}

    def production(self) -> Iterator[RustFile]:
        """Files that are part of what ships."""
        for file in self.files:
            parts = file.path.split("/")
            in_sources = len(parts) > 2 and parts[2] == "src"
            of = file.full_path
            if in_sources and not any(p in self._for_tests for p in (of, *of.parents)):
                yield file
