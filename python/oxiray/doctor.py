"""`oxiray doctor`: looks at the machine, the installation and a session, and says what to do.

    python -m oxiray.doctor [--json]

Ends with 0 unless something cannot work.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict

from ._doctor import installation, machine, session
from ._doctor.finding import FINE, TROUBLE, Finding

__all__ = ["check", "main"]


def check() -> Iterator[Finding]:
    """All findings, one after the other as they are made."""
    yield from installation.check()
    yield from machine.check()
    yield from session.check()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="oxiray doctor",
        description="Looks at this machine and installation, and says what to do. Ends with 1 if "
        "something cannot work.",
    )
    parser.add_argument("--json", action="store_true", help="for programs: a list of findings")
    is_json = parser.parse_args(arguments).json
    findings = []
    for finding in check():
        findings.append(finding)
        if not is_json:
            _show(finding)
    if is_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        print(_sum(findings))
    return int(any(finding.verdict == TROUBLE for finding in findings))


def _show(finding: Finding) -> None:
    print(f"{finding.verdict:<4} {finding.subject}: {finding.says}")
    if finding.remedy:
        print(f"     -> {finding.remedy}")
    sys.stdout.flush()


def _sum(findings: list[Finding]) -> str:
    odd = [finding for finding in findings if finding.verdict != FINE]
    bad = [finding for finding in odd if finding.verdict == TROUBLE]
    if not odd:
        return f"All {len(findings)} are fine."
    if not bad:
        return f"It works; {len(odd)} of {len(findings)} could be better."
    return f"{len(bad)} of {len(findings)} must be changed: {', '.join(f.subject for f in bad)}"


if __name__ == "__main__":
    sys.exit(main())
