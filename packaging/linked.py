"""What is linked into the programs and the module: crates, and what the page is made of.

From it come the licences that a wheel carries and its bill of materials (CycloneDX).
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_OURS = ("oxiray-cli", "oxiray-daemon", "oxiray-python")
_TEXTS = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "UNLICENSE*", "license*")


@dataclass(frozen=True)
class Part:
    kind: str
    name: str
    version: str
    licence: str
    folder: Path | None = None

    @property
    def url(self) -> str:
        return f"pkg:{self.kind}/{self.name}@{self.version}"


def parts(root: Path, target: str) -> list[Part]:
    return [*_crates(root, target), *_of_page(root)]


def _crates(root: Path, target: str) -> list[Part]:
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--offline"]
    done = subprocess.run(
        [*command, f"--filter-platform={target}"], cwd=root, capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(f"oxiray: cargo cannot say what it is built of: {done.stderr.strip()}")
    told = json.loads(done.stdout)
    packages = {package["id"]: package for package in told["packages"]}
    needs = {node["id"]: node["deps"] for node in told["resolve"]["nodes"]}
    found: set[str] = set()
    left = [each for each, package in packages.items() if package["name"] in _OURS]
    while left:
        package = left.pop()
        if package in found or _is_macro(packages[package]):
            continue
        found.add(package)
        left += [
            need["pkg"]
            for need in needs[package]
            if any(kind["kind"] is None for kind in need["dep_kinds"])
        ]
    linked = [packages[package] for package in found if packages[package]["source"]]
    return sorted(map(_part, linked), key=lambda part: (part.name, part.version))


def _is_macro(package: dict[str, Any]) -> bool:
    """Runs in the compiler, and is not linked."""
    return any("proc-macro" in target["kind"] for target in package["targets"])


def _part(package: dict[str, Any]) -> Part:
    licence = (package["license"] or "").replace("/", " OR ")
    folder = Path(package["manifest_path"]).parent
    return Part("cargo", package["name"], package["version"], licence, folder)


def _of_page(root: Path) -> list[Part]:
    lock = root / "ui/package-lock.json"
    if not lock.exists() or not (root / "ui/dist/index.html").exists():
        return []
    packages = json.loads(lock.read_text())["packages"]
    found = []
    left = list(packages[""].get("dependencies", {}))
    for name in left:
        package = packages[f"node_modules/{name}"]
        found.append(Part("npm", name, package["version"], package.get("license", "")))
        left += [need for need in package.get("dependencies", {}) if need not in left]
    return found


def licences(all_parts: list[Part]) -> str:
    """Every part with its licence, then the texts, each once."""
    lines = ["Oxiray's programs and module contain the following, under their own licences.", ""]
    texts: dict[str, list[str]] = {}
    for part in all_parts:
        lines.append(f"{part.name} {part.version}: {part.licence}")
        for text in _texts(part):
            texts.setdefault(text, []).append(f"{part.name} {part.version}")
    for text, whose in texts.items():
        lines += ["", "=" * 80, ", ".join(whose), "-" * 80, text]
    return "\n".join(lines) + "\n"


def _texts(part: Part) -> list[str]:
    if part.folder is None:
        return []  # the page has its own: THIRD-PARTY.txt
    files = {path for pattern in _TEXTS for path in part.folder.glob(pattern) if path.is_file()}
    return [path.read_text(errors="replace").strip() for path in sorted(files)]


def bill(all_parts: list[Part], version: str) -> str:
    """CycloneDX, which tools that look for known faults read."""
    components = [
        {
            "type": "library",
            "bom-ref": part.url,
            "name": part.name,
            "version": part.version,
            "purl": part.url,
            **({"licenses": [{"expression": part.licence}]} if part.licence else {}),
        }
        for part in all_parts
    ]
    ours = {"type": "library", "name": "oxiray", "version": version}
    ours["purl"] = ours["bom-ref"] = f"pkg:pypi/oxiray@{version}"
    return json.dumps(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {"component": ours},
            "components": components,
            "dependencies": [{"ref": ours["purl"], "dependsOn": [part.url for part in all_parts]}],
        },
        indent=1,
    )
