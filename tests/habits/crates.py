"""Which crates may depend on which. Pure ones decide, and know neither shells nor the system."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from .problem import Problem

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Of ours, whatever else they use. A crate that is added says here what it stands on.
OURS = {
    "ids": "",
    "wire": "ids",
    "sys": "",
    "settings": "",
    "words": "",
    "session": "settings sys wire",
    "channel": "sys",
    "store": "ids sys words",
    "scheduler": "ids wire words",
    "owner": "ids wire words",
    "control": "ids scheduler wire",
    "node": "control ids scheduler store wire words",
    "persist": "control",
    "net": "",
    "spill": "sys words",
    "events": "ids sys wire",
    "observe": "events ids session settings sys wire words",
    "worker": "channel events ids owner session settings store sys wire words",
    "python": "events ids observe session settings sys wire words worker",
    "dashboard": "net observe session settings sys",
    "daemon": "channel control dashboard events ids net node persist session settings spill store"
    " sys wire words",
    "cli": "ids net observe scheduler session settings sys wire words",
    "sim": "control ids node owner store sys wire",
}

# Crates that decide: without clock, sockets, threads and chance.
PURE = ("ids", "words", "wire", "scheduler", "owner", "control", "node")

# What these may use of others' work: data structures, errors, the encoding of messages.
HARMLESS = {"foldhash", "hashbrown", "prost", "slab", "smallvec", "thiserror"}


def check(root: Path) -> Iterator[Problem]:
    for manifest in sorted(root.glob("crates/*/Cargo.toml")):
        crate = manifest.parent.name
        path = manifest.relative_to(root).as_posix()
        needs = tomllib.loads(manifest.read_text()).get("dependencies", {})
        ours = {name.removeprefix("oxiray-") for name in needs if name.startswith("oxiray-")}
        others = {name for name in needs if not name.startswith("oxiray-")}
        if crate not in OURS:
            yield Problem(path, 1, f"{crate} is in no line of OURS in tests/habits")
            continue
        declared = set(OURS[crate].split())
        for name in sorted(ours - declared):
            yield Problem(path, 1, f"{crate} may not depend on {name}: OURS in tests/habits")
        for name in sorted(declared - ours):
            yield Problem(path, 1, f"{crate} does not need {name} any more: take it out of OURS")
        for name in sorted(others - HARMLESS) if crate in PURE else ():
            yield Problem(path, 1, f"{crate} is pure, and may not use {name}")
