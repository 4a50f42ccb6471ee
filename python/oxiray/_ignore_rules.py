"""Lines of a .gitignore: which paths they leave out."""

from __future__ import annotations

import os
import re


class IgnoreRules:
    """What the lines of one file say of the paths below its directory; later lines count more."""

    def __init__(self, lines: list[str]) -> None:
        self._rules: list[tuple[re.Pattern[str], bool, bool]] = []
        for line in lines:
            rule = _rule(line)
            if rule is not None:
                self._rules.append(rule)

    @classmethod
    def of_file(cls, path: str) -> IgnoreRules | None:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return cls(file.read().splitlines())
        except OSError:
            return None

    def says(self, path: str, is_directory: bool) -> bool | None:
        """Whether a path, relative to the rules' directory, is left out; None: they do not say."""
        verdict = None
        for pattern, leaves_out, only_directories in self._rules:
            if (is_directory or not only_directories) and pattern.fullmatch(path):
                verdict = leaves_out
        return verdict


def _rule(line: str) -> tuple[re.Pattern[str], bool, bool] | None:
    line = re.sub(r"(?<!\\) +$", "", line)
    if not line or line.startswith("#"):
        return None
    leaves_out = not line.startswith("!")
    line = line.removeprefix("!")
    if line.startswith(("\\#", "\\!")):
        line = line[1:]
    only_directories = line.endswith("/")
    line = line.rstrip("/")
    if not line:
        return None
    # With a slash in it, it is meant from the rules' directory on; else at any depth.
    is_anchored = "/" in line
    pattern = _pattern(line.lstrip("/"))
    if not is_anchored:
        pattern = "(?:.*/)?" + pattern
    try:
        return re.compile(pattern, re.DOTALL), leaves_out, only_directories
    except re.error:
        return None


def _pattern(glob: str) -> str:
    """A regular expression for a glob in which `*` stays within a name and `**` does not."""
    made, at = "", 0
    while at < len(glob):
        rest = glob[at:]
        if rest.startswith("**/") and (at == 0 or glob[at - 1] == "/"):
            made, at = made + "(?:.*/)?", at + 3
        elif rest == "**" and (at == 0 or glob[at - 1] == "/"):
            made, at = made + ".*", at + 2
        elif rest[0] == "*":
            made, at = made + "[^/]*", at + len(rest) - len(rest.lstrip("*"))
        elif rest[0] == "?":
            made, at = made + "[^/]", at + 1
        elif rest[0] == "[" and "]" in rest[2:]:
            end = rest.index("]", 2)
            inside = rest[1:end].replace("\\", "\\\\")
            inside = "^" + inside[1:] if inside[0] in "!^" else inside
            made, at = made + f"[{inside}]", at + end + 1
        elif rest[0] == "\\" and len(rest) > 1:
            made, at = made + re.escape(rest[1]), at + 2
        else:
            made, at = made + re.escape(rest[0]), at + 1
    return made


def files_below(root: str, excludes: list[str], ignore_files: tuple[str, ...]) -> list[str]:
    """The files and links below a directory that no rule leaves out, relative to it and sorted.

    `excludes` are rules of the root. Of a directory that is left out nothing can be taken in again.
    """
    kept: list[str] = []
    own = IgnoreRules(excludes)

    def visit(directory: str, above: list[tuple[str, IgnoreRules]]) -> None:
        here = os.path.join(root, directory)
        rules = list(above)
        for name in ignore_files:
            found = IgnoreRules.of_file(os.path.join(here, name))
            if found is not None:
                rules.append((directory, found))
        for entry in sorted(os.scandir(here), key=lambda entry: entry.name):
            path = os.path.join(directory, entry.name)
            is_directory = entry.is_dir(follow_symlinks=False)
            if _is_left_out(path, is_directory, own, rules):
                continue
            if is_directory:
                visit(path, rules)
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                kept.append(path)

    visit("", [])
    return kept


def _is_left_out(
    path: str, is_directory: bool, own: IgnoreRules, rules: list[tuple[str, IgnoreRules]]
) -> bool:
    if own.says(path, is_directory):
        return True
    for directory, found in reversed(rules):
        verdict = found.says(os.path.relpath(path, directory or "."), is_directory)
        if verdict is not None:
            return verdict
    return False
