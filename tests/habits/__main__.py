"""`python -m habits [DIRECTORY]`: prints every broken habit; the exit code is 1 if there is one."""

from __future__ import annotations

import sys
from pathlib import Path

from . import bans, crates, deny, lengths, settings, words
from .rust import Tree


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    tree = Tree(root)
    found = [*crates.check(root), *deny.check(root)]
    for habit in (lengths, bans, words, settings):
        found += habit.check(tree)
    for problem in sorted(found):
        print(problem)
    print(f"habits: {len(tree.files)} Rust files, {len(found)} problem(s)", file=sys.stderr)
    return 1 if found else 0


sys.exit(main())
