"""What must not be used, each with its reason and with the places that may."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .crates import PURE
from .problem import Problem
from .rust import Tree

ANYWHERE: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ban:
    pattern: str
    reason: str
    # Crates it is for; none: all of them.
    crates: tuple[str, ...] = ANYWHERE
    # Paths that may, each with its own reason where that is not plain.
    but: dict[str, str] = field(default_factory=dict)


BANS = [
    Ban(
        r"\.unwrap\(\)",
        "says nothing when it fails: `expect` with the invariant, or an error",
    ),
    Ban(
        r"\b(?:todo|unimplemented|dbg)!",
        "is for work under way",
    ),
    Ban(
        r"\be?print(?:ln)?!",
        "ends the program where nobody reads: the command has cli/src/print.rs, all else logs",
    ),
    Ban(
        r"\bstd::sync::(?:\{[^}]*)?\b(?:Mutex|RwLock|Condvar)\b",
        "is poisoned by a panic: parking_lot's is not",
    ),
    Ban(
        r"\bthread::sleep\b",
        "waits for a time and not for what it wants: poll, a bell or a condition",
        but={
            "crates/cli/src/commands/drain.rs": "a node that leaves says so to nobody who asks",
            "crates/daemon/src/control_service/writer.rs": "a store that failed is tried again",
            "crates/daemon/src/enforcement.rs": "a control group says nothing when it is empty",
            "crates/daemon/src/io.rs": "the last packets, when there is no loop any more",
            "crates/daemon/src/rejoining.rs": "a control service that is back tells no stranger",
            "crates/observe/src/nodes.rs": "how busy a processor is shows between two looks",
            "crates/observe/src/py_spy.rs": "a child that may not end is waited for, not for ever",
            "crates/persist/src/redis/lease.rs": "a lease of another ends by its time alone",
            "crates/session/src/folder.rs": "another process that ends says nothing when it has",
            "crates/spill/src/directory.rs": "a name that is taken is free in a moment",
            "crates/worker/src/connect.rs": "the end of a thread and of a child, within a deadline",
            "crates/worker/src/pump.rs": "the nap is its rhythm: see there",
        },
    ),
    Ban(
        r"\b(?:Instant|SystemTime)::now\b|\bstd::(?:time::(?:Instant|SystemTime)|thread|net|fs|env)\b",
        "makes it depend on the world: time and the like are arguments of a pure crate",
        crates=PURE,
    ),
    Ban(
        r"\bstd::collections::(?:\{[^}]*)?\bHash(?:Map|Set)\b|\bRandomState\b",
        "has an order by chance, and pure is the same every time: a BTreeMap, or a fixed hasher",
        crates=PURE,
        but={
            "crates/node/src/cluster/copies.rs": "",
            "crates/node/src/cluster/lending.rs": "",
        },
    ),
    Ban(
        r"\b(?:allow|expect)\(unsafe_code\b",
        "unsafe code is in `sys` and the binding's buffers",
        but={"crates/python/src/buffers.rs": "the buffer protocol is a C interface"},
    ),
    Ban(
        r"\b(?:struct|enum|trait|mod)\s+(?:\w*Manager|\w*Helper|utils?|helpers?|common|misc)\b",
        "is a name that says nothing: call it by what it does",
    ),
]


def check(tree: Tree, bans: list[Ban] = BANS) -> Iterator[Problem]:
    used = set()
    for file in tree.production():
        for number, ban in enumerate(bans):
            if ban.crates and file.crate not in ban.crates:
                continue
            for found in re.finditer(ban.pattern, file.production):
                if file.path in ban.but:
                    used.add((number, file.path))
                    continue
                line = file.production.count("\n", 0, found.start()) + 1
                what = " ".join(found[0].split())
                yield Problem(file.path, line, f"`{what}` {ban.reason}")
    for number, ban in enumerate(bans):
        for path in ban.but:
            if (number, path) not in used:
                yield Problem(path, 1, f"no longer has `{ban.pattern}`: take it out of its ban")
