"""What a task costs, counted rather than timed: instructions (callgrind) and system calls (strace).

    python bench/count.py
    python bench/count.py --events    what the record of tasks is of it: with and without

Instructions: the program runs twice, with few tasks and with many; the difference is the tasks'.
System calls: strace looks on while the tasks run. Driver and worker are counted apart. Needs
valgrind and strace; numbers go into docs/performance.md.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FEW, MANY = 3_000, 9_000

PROGRAM = """
import os, signal, subprocess, sys, time
import oxiray as ray
mode, count, sys.executable = sys.argv[1], int(sys.argv[2]), sys.argv[3]
recorded, mode = not mode.endswith(" unrecorded"), mode.removesuffix(" unrecorded")
ray.init(num_cpus=1, logging_level="error", log_to_driver=False)

def seen(process):
    return "TracerPid:\\t0" not in open(f"/proc/{process}/status").read()

# Under valgrind the worker ends by itself, so that it can say what it counted.
watched = len(sys.argv) > 4
@ray.remote(max_calls=0 if watched else count + 1, enable_task_events=recorded)
def nothing():
    return b"ok"

@ray.remote(enable_task_events=recorded)
class Actor:
    def nothing(self):
        return b"ok"
    def pid(self):
        return os.getpid()

call = nothing.remote
pid = ray.get(ray.remote(os.getpid).remote())
if mode.startswith("actor"):
    actor = Actor.remote()
    call = actor.nothing.remote
    pid = ray.get(actor.pid.remote())
ray.get(call())
watchers = []
if watched:
    for name, process in (("driver", os.getpid()), ("worker", pid)):
        command = ["strace", "-f", "-c", "-o", f"{sys.argv[4]}/strace.{name}", "-p", str(process)]
        watchers.append(subprocess.Popen(command))
    while not (seen(pid) and seen(os.getpid())):
        time.sleep(0.1)
    time.sleep(0.5)  # the last threads
if mode.endswith("async"):
    for _ in range(count // 1000):
        ray.get([call() for _ in range(1000)])
else:
    for _ in range(count):
        ray.get(call())
for process in watchers:
    process.send_signal(signal.SIGINT)
    process.wait()
if mode.startswith("actor") and not watched:
    actor.__ray_terminate__.remote()
while not watched and os.path.exists(f"/proc/{pid}"):
    time.sleep(0.05)
"""


class Counter:
    """Runs the program under a tool and reads what it counted, for driver and worker."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.program = directory / "program.py"
        self.program.write_text(PROGRAM)

    def wrapper(self, command: str) -> str:
        """An interpreter for workers that runs them under `command`."""
        path = self.directory / "python"
        path.write_text(f'#!/bin/sh\nexec {command} {sys.executable} "$@"\n')
        path.chmod(0o755)
        return str(path)

    def run(self, tool: list[str], mode: str, count: int, *rest: str) -> None:
        command = [*tool, sys.executable, str(self.program), mode, str(count), *rest]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def instructions(self, mode: str, count: int) -> tuple[int, int]:
        for old in self.directory.glob("callgrind.*"):
            old.unlink()
        tool = "valgrind --tool=callgrind --callgrind-out-file="
        driver = f"{tool}{self.directory}/callgrind.driver"
        self.run(driver.split(), mode, count, sys.executable)
        worker = self.wrapper(f"{tool}{self.directory}/callgrind.worker.%p")
        self.run([], mode, count, worker)
        workers = self.directory.glob("callgrind.worker.*")
        return _total(self.directory / "callgrind.driver"), max(map(_total, workers))

    def system_calls(self, mode: str, count: int) -> list[dict[str, int]]:
        self.run([], mode, count, sys.executable, str(self.directory))
        return [_calls(self.directory / f"strace.{name}") for name in ("driver", "worker")]


def _total(path: Path) -> int:
    found = re.search(r"^(?:summary|totals): (\d+)", path.read_text(), re.MULTILINE)
    return int(found.group(1)) if found else 0


def _calls(path: Path) -> dict[str, int]:
    rows = (line.split() for line in path.read_text().splitlines()[2:])
    return {row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit()}


def _each(counter: Counter, mode: str) -> list[float]:
    """Instructions for one more task, in driver and worker."""
    few, many = counter.instructions(mode, FEW), counter.instructions(mode, MANY)
    return [(b - a) / (MANY - FEW) for a, b in zip(few, many, strict=True)]


def _count_events(counter: Counter) -> None:
    print("| instructions | driver: with | without | worker: with | without |")
    print("|---|---:|---:|---:|---:|")
    for mode in ("async", "actor async"):
        pairs = zip(_each(counter, mode), _each(counter, f"{mode} unrecorded"), strict=True)
        cells = " | ".join(f"{number:,.0f}" for pair in pairs for number in pair)
        print(f"| {mode} | {cells} |", flush=True)


def main() -> None:
    missing = [tool for tool in ("valgrind", "strace") if not shutil.which(tool)]
    if missing:
        sys.exit(f"{' and '.join(missing)}: not installed")
    if sys.argv[1:] == ["--events"]:
        with tempfile.TemporaryDirectory() as directory:
            return _count_events(Counter(Path(directory)))
    print("| | instructions: driver | worker | system calls: driver | worker | most of them |")
    print("|---|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as directory:
        counter = Counter(Path(directory))
        for mode in ("sync", "async", "actor sync", "actor async"):
            cells = [f"{number:,.0f}" for number in _each(counter, mode)]
            names = []
            for calls in counter.system_calls(mode, MANY):
                calls.pop("total", None)
                cells.append(f"{sum(calls.values()) / MANY:.2f}")
                top = sorted(calls.items(), key=lambda item: -item[1])[:2]
                names.append(" and ".join(f"{name} {number / MANY:.2f}" for name, number in top))
            print(f"| {mode} | {' | '.join(cells)} | {'; '.join(names)} |", flush=True)


if __name__ == "__main__":
    main()
