"""Wheels for several architectures: which are built where, and that nothing foreign is in one."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "packaging"))

import architectures  # noqa: E402
import release  # noqa: E402
import wheel_file  # noqa: E402

HERE = os.uname().machine
[ELSEWHERE] = architectures.ALL.keys() - {HERE}
MISSING = f"wheels: none for {ELSEWHERE}: .* `rustup target add {ELSEWHERE}-unknown-linux-gnu`"


def rust_with(folder, monkeypatch, *names):
    """A `rustc` that has its library for these alone, as rustup lays it out."""
    for name in names:
        (folder / f"{name}-unknown-linux-gnu").mkdir()
    rustc = folder / "rustc"
    rustc.write_text(f'#!/bin/sh\necho "{folder}/$4"\n')
    rustc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_wheels_are_for_every_architecture_that_rust_has_here(tmp_path, monkeypatch, capsys):
    rust_with(tmp_path, monkeypatch, HERE, ELSEWHERE)
    every = [f"{name}-unknown-linux-gnu" for name in architectures.ALL]
    assert architectures.targets(None) == every
    assert architectures.targets([ELSEWHERE]) == [f"{ELSEWHERE}-unknown-linux-gnu"]
    assert capsys.readouterr().err == ""


def test_one_that_rust_has_not_is_said_and_left_out(tmp_path, monkeypatch, capsys):
    rust_with(tmp_path, monkeypatch, HERE)
    assert architectures.targets(None) == [f"{HERE}-unknown-linux-gnu"]
    [line] = capsys.readouterr().err.splitlines()
    with pytest.raises(SystemExit, match=MISSING) as raised:
        architectures.targets([HERE, ELSEWHERE])
    assert str(raised.value) == line


def test_without_the_machines_own_there_are_none(tmp_path, monkeypatch):
    rust_with(tmp_path, monkeypatch, ELSEWHERE)
    with pytest.raises(SystemExit, match=f"none for {HERE}: .*rustup target add {HERE}"):
        architectures.targets(None)


def test_a_release_asks_for_all(tmp_path, monkeypatch):
    """So that it is not made without one because a machine lacks something."""
    asked = []

    class Enough(Exception):
        pass

    def run(*command):
        asked.append(command)
        raise Enough

    clean = subprocess.CompletedProcess([], 0, "")
    monkeypatch.setattr(release, "_run", run)
    monkeypatch.setattr(release.subprocess, "run", lambda *_, **__: clean)
    monkeypatch.setattr(sys, "argv", ["release.py"])
    with pytest.raises(Enough):
        release.main()
    [command] = asked
    assert command[command.index("--architectures") + 1 :] == tuple(architectures.ALL)


def test_a_program_says_what_it_is_for(tmp_path):
    assert architectures.of(Path(sys.executable)) == HERE
    for name in architectures.ALL:
        assert architectures.of(program(tmp_path / name, name)) == name
    (tmp_path / "other").write_bytes(b"\x7fELF\x02\x02\x01" + bytes(11) + struct.pack(">H", 22))
    assert architectures.of(tmp_path / "other") == "machine 22", "the high byte first"
    for text in (b"", b"\x7fELF", b"#!/bin/sh\necho of more than twenty bytes\n"):
        (tmp_path / "script").write_bytes(text)
        assert architectures.of(tmp_path / "script") is None


def test_a_wheel_with_a_program_for_another_machine_is_refused(tmp_path):
    wheel = tmp_path / f"oxiray-0.1.0-cp312-cp312-manylinux_2_28_{HERE}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(program(tmp_path / "program", ELSEWHERE), "oxiray/_bin/oxirayd")
    target = f"{HERE}-unknown-linux-gnu"
    told = f"{wheel.name}: is for {target}, and oxiray/_bin/oxirayd in it for {ELSEWHERE}"
    with pytest.raises(SystemExit, match=told):
        wheel_file.finish(wheel, ROOT, target)


def program(path, architecture):
    """Its first bytes: 64 bits, the low byte first, an executable."""
    number = architectures.ALL[architecture]
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, number) + bytes(44))
    return path
