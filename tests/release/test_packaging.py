"""What is released: versions that agree, a changelog, a whole sdist, a page for the index."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "packaging"))

import backend  # noqa: E402
import linked  # noqa: E402
import pages  # noqa: E402
import programs  # noqa: E402
import readme  # noqa: E402
import release  # noqa: E402
import sdist  # noqa: E402
import try_wheels  # noqa: E402
import version  # noqa: E402

PROJECTS = (".", "python/oxiray-as-ray", "python/oxiray-caffe")
URL = "https://github.com/oxiray/oxiray"


def test_the_version_is_the_same_everywhere():
    assert set(version.everywhere().values()) == {version.read()}
    import oxiray

    assert oxiray.__version__ == oxiray._native.__version__ == version.read()


def test_a_new_version_is_written_everywhere(tmp_path):
    for path, *_ in version.PLACES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    version.write("7.8.9rc1", tmp_path)
    assert version.read(tmp_path) == "7.8.9rc1"
    assert (
        "2.60.0+oxiray.7.8.9rc1" in (tmp_path / "python/oxiray-as-ray/pyproject.toml").read_text()
    )
    with pytest.raises(SystemExit, match=r"must be like 1\.2\.3"):
        version.write("new", tmp_path)
    (tmp_path / "Cargo.toml").write_text("\n")
    with pytest.raises(SystemExit, match="not the same everywhere"):
        version.read(tmp_path)


def test_the_changelog_has_this_version_and_a_release_its_notes():
    assert release.section((ROOT / "CHANGELOG.md").read_text(), version.read())
    text = "# Changes\n\n## 2.0.0 (2030-01-02)\n\n- new\n\n## 1.0.0 (2029-01-01)\n\n- old\n"
    assert release.section(text, "2.0.0") == "- new"
    assert release.section(text, "1.0.0") == "- old"
    with pytest.raises(SystemExit, match=re.escape("no section '## 3.0.0 (YYYY-MM-DD)'")):
        release.section(text, "3.0.0")


def test_checksums_are_as_sha256sum_reads_them(tmp_path):
    (tmp_path / "a.whl").write_text("a")
    (tmp_path / "b.tar.gz").write_text("b")
    (tmp_path / "SHA256SUMS").write_text(release.checksums(tmp_path))
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0 and done.stdout == b"a.whl: OK\nb.tar.gz: OK\n"


def test_an_sdist_is_all_that_a_build_needs(tmp_path):
    name = sdist.write(ROOT, tmp_path, b"Metadata-Version: 2.4\nName: oxiray\nVersion: 0.1.0\n")
    with tarfile.open(tmp_path / name) as archive:
        archive.extractall(tmp_path, filter="data")
    tree = tmp_path / "oxiray-0.1.0"
    # Cargo finds every crate, and the versions of all, without the network and without git.
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version=1", "--no-deps"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    crates = {package["name"] for package in json.loads(done.stdout)["packages"]}
    assert {"oxiray-cli", "oxiray-daemon", "oxiray-python", "oxiray-dashboard"} <= crates
    for path in ("packaging/backend.py", "python/oxiray/__init__.py", "LICENSE", "PKG-INFO"):
        assert (tree / path).exists(), path
    if pages.are_there(ROOT):
        assert pages.are_there(tree)
    there = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    assert not [path for path in there if path.endswith((".so", ".pyc")) or "/_bin/" in path]
    # An sdist can be made of it: the same files.
    assert {*sdist.files(tree), "PKG-INFO"} == there
    # With the page in it, and no source of it, Node is not asked for.
    pages.build(tree)


def test_a_build_without_node_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "ui/src").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    pages.build(tmp_path)
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("oxiray: the dashboard has no pages: npm is not found; Node 20.19")
    monkeypatch.setenv("CI", "1")
    with pytest.raises(SystemExit, match="npm is not found"):
        pages.build(tmp_path)


def test_a_build_without_rust_or_a_c_compiler_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="cargo is not found: https://rustup"):
        programs.prepare(ROOT)
    (tmp_path / "cargo").touch(mode=0o755)
    for set_to, compiler in (("", "cc"), ("clang-99 -m64", "clang-99")):
        monkeypatch.setenv("CC", set_to)
        with pytest.raises(SystemExit, match=rf"a C compiler is needed .*'{compiler}' is not"):
            programs.prepare(ROOT)


def test_a_build_without_a_network_is_one_sentence(tmp_path, monkeypatch):
    cargo = tmp_path / "cargo"
    cargo.write_text("#!/bin/sh\necho 'error: could not resolve host' >&2\nexit 101\n")
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SystemExit, match=r"cannot be fetched \(error: could not resolve host\)"):
        backend.prepare_metadata_for_build_wheel(str(tmp_path))


def test_what_is_linked_is_said_with_its_licences():
    parts = linked.parts(ROOT, "x86_64-unknown-linux-gnu")
    names = {part.name for part in parts}
    assert {"rustls", "ring", "pyo3", "tokio"} <= names
    assert not {"proptest", "shuttle", "serde_derive"} & names, "not of tests, not macros"
    assert all(part.licence for part in parts)
    bill = json.loads(linked.bill(parts, "1.2.3"))
    assert bill["bomFormat"] == "CycloneDX"
    assert len(bill["components"]) == len(parts) == len({part.url for part in parts})
    text = linked.licences(parts)
    assert "Permission is hereby granted" in text and "ring " in text


@pytest.mark.parametrize("project", PROJECTS)
def test_the_metadata_is_whole(project):
    path = ROOT / project / "pyproject.toml"
    told = tomllib.loads(path.read_text())["project"]
    assert told["requires-python"] == ">=3.10" and told["license"] == "Apache-2.0"
    for file in [told["readme"], *told["license-files"]]:
        assert (path.parent / file).exists()
    assert all(url.startswith(URL) for url in told["urls"].values())


@pytest.mark.parametrize("project", PROJECTS)
def test_links_and_pictures_hold_where_the_index_shows_them(project):
    text = (ROOT / project / "README.md").read_text()
    for file in readme.neighbours(text):
        assert (ROOT / project / file).exists(), f"{project}/README.md: {file}"
    assert not readme.neighbours(readme.make_links_whole(text, "1.2.3"))
    if project != ".":
        assert not readme.neighbours(text), "its metadata is made without us"


def test_links_become_those_of_the_tag():
    text = "[a](docs/a.md#b), ![p](p.png), [w](https://w.org), [h](#here)"
    assert readme.make_links_whole(text, "1.2.3") == (
        f"[a]({URL}/blob/v1.2.3/docs/a.md#b), "
        "![p](https://raw.githubusercontent.com/oxiray/oxiray/v1.2.3/p.png), "
        "[w](https://w.org), [h](#here)"
    )


def test_the_index_renders_the_readme():
    """As the index does it, where its renderer is installed."""
    if importlib.util.find_spec("readme_renderer") is None:
        pytest.skip("needs readme_renderer[md]")
    from readme_renderer import markdown

    html = markdown.render(readme.make_links_whole((ROOT / "README.md").read_text(), "1.2.3"))
    assert html and "<table>" in html and 'src="https://raw' in html


def test_tags():
    name = "oxiray-0.1.0-cp314-cp314t-manylinux_2_28_aarch64.whl"
    assert try_wheels.tag(Path(name)) == ("3.14t", "aarch64")
    assert try_wheels.tag(Path("oxiray-0.1.0-cp310-cp310-linux_x86_64.whl")) == ("3.10", "x86_64")
    with pytest.raises(SystemExit, match="no wheel"):
        try_wheels.tag(Path("oxiray-0.1.0-py3-none-any.whl"))


def test_a_release_of_a_tree_that_is_not_committed_is_refused(tmp_path):
    """The cheap half of `make release`: it refuses before it builds."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{ROOT}", str(clone)], check=True)
    (clone / "new").touch()
    done = subprocess.run(
        [sys.executable, "packaging/release.py"], cwd=clone, capture_output=True, text=True
    )
    assert done.returncode == 1 and "release: commit first" in done.stderr, done.stderr
