"""`make release`: everything that is published of a version, in dist/release.

Refuses unless the tree is clean, the version is the same everywhere and the changelog has a dated
section for it. Then the sdist and wheels are built and used, and their checksums and the notes are
written beside them. Nothing is published: the last lines say how.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import architectures
import version

ROOT = version.ROOT
OUT = ROOT / "dist/release"


def main() -> None:
    number = version.read()
    changes = section((ROOT / "CHANGELOG.md").read_text(), number)
    told = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    if told.stdout:
        sys.exit(f"release: commit first: what is built must be what is tagged\n{told.stdout}")
    here = Path(__file__).parent
    # By name, so that one which cannot be built is an error.
    everything = ["--architectures", *architectures.ALL]
    _run(str(here / "wheels.py"), "--out", str(OUT), *everything, *sys.argv[1:])
    wheels = sorted(map(str, OUT.glob("oxiray-*linux*.whl")))
    [alias] = OUT.glob("ray-*.whl")
    _run(str(here / "try_wheels.py"), *wheels, "--alias", str(alias))
    sums = checksums(OUT)
    (OUT / "SHA256SUMS").write_text(sums)
    (OUT / "NOTES.md").write_text(f"# Oxiray {number}\n\n{changes}\n\n```\n{sums}```\n")
    print(
        f"release: {OUT.relative_to(ROOT)} has {number}. To publish it:\n"
        f"  git tag -s v{number} && git push origin v{number}\n"
        f"  twine upload {OUT.relative_to(ROOT)}/oxiray*"
    )


def section(changelog: str, number: str) -> str:
    """What changed in this version."""
    head = rf"^## {re.escape(number)} \(\d{{4}}-\d\d-\d\d\)\n"
    found = re.search(head + r"(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if not found or not found[1].strip():
        sys.exit(f"release: CHANGELOG.md has no section '## {number} (YYYY-MM-DD)', or it is empty")
    return found[1].strip()


def checksums(folder: Path) -> str:
    """As `sha256sum -c` reads them."""
    files = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files
    )


def _run(*command: str) -> None:
    if subprocess.run([sys.executable, *command], cwd=ROOT).returncode != 0:
        sys.exit("release: not made: see above")


if __name__ == "__main__":
    main()
