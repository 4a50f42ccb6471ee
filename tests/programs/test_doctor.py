"""`oxiray doctor`: what it says of this machine, and of machines that are worse."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest
from oxiray import doctor
from oxiray._doctor import installation, machine, session

PROGRAM = os.path.join(os.path.dirname(sys.executable), "oxiray")
GB = 1 << 30


def run(command, **environment):
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=110
    )


@pytest.mark.parametrize("command", [[PROGRAM, "doctor"], [sys.executable, "-m", "oxiray.doctor"]])
def test_this_machine_works(command):
    done = run(command)
    assert done.returncode == 0, done.stdout + done.stderr
    for subject in "Oxiray memory /dev/shm clock sessions".split():
        assert f"{subject}: " in done.stdout
    assert "a task: was run in a session of its own" in done.stdout
    assert "FAIL" not in done.stdout


def test_what_cannot_work_is_said_and_ends_with_1():
    long = "/tmp/" + "x" * 90
    done = run([sys.executable, "-m", "oxiray.doctor", "--json"], OXIRAY_TMPDIR=long)
    findings = {finding["subject"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 1
    assert findings["sessions"]["verdict"] == "FAIL"
    assert "OXIRAY_TMPDIR" in findings["sessions"]["remedy"]


def test_few_open_files():
    limited = ["prlimit", "--nofile=100:100", sys.executable, "-m", "oxiray.doctor"]
    done = run(limited)
    assert "FAIL open files: 100, may be raised to 100" in done.stdout
    assert "-> too few for workers: ulimit" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("finding", "verdict", "says"),
    [
        (lambda: machine.memory(16 * GB, 12 * GB), "ok", "4.8 GiB|4.80|5.1"),
        (lambda: machine.memory(16 * GB, 2 * GB), "warn", "most is in use"),
        (lambda: machine.memory(GB // 4, GB // 8), "FAIL", "container's limit"),
        (lambda: machine.shared_memory(64 << 20), "warn", "--shm-size"),
        (lambda: machine.shared_memory(None), "ok", "not needed"),
        (lambda: machine.open_files(1024, 1 << 20), "ok", "1024"),
        (lambda: machine.open_files(1024, 1024), "warn", "LimitNOFILE"),
        (lambda: machine.open_files(64, 1 << 20), "warn", "ulimit -n"),
        (lambda: machine.processes("pids", -1, 10), "ok", "unlimited"),
        (lambda: machine.processes("pids", 600, 300), "warn", "--pids-limit"),
        (lambda: machine.processes("pids", 310, 300), "FAIL", "cannot be started"),
        (lambda: machine.wall_clock(1970, None), "FAIL", "set the clock"),
        (lambda: machine.wall_clock(2030, False), "warn", "chrony"),
        (lambda: machine.wall_clock(2030, True), "ok", "synchronized"),
        (lambda: installation.other_ray("2.9.0"), "warn", "pip uninstall ray"),
        (lambda: installation.other_ray("1.0.0+oxiray.0.1.0"), "warn", "another release"),
        (lambda: installation.other_ray(None), "ok", "alias"),
        (lambda: installation.versions({"module": "9.9"}), "FAIL", "not of one version"),
        (lambda: session.folder("/proc/oxiray"), "FAIL", "cannot be written|/proc"),
        (lambda: session.trial("raise SystemExit('no luck')"), "FAIL", "no luck"),
    ],
)
def test_worse_machines(finding, verdict, says):
    found = finding()
    assert found.verdict == verdict, found
    assert any(word in found.says + found.remedy for word in says.split("|")), found


def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        number = taken.getsockname()[1]
        found = session.port(number, "something", "take another")
    assert found.verdict == "warn" and "take another" in found.remedy


def test_a_program_that_is_missing_or_of_another_version(tmp_path):
    (tmp_path / "oxirayd").write_text("#!/bin/sh\necho oxirayd 0.0.9\n")
    (tmp_path / "oxirayd").chmod(0o755)
    found = installation.versions(installation.program_versions(str(tmp_path)))
    assert found.verdict == "FAIL" and "oxirayd 0.0.9" in found.says
    assert "No such file" in found.says and "--force-reinstall" in found.remedy


def test_the_last_line_counts(monkeypatch, capsys):
    fine = machine.processes("pids", -1, 1)
    worse = machine.shared_memory(1)
    for findings, ends, says in [
        ([fine], 0, "All 1 are fine."),
        ([fine, worse], 0, "It works; 1 of 2 could be better."),
        ([machine.wall_clock(1970, None)], 1, "1 of 1 must be changed: clock"),
    ]:
        monkeypatch.setattr(doctor, "check", lambda findings=findings: iter(findings))
        assert doctor.main([]) == ends
        assert capsys.readouterr().out.splitlines()[-1] == says
