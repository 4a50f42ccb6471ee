"""Environment variables of ours are declared in crates/settings, and read through it alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .problem import Problem
from .rust import Tree

TABLE = "crates/settings/src/table.rs"
READERS = ("crates/settings/src/setting.rs", "python/oxiray/_settings.py")
_OURS = re.compile(r"(?:OXIRAY|RAY)_\w+")
_LITERAL = re.compile(r'"((?:OXIRAY|RAY)_\w+)"')
_DECLARATION = re.compile(r'^    (\w+): \w+ = "(\w+)"', re.MULTILINE)
_READ = re.compile(r"\benv::var(?:_os)?\(\s*([^)]*?)\s*\)")

# Words that look like variables of ours and are none: Ray's names for things.
NAMES = {
    "RAY_ADDRESS_ENVIRONMENT_VARIABLE",
    "RAY_NAMESPACE",
    "RAY_NAMESPACE_ENVIRONMENT_VARIABLE",
    "RAY_RUNTIME_ENV",
    "RAY_RUNTIME_ENV_ENVIRONMENT_VARIABLE",
    "RAY_VERSION",
}


def check(tree: Tree) -> Iterator[Problem]:
    table = tree.root / TABLE
    text = table.read_text() if table.exists() else ""
    declared = set(_LITERAL.findall(text))
    read = set()
    for file in tree.production():
        if file.path.startswith("crates/settings/"):
            continue
        read |= set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", file.production))
        for found in _LITERAL.finditer(file.text):
            if found[1] not in declared and found[1] not in NAMES:
                yield _problem(file.path, file.text, found.start(), _undeclared(found[1]))
        for found in _READ.finditer(file.text):
            if not _is_others(found[1]):
                what = f"reads {found[1]}: do it by its declaration in {TABLE}"
                yield _problem(file.path, file.text, found.start(), what)
    for path in sorted(Path(tree.root, "python").glob("**/*.py")):
        name = path.relative_to(tree.root).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                read.add(node.value)
            yield from _in_python(name, node, declared)
    for found in _DECLARATION.finditer(text):
        if found[1] not in read and found[2] not in read:
            yield _problem(TABLE, text, found.start(), f"nobody reads {found[2]}: take it out")


def _in_python(path: str, node: ast.AST, declared: set[str]) -> Iterator[Problem]:
    match node:
        case ast.Constant(value=str(word)) if _OURS.fullmatch(word) and word not in NAMES:
            if word not in declared:
                yield Problem(path, node.lineno, _undeclared(word))
        case ast.Call(func=ast.Attribute(attr="get", value=value), args=[name, *_]):
            yield from _read(path, name) if _is_environ(value) else ()
        case ast.Subscript(value=value, slice=name, ctx=ast.Load()):
            yield from _read(path, name) if _is_environ(value) else ()
        case ast.Call(func=ast.Attribute(attr="getenv"), args=[name, *_]):
            yield from _read(path, name)


def _read(path: str, name: ast.expr) -> Iterator[Problem]:
    others = isinstance(name, ast.Constant) and not _OURS.fullmatch(str(name.value))
    # A constant of the module, in capitals, is looked at where it is said.
    if not others and not isinstance(name, ast.Name) and path not in READERS:
        yield Problem(path, name.lineno, f"reads {ast.unparse(name)}: by oxiray._settings")


def _is_environ(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def _is_others(argument: str) -> bool:
    return argument.startswith('"') and not _LITERAL.fullmatch(argument)


def _undeclared(name: str) -> str:
    return f"{name} is not declared in {TABLE}"


def _problem(path: str, text: str, at: int, what: str) -> Problem:
    return Problem(path, text.count("\n", 0, at) + 1, what)
