"""The first line of each file says its job, no file says what is to be done one day, and what the
documentation names is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .problem import Problem
from .rust import Tree

# Put together, or this file would be one of those.
_LATER = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
# A path from the root of the project, in code.
_PATH = re.compile(r"`((?:crates|python|tests|fuzz|ui|bench)/[\w./-]*)`")


def check(tree: Tree) -> Iterator[Problem]:
    for file in tree.files:
        if not file.text.startswith("//! "):
            yield Problem(file.path, 1, "does not begin with `//!` and its one job")
        yield from _later(file.path, file.text)
    for path in sorted([*tree.root.glob("python/**/*.py"), *tree.root.glob("tests/**/*.py")]):
        name, text = path.relative_to(tree.root).as_posix(), path.read_text()
        if text.strip() and not ast.get_docstring(ast.parse(text)):
            yield Problem(name, 1, "does not begin with a docstring that says its one job")
        yield from _later(name, text)
    for path in sorted(Path(tree.root, "docs").glob("*.md")):
        name, text = path.relative_to(tree.root).as_posix(), path.read_text()
        yield from _later(name, text)
        for found in _PATH.finditer(text):
            if not Path(tree.root, found[1]).exists():
                line = text.count("\n", 0, found.start()) + 1
                yield Problem(name, line, f"{found[1]} is not there any more")


def _later(path: str, text: str) -> Iterator[Problem]:
    for found in _LATER.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Problem(path, line, f"{found[0]}: do it, or say why it is as it is")
