"""The wheel that `make build` made, finished as for a release, in a clean environment.

The short form of `make wheels try-wheels`: one Python, this machine's glibc.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import oxiray
import pytest

ROOT = Path(__file__).resolve().parents[2]
ALIAS = str(ROOT / "python/oxiray-as-ray")
sys.path.append(str(ROOT / "packaging"))

import try_wheels  # noqa: E402
import wheel_file  # noqa: E402
import wheels  # noqa: E402


@pytest.fixture(scope="module")
def made():
    tag = f"cp3{sys.version_info[1]}-"
    found = [path for path in ROOT.glob("dist/oxiray-*.whl") if tag in path.name]
    if not found and not os.environ.get("CI"):
        pytest.skip("needs the wheel of `make build`")
    [wheel] = found
    return wheel


@pytest.fixture(scope="module")
def finished(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    wheel = Path(shutil.copy(made, folder))
    wheel_file.finish(wheel, ROOT, aside=folder / "symbols")
    return wheel


def test_it_is_small_and_its_symbols_are_kept(finished):
    assert finished.stat().st_size < wheels.LARGEST
    kept = {path.name for path in finished.parent.glob("symbols/*/*.debug")}
    assert {"oxiray.debug", "oxirayd.debug"} < kept and any("_native" in name for name in kept)


def test_it_records_what_is_in_it(finished):
    with zipfile.ZipFile(finished) as archive:
        names = archive.namelist()
        [record] = [name for name in names if name.endswith("/RECORD")]
        rows = list(csv.reader(archive.read(record).decode().splitlines()))
        assert sorted(row[0] for row in rows) == sorted(names)
        for name, digest, size in rows:
            if name != record:
                data = archive.read(name)
                sha = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                assert (digest, int(size)) == (f"sha256={sha}", len(data)), name
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
        bill = json.loads(archive.read(metadata.replace("METADATA", "sboms/oxiray.cdx.json")))
        assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/oxiray@{oxiray.__version__}"
        for program in ("oxiray", "oxirayd"):
            info = archive.getinfo(f"oxiray/_bin/{program}")
            assert info.external_attr >> 16 & 0o111, "it can be run"
    folder = metadata.rpartition("/")[0]
    for file in ("sboms/oxiray.cdx.json", "licenses/LICENSE", "licenses/THIRD-PARTY.txt"):
        assert f"{folder}/{file}" in names
    assert "](docs/" not in text, "links of the page are whole"
    for line in ("License-File: THIRD-PARTY.txt", "Requires-Python: >=3.10", "Project-URL: Issues"):
        assert line in text


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_it_is_installed_and_used_in_a_clean_environment(finished, tmp_path, capsys):
    built = subprocess.run(
        [sys.executable, *"-m pip -q wheel --no-deps --wheel-dir".split(), str(tmp_path), ALIAS],
        capture_output=True,
        text=True,
    )
    if built.returncode and not os.environ.get("CI"):
        pytest.skip(f"the alias cannot be built, is there a network? {built.stderr[-300:]}")
    [alias] = tmp_path.glob("ray-*.whl")
    assert try_wheels.use(finished, alias, sys.executable), capsys.readouterr().out


def test_another_python_architecture_or_libc_is_refused_by_pip(finished, tmp_path):
    """Nothing is half installed: the tags say whom it is for."""

    def refused(name):
        other = Path(shutil.copy(finished, tmp_path / name))
        done = subprocess.run(
            [
                sys.executable,
                *"-m pip install --no-deps --target".split(),
                str(tmp_path / "t"),
                other,
            ],
            capture_output=True,
            text=True,
        )
        return done.returncode != 0 and "is not a supported wheel on this platform" in done.stderr

    this = f"cp3{sys.version_info[1]}"
    other = "cp310" if this != "cp310" else "cp311"
    assert refused(f"oxiray-0.1.0-{other}-{other}-manylinux_2_28_x86_64.whl")
    machine = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    assert refused(f"oxiray-0.1.0-{this}-{this}-manylinux_2_28_{machine}.whl")
    assert refused(f"oxiray-0.1.0-{this}-{this}-musllinux_1_2_{os.uname().machine}.whl")
