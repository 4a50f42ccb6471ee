"""What deny.toml says of the crates that come in: their licences, sources, versions, names.

`cargo deny check` reads the same file and knows more: advisories, which need a database from the
network, and versions that come twice. This needs nothing but cargo, so that it always runs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .problem import Problem

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
_WORD = re.compile(r"\s*([()]|[^\s()]+)")


def check(root: Path) -> Iterator[Problem]:
    # Of the lock file as it is: a check changes nothing, and needs no network.
    rules = tomllib.loads((root / "deny.toml").read_text())
    platforms = [f"--filter-platform={target}" for target in rules["graph"]["targets"]]
    command = ["cargo", "metadata", "--format-version=1", "--locked", *platforms, "--offline"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode != 0:
        # What no build has fetched yet.
        done = subprocess.run(command[:-1], cwd=root, capture_output=True, text=True)
    if done.returncode != 0:
        yield Problem("Cargo.toml", 1, f"cargo metadata failed: {done.stderr.strip()}")
        return
    yield from judge(rules, json.loads(done.stdout)["packages"])


def judge(rules: dict[str, Any], packages: list[dict[str, Any]]) -> Iterator[Problem]:
    allowed = set(rules["licenses"]["allow"])
    denied = {entry["crate"]: entry["reason"] for entry in rules["bans"]["deny"]}
    licences = set()
    for package in packages:
        name = f"{package['name']} {package['version']}"
        licence = package["license"] or ""
        licences |= set(_WORD.findall(licence))
        if not allows(licence, allowed):
            yield _problem(f"{name}: its licence is {licence or 'not said'}, which is not allowed")
        if package["name"] in denied:
            yield _problem(f"{name}: denied: {denied[package['name']]}")
        source = package["source"]
        if source not in (None, _REGISTRY):
            yield _problem(f"{name}: comes from {source}, which is no registry we know")
        for need in package["dependencies"] if source is None else ():
            if need["req"] == "*" and not need.get("path"):
                yield _problem(f"{name}: takes any version of {need['name']}")
    for licence in sorted(allowed):
        if licence.split(" WITH ")[0] not in licences:
            yield _problem(f"nothing has the licence {licence} any more: take it out")


def _problem(text: str) -> Problem:
    return Problem("deny.toml", 1, text)


def allows(expression: str, allowed: set[str]) -> bool:
    """Whether a licence by these is enough, for an SPDX expression: AND binds before OR."""
    words = _WORD.findall(expression.replace("/", " OR "))
    result, rest = _either(words, allowed)
    return result and not rest


def _either(words: list[str], allowed: set[str]) -> tuple[bool, list[str]]:
    result, words = _both(words, allowed)
    while words and words[0] == "OR":
        other, words = _both(words[1:], allowed)
        result = result or other
    return result, words


def _both(words: list[str], allowed: set[str]) -> tuple[bool, list[str]]:
    result, words = _one(words, allowed)
    while words and words[0] == "AND":
        other, words = _one(words[1:], allowed)
        result = result and other
    return result, words


def _one(words: list[str], allowed: set[str]) -> tuple[bool, list[str]]:
    match words:
        case ["(", *rest]:
            result, rest = _either(rest, allowed)
            return (result, rest[1:]) if rest[:1] == [")"] else (False, rest)
        case [licence, "WITH", exception, *rest]:
            # An exception takes conditions away: who may have it without may have it with.
            return f"{licence} WITH {exception}" in allowed or licence in allowed, rest
        case [licence, *rest]:
            return licence in allowed, rest
    return False, []
