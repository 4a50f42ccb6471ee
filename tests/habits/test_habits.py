"""The habits hold here, and each is found broken in a made-up tree."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from . import bans, crates, deny, lengths, settings, words
from .rust import Tree

ROOT = Path(__file__).parents[2]


@pytest.fixture
def made_up(tmp_path):
    """Writes a file of a tree; the tree as it is then."""

    def write(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        return Tree(tmp_path)

    return write


def said(problems):
    return [str(problem) for problem in problems]


def test_the_habits_hold_here():
    run = subprocess.run(
        [sys.executable, "-m", "habits"], cwd=ROOT / "tests", capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


class TestRust:
    def test_strings_comments_and_tests_are_no_code(self, made_up):
        tree = made_up(
            "crates/node/src/lib.rs",
            r"""
            //! .unwrap()
            fn a<'a>(x: &'a str) -> char { /* .unwrap() */ let _ = "\".unwrap()"; '"' }
            fn b() { let _ = r#" " .unwrap() "#; } // .unwrap()
            #[cfg(test)]
            mod tests { fn c() { Some(1).unwrap(); } }
            #[cfg(not(test))]
            fn d() { Some(2).unwrap(); }
            #[cfg(all(test, feature = "shuttle"))]
            mod interleavings;
            """,
        )
        made_up("crates/node/src/interleavings.rs", "//! Tests.\nfn e() { Some(1).unwrap(); }")
        made_up("crates/node/src/interleavings/more.rs", "//! Tests.\nfn e() { o.unwrap(); }")
        tree = made_up("crates/node/tests/whole.rs", "//! Tests.\nfn e() { o.unwrap(); }")
        found = said(bans.check(tree, bans.BANS[:1]))
        assert len(found) == 1 and found[0].startswith("crates/node/src/lib.rs:8: `.unwrap()`")

    def test_lengths_of_functions(self, made_up):
        text = (
            "//! Job.\nfn short(x: [u8; 3]) -> u8 {\n}\ntrait T { fn none(&self); }\nfn long()\n{\n"
        )
        tree = made_up("crates/node/src/lib.rs", text + "    if x { y }\n" * 90 + "}\n")
        (file,) = tree.files
        lengths_of = [(it.name, it.line, it.lines) for it in file.functions(file.production)]
        assert lengths_of == [("short", 2, 2), ("long", 5, 93)]


class TestCrates:
    def test_a_pure_crate_stays_pure(self, made_up, tmp_path):
        made_up(
            "crates/owner/Cargo.toml",
            """
            [dependencies]
            oxiray-ids.workspace = true
            oxiray-sys.workspace = true
            slab = "1"
            tokio = "1"
            [dev-dependencies]
            proptest = "1"
            """,
        )
        assert said(crates.check(tmp_path)) == [
            "crates/owner/Cargo.toml:1: owner may not depend on sys: OURS in tests/habits",
            "crates/owner/Cargo.toml:1: owner does not need wire any more: take it out of OURS",
            "crates/owner/Cargo.toml:1: owner does not need words any more: take it out of OURS",
            "crates/owner/Cargo.toml:1: owner is pure, and may not use tokio",
        ]

    def test_a_new_crate_says_what_it_stands_on(self, made_up, tmp_path):
        made_up("crates/new/Cargo.toml", "[dependencies]\n")
        (problem,) = crates.check(tmp_path)
        assert "new is in no line of OURS" in str(problem)

    def test_the_table_has_no_circle(self):
        done = set()
        while len(done) < len(crates.OURS):
            ready = {c for c, needs in crates.OURS.items() if set(needs.split()) <= done}
            assert ready - done, f"a circle among {crates.OURS.keys() - done}"
            done |= ready

    def test_pure_crates_stand_on_pure_ones(self):
        for crate in crates.PURE:
            needs = set(crates.OURS[crate].split())
            # The store's books are pure; its table is shared memory.
            assert needs - {"store"} <= set(crates.PURE), crate


class TestLengths:
    def test_files_and_functions(self, made_up, monkeypatch):
        monkeypatch.setattr(lengths, "LONGER_FILES", {"gone.rs": 700})
        monkeypatch.setattr(lengths, "LONGER_FUNCTIONS", {("a.rs", "gone"): 90})
        body = "    x();\n" * 81
        made_up("crates/node/src/lib.rs", "//! Job.\n" + "fn f() {}\n" * 600)
        made_up("crates/node/src/long.rs", f"//! Job.\nfn long() {{\n{body}}}\n")
        tree = made_up("python/oxiray/a.py", '"""Job."""\ndef f():\n' + body)
        assert said(lengths.check(tree)) == [
            "crates/node/src/lib.rs:1: 601 lines: more than 600; split it by what it does",
            "crates/node/src/long.rs:2: long: 83 lines: more than 80",
            "python/oxiray/a.py:2: f: 82 lines: more than 80",
            "gone.rs:1: is no longer long, or not there: take it out of LONGER_FILES",
            "a.rs:1: gone is no longer long: take it out of LONGER_FUNCTIONS",
        ]


@pytest.mark.parametrize(
    ("crate", "code"),
    [
        ("cli", "fn f() { g().unwrap(); }"),
        ("cli", "fn f() { todo!() }"),
        ("cli", 'fn f() { eprintln!("x"); }'),
        ("cli", "use std::sync::{Arc, Mutex};"),
        ("cli", "fn f() { std::thread::sleep(d); }"),
        ("owner", "fn f() { std::time::Instant::now(); }"),
        ("control", "use std::fs;"),
        ("node", "use std::collections::{BTreeMap, HashMap};"),
        ("node", "type Map = hashbrown::HashMap<u8, u8, RandomState>;"),
        ("store", "#![allow(unsafe_code)]"),
        ("cli", "struct TaskManager;"),
        ("cli", "mod utils;"),
    ],
)
def test_bans(made_up, crate, code):
    tree = made_up(f"crates/{crate}/src/lib.rs", f"//! Job.\n{code}\n")
    found = [problem for problem in bans.check(tree) if "take it out" not in problem.text]
    assert {(problem.path, problem.line) for problem in found} == {
        (f"crates/{crate}/src/lib.rs", 2)
    }


def test_an_exception_that_is_not_needed_is_a_problem(made_up):
    ban = bans.Ban(r"\bsleep\b", "sleeps", but={"crates/cli/src/lib.rs": "", "gone.rs": ""})
    tree = made_up("crates/cli/src/lib.rs", "//! Job.\nfn f() { sleep(); }")
    assert [problem.path for problem in bans.check(tree, [ban])] == ["gone.rs"]


def test_words(made_up):
    later = "TO" + "DO"
    made_up("crates/cli/src/lib.rs", f"use a;\n// {later}: more\n")
    made_up("docs/page.md", f"# Page\n\n{later}\n`crates/cli/src/lib.rs` `crates/gone.rs`\n")
    tree = made_up("python/oxiray/a.py", "import os\n")
    assert [(problem.path, problem.line) for problem in words.check(tree)] == [
        ("crates/cli/src/lib.rs", 1),
        ("crates/cli/src/lib.rs", 2),
        ("python/oxiray/a.py", 1),
        ("docs/page.md", 3),
        ("docs/page.md", 4),
    ]


def test_settings(made_up):
    made_up(
        settings.TABLE,
        """
        settings! { USERS, User:
            /// Read.
            TMPDIR: Path = "OXIRAY_TMPDIR", "";
            /// Not read.
            LEFT: Path = "OXIRAY_LEFT" or "RAY_LEFT", "";
        }
        """,
    )
    made_up(
        "crates/cli/src/lib.rs",
        """
        fn f() {
            std::env::var("PATH");
            TMPDIR.text();
            std::env::var_os("OXIRAY_TMPDIR");
            std::env::var(name);
            command.env("OXIRAY_NEW", "1");
        }
        """,
    )
    tree = made_up(
        "python/oxiray/a.py",
        """
        os.environ.get("TERM"), os.environ["PATH"]
        os.environ.get("OXIRAY_TMPDIR")
        os.environ["RAY_" + name]
        os.environ["OXIRAY_OTHER"] = "1"
        """,
    )
    assert sorted((problem.path, problem.line) for problem in settings.check(tree)) == [
        ("crates/cli/src/lib.rs", 5),
        ("crates/cli/src/lib.rs", 6),
        ("crates/cli/src/lib.rs", 7),
        ("crates/settings/src/table.rs", 6),
        ("python/oxiray/a.py", 3),
        ("python/oxiray/a.py", 4),
        ("python/oxiray/a.py", 5),
    ]


class TestDeny:
    @pytest.mark.parametrize(
        ("expression", "enough"),
        [
            ("MIT", True),
            ("MIT OR GPL-3.0", True),
            ("GPL-3.0/MIT", True),
            ("MIT AND GPL-3.0", False),
            ("(MIT OR GPL-3.0) AND ISC", True),
            ("GPL-3.0 OR MIT AND Zlib", False),
            ("Apache-2.0 WITH LLVM-exception", True),
            ("ISC WITH some-exception", True),
            ("GPL-3.0 WITH some-exception", False),
            ("(MIT", False),
            ("MIT ISC", False),
            ("", False),
        ],
    )
    def test_licences(self, expression, enough):
        allowed = {"MIT", "ISC", "Apache-2.0 WITH LLVM-exception"}
        assert deny.allows(expression, allowed) is enough

    def test_sources_bans_and_wildcards(self):
        rules = {
            "licenses": {"allow": ["MIT", "ISC"]},
            "bans": {"deny": [{"crate": "bad", "reason": "old"}]},
        }
        good = {"name": "good", "version": "1", "license": "MIT", "dependencies": []}
        registry = "registry+https://github.com/rust-lang/crates.io-index"
        any_version = {"name": "x", "req": "*"}
        packages = [
            {**good, "source": registry},
            {**good, "name": "bad", "source": registry},
            {**good, "name": "closed", "license": None, "source": registry},
            {**good, "name": "forked", "source": "git+https://example.com/forked"},
            {**good, "name": "ours", "source": None, "dependencies": [any_version]},
            {**good, "source": None, "dependencies": [{**any_version, "path": "/near"}]},
        ]
        assert [problem.text for problem in deny.judge(rules, packages)] == [
            "bad 1: denied: old",
            "closed 1: its licence is not said, which is not allowed",
            "forked 1: comes from git+https://example.com/forked, which is no registry we know",
            "ours 1: takes any version of x",
            "nothing has the licence ISC any more: take it out",
        ]
