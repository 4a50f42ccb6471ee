"""`make try-wheels`: installs each wheel into a clean environment of its Python, and uses it.

As a user would: `pip install` of the wheel, `pip install` of the alias, the demo, a program that
says `import ray`, and `oxiray doctor`. Pythons that are not on this machine are named. It needs
nothing but Python: wheels can be taken to a machine of another architecture and tried there.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import architectures
import interpreters

ROOT = Path(__file__).resolve().parent.parent
_ALIAS = """
import ray, oxiray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

@ray.remote
def square(x):
    return x * x

@ray.remote
class Counter:
    def __init__(self): self.n = 0
    def add(self, k): self.n += k; return self.n

assert ray.ObjectRef is oxiray.ObjectRef and "2." in ray.__version__
assert ray.get([square.remote(i) for i in range(100)]) == [i * i for i in range(100)]
counter = Counter.remote()
assert ray.get([counter.add.remote(1) for _ in range(50)])[-1] == 50
large = bytes(5_000_000)
assert ray.get(ray.put(large)) == large
try:
    ray.get(square.remote("x"))
    raise SystemExit("the task should have failed")
except TypeError:
    pass
ray.shutdown()
print("ok")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Uses wheels in clean environments.")
    parser.add_argument("wheels", nargs="+", type=lambda path: Path(path).resolve())
    parser.add_argument("--alias", type=Path, required=True, help="the wheel of the alias")
    parser.add_argument("--python", help="instead of the one that is found for each")
    options = parser.parse_args()
    failed = False
    for wheel in options.wheels:
        version, machine = tag(wheel)
        python = options.python or interpreters.find(version)
        if machine != os.uname().machine:
            print(f"{wheel.name}: not tried: this machine is no {machine}")
        elif not python:
            print(f"{wheel.name}: not tried: Python {version} is not on this machine")
        else:
            failed |= not use(wheel, options.alias.resolve(), python)
    sys.exit(int(failed))


def tag(wheel: Path) -> tuple[str, str]:
    """Its Python, as 3.14t, and its architecture."""
    machines = "|".join(architectures.ALL)
    found = re.search(rf"-cp3(\d+)-cp3\d+(t?)-\w*?linux\w*?_({machines})\.", wheel.name)
    if not found:
        sys.exit(f"{wheel}: is no wheel of a CPython for Linux")
    return f"3.{found[1]}{found[2]}", found[3]


def use(wheel: Path, alias: Path, python: str) -> bool:
    """Whether it can be; what it did, or what failed, is printed."""
    with tempfile.TemporaryDirectory(prefix="oxw-", dir="/tmp") as folder:
        bin = Path(folder, "venv/bin")
        environment = {"PATH": f"{bin}:/usr/bin:/bin", "OXIRAY_TMPDIR": f"{folder}/s"}
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        environment |= {**kept, "HOME": folder, "OXIRAY_KEEP_SESSIONS": "0"}
        steps = [
            ("environment", [python, "-m", "venv", str(bin.parent)]),
            ("pip install", [f"{bin}/python", "-m", "pip", "-q", "install", str(wheel)]),
            ("pip install alias", [f"{bin}/python", "-m", "pip", "-q", "install", str(alias)]),
            ("demo", [f"{bin}/python", str(ROOT / "examples/demo.py")]),
            ("import ray", [f"{bin}/python", "-c", _ALIAS]),
            ("ray --version", [f"{bin}/ray", "--version"]),
            ("oxiray doctor", [f"{bin}/oxiray", "doctor"]),
        ]
        for name, command in steps:
            began = time.monotonic()
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
            )
            if done.returncode != 0:
                print(f"{wheel.name}: {name} FAILED\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
                return False
            print(f"  {name}: {time.monotonic() - began:.1f} s", flush=True)
    print(f"{wheel.name}: installed and used with {python}", flush=True)
    return True


if __name__ == "__main__":
    main()
