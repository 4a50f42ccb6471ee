"""Lengths of files and functions: what is longer has more than one job."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from .problem import Problem
from .rust import Tree

MOST_LINES = 600
MOST_LINES_OF_FUNCTION = 80

# Longer ones, and how long they may be; to be split, never to grow.
LONGER_FILES = {
    "crates/cli/src/commands/start.rs": 620,
    "crates/worker/src/runtime.rs": 643,
}

# By path and name. One table or one match, which would not be clearer in pieces.
LONGER_FUNCTIONS = {
    ("crates/events/src/format.rs", "encode"): 81,
    ("crates/events/src/reading.rs", "apply"): 177,
}


def check(tree: Tree) -> Iterator[Problem]:
    needed: set[object] = set()
    for path, text in _files(tree):
        lines = text.count("\n")
        most = LONGER_FILES.get(path, MOST_LINES)
        if lines > MOST_LINES:
            needed.add(path)
        if lines > most:
            yield Problem(path, 1, f"{lines} lines: more than {most}; split it by what it does")
    for path, name, line, lines in _functions(tree):
        most = LONGER_FUNCTIONS.get((path, name), MOST_LINES_OF_FUNCTION)
        if lines > MOST_LINES_OF_FUNCTION:
            needed.add((path, name))
        if lines > most:
            yield Problem(path, line, f"{name}: {lines} lines: more than {most}")
    for path in LONGER_FILES.keys() - needed:
        yield Problem(path, 1, "is no longer long, or not there: take it out of LONGER_FILES")
    for path, name in LONGER_FUNCTIONS.keys() - needed:
        yield Problem(path, 1, f"{name} is no longer long: take it out of LONGER_FUNCTIONS")


def _files(tree: Tree) -> Iterator[tuple[str, str]]:
    for file in tree.files:
        yield file.path, file.text
    for path in _python(tree.root):
        yield path.relative_to(tree.root).as_posix(), path.read_text()


def _functions(tree: Tree) -> Iterator[tuple[str, str, int, int]]:
    for file in tree.production():
        for function in file.functions(file.production):
            yield file.path, function.name, function.line, function.lines
    for path in _python(tree.root):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                yield path.relative_to(tree.root).as_posix(), node.name, node.lineno, lines


def _python(root: Path) -> list[Path]:
    return sorted(root.glob("python/**/*.py"))
