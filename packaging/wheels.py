"""`make wheels`: a wheel for every Python, each for any Linux with glibc 2.28 or later.

They are made of the sdist, so that it is whole. The programs are built once for an architecture,
the module once for each Python. Zig is the linker and the C compiler: it has every glibc and every
architecture; Rust's library for an architecture must be here, or there are no wheels for it. What
comes out is looked at by auditwheel, and listed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import architectures
import backend
import interpreters
import programs
import wheel_file

GLIBC = "2.28"
# Not abi3, one wheel for all: the module uses what is not in it (see docs/releasing.md).
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.14t", "3.15")
LARGEST = 12_000_000
_ALIASES = ("python/oxiray-as-ray", "python/oxiray-caffe")


def main() -> None:
    options = _options()
    targets = architectures.targets(options.architectures)
    out = Path(options.out).resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    sdist = out / backend.build_sdist(str(out))
    place = programs.target_directory(backend.ROOT) / "wheels"
    source = _unpack(sdist, place)
    _keep_paths_out(source)
    os.environ["CARGO_TARGET_DIR"] = str(place / "build")
    for target in targets:
        programs.build(source, target, GLIBC)
        for python in options.pythons:
            _build(source, target, python, out)
    for alias in _ALIASES:
        _pip("wheel", "--no-deps", "--wheel-dir", str(out), str(backend.ROOT / alias))
    sys.exit(_list(out))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Builds the sdist and wheels.")
    parser.add_argument("--out", default="dist/release")
    parser.add_argument("--pythons", nargs="+", default=PYTHONS, metavar="3.N")
    parser.add_argument("--architectures", nargs="+", choices=architectures.ALL, metavar="NAME")
    return parser.parse_args()


def _unpack(sdist: Path, place: Path) -> Path:
    """With the times of the files, so that cargo builds again only what has changed."""
    source = place / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(source)
    return next(source.iterdir())


def _keep_paths_out(source: Path) -> None:
    """Places in messages and symbols are `oxiray/...` and `crates/...`, wherever this was built."""
    home = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
    [registry, *_] = [*Path(home, "registry/src").glob("*"), Path(home, "registry/src")]
    os.environ["RUSTFLAGS"] = " ".join(
        [
            os.environ.get("RUSTFLAGS", ""),
            f"--remap-path-prefix={registry}=crates",
            f"--remap-path-prefix={source}=oxiray",
        ]
    ).strip()


def _build(source: Path, target: str, python: str, out: Path) -> None:
    made = source / "made"
    shutil.rmtree(made, ignore_errors=True)
    command = ["maturin", "build", "-q", "--release", "--locked", "--zig", "--target", target]
    command += ["--compatibility", f"manylinux_{GLIBC.replace('.', '_')}"]
    command += ["-i", interpreters.find(python, target) or f"python{python}", "--out", str(made)]
    if subprocess.run(command, cwd=source).returncode != 0:
        sys.exit(f"wheels: the one for Python {python} on {target} cannot be built: see above")
    [wheel] = made.glob("*.whl")
    wheel_file.finish(wheel, source, target, out / "symbols")
    shutil.move(wheel, out / wheel.name)
    print(f"wheels: {wheel.name}", flush=True)


def _list(out: Path) -> int:
    """Prints what was made; 1 if something is not as it must be."""
    bad = 0
    for wheel in sorted(out.glob("*.whl")):
        size = wheel.stat().st_size
        word = _audit(wheel) if wheel.name.startswith("oxiray-") else "pure Python"
        print(f"{size / 1e6:6.2f} MB  {wheel.name}: {word}")
        if size > LARGEST:
            print(f"wheels: {wheel.name} is larger than {LARGEST / 1e6:g} MB", file=sys.stderr)
            bad = 1
        bad |= int("manylinux" in wheel.name and f"manylinux_{GLIBC.replace('.', '_')}" not in word)
    for sdist in out.glob("*.tar.gz"):
        print(f"{sdist.stat().st_size / 1e6:6.2f} MB  {sdist.name}")
    return bad


def _audit(wheel: Path) -> str:
    """The tag that auditwheel finds it to be worth."""
    done = subprocess.run(["auditwheel", "show", str(wheel)], capture_output=True, text=True)
    text = " ".join(done.stdout.split())
    found = re.search(r'consistent with the following platform tag: "([^"]+)"', text)
    return f"auditwheel: {found[1]}" if found else f"auditwheel: {done.stderr.strip() or text}"


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "-q", *arguments], check=True)


if __name__ == "__main__":
    main()
