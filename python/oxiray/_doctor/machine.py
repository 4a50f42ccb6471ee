"""The machine and its container: memory, limits, cgroups, clocks.

What is read and what is thought of it are apart, so that the thoughts are tested with any machine.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import time
from collections.abc import Iterator

from .. import _native
from .._machine import cgroup_files, read_file, total_memory, usable_cpus
from .finding import Finding, fine, trouble, warning

_GB = 1 << 30
# A node has a socket and two memory files for every worker, and a dozen of its own.
_ENOUGH_FILES, _FEWEST_FILES = 4096, 256
# A worker starts with a handful of threads, and libraries for arrays bring one for each core.
_ENOUGH_PROCESSES = 512
_OLDEST_KERNEL = (5, 4)
_YEAR_OF_RELEASE = 2026


def check() -> Iterator[Finding]:
    yield _kernel(platform.release(), platform.machine())
    yield _processors(usable_cpus(), os.cpu_count() or 1)
    yield memory(total_memory(), _available_memory())
    yield _swallowed(*_overcommit())
    yield shared_memory(_size_of("/dev/shm"))
    yield open_files(*resource.getrlimit(resource.RLIMIT_NOFILE))
    yield processes("limit of processes (ulimit -u)", _process_limit(), _processes_of_user())
    yield processes("pids of the cgroup", *_cgroup_pids())
    yield locked_memory(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0])
    yield wall_clock(time.gmtime().tm_year, _is_synchronized())
    yield _fast_clock(read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource"))


def _kernel(release: str, machine: str) -> Finding:
    says = f"Linux {release}, {machine}, {' '.join(platform.libc_ver())}".rstrip(", ")
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    if numbers and numbers < _OLDEST_KERNEL:
        return warning("kernel", says, "Linux before 5.4 is not tried: update it if you can")
    return fine("kernel", says)


def _processors(usable: int, there: int) -> Finding:
    if usable < there:
        return fine("processors", f"{usable} of {there} may be used (affinity or cgroup)")
    return fine("processors", str(usable))


def memory(total: int, available: int) -> Finding:
    says = (
        f"{_show(total)}, {_show(available)} of it available; the object store takes up to "
        f"{_show(int(total * 0.3))}"
    )
    if total < _GB // 2 or available < _GB // 4:
        return trouble(
            "memory",
            says,
            "workers will be ended for lack of memory: stop other programs, raise the container's "
            "limit, or init(num_cpus=1, object_store_memory=...)",
        )
    if available < total // 5:
        return warning(
            "memory", says, "most is in use: stop other programs, or init(object_store_memory=...)"
        )
    return fine("memory", says)


def _swallowed(mode: str, limit: int, committed: int) -> Finding:
    if mode != "2":
        return fine("overcommit", f"vm.overcommit_memory is {mode or 'unknown'}")
    says = f"vm.overcommit_memory is 2, with {_show(max(0, limit - committed))} left to promise"
    return warning(
        "overcommit",
        says,
        "an object store larger than that is refused: sysctl vm.overcommit_memory=0, or "
        "init(object_store_memory=...)",
    )


def shared_memory(size: int | None) -> Finding:
    """Objects are in memory files, which no mount limits; other libraries do use the mount."""
    if size is None:
        return fine("/dev/shm", "not there; not needed: objects are in memory files")
    says = f"{_show(size)}; not needed by Oxiray, whose objects are in memory files"
    if size < _GB // 4:
        return warning(
            "/dev/shm",
            says,
            "only if tasks use libraries that share memory themselves (PyTorch's DataLoader): "
            "docker run --shm-size=2g",
        )
    return fine("/dev/shm", says)


def open_files(soft: int, hard: int) -> Finding:
    says = f"{_limit(soft)}, may be raised to {_limit(hard)}"
    if _below(hard, _FEWEST_FILES):
        return trouble(
            "open files", says, "too few for workers: ulimit -Hn 65536, or docker run --ulimit"
        )
    # The node service raises its own as far as it may; the driver's stays.
    if _below(hard, _ENOUGH_FILES):
        return warning(
            "open files",
            says,
            "enough for about a hundred workers: ulimit -Hn 65536, or LimitNOFILE= of the service",
        )
    if _below(soft, _FEWEST_FILES):
        return warning("open files", says, "few for a driver: ulimit -n 4096")
    return fine("open files", says)


def processes(subject: str, most: int, used: int) -> Finding:
    says = f"{used} in use, {_limit(most)} allowed"
    if most < 0 or most - used >= _ENOUGH_PROCESSES:
        return fine(subject, says)
    remedy = "ulimit -u, docker run --pids-limit, or TasksMax= of the service raise it"
    if most - used < 32:
        return trouble(subject, says, f"workers cannot be started: {remedy}")
    return warning(subject, says, f"each worker has several threads: {remedy}")


def locked_memory(soft: int) -> Finding:
    amount = "unlimited" if soft == resource.RLIM_INFINITY else _show(soft)
    return fine("locked memory", f"{amount}; nothing is locked by Oxiray")


def wall_clock(year: int, synchronized: bool | None) -> Finding:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S %Z")
    if year < _YEAR_OF_RELEASE:
        return trouble("clock", f"{stamp} cannot be: Oxiray is younger", "set the clock")
    if synchronized is False:
        return warning(
            "clock",
            f"{stamp}, not synchronized",
            "only for clusters: timelines and logs of several machines are in order as far as "
            "their clocks agree; run chrony or systemd-timesyncd",
        )
    return fine("clock", stamp + (", synchronized" if synchronized else ""))


def _fast_clock(source: str) -> Finding:
    if source in ("", "tsc", "arch_sys_counter", "kvm-clock"):
        return fine("clock source", source or "unknown")
    return warning(
        "clock source",
        source,
        "every time stamp is a system call, and a task takes several: see whether the machine "
        "can have tsc (/sys/devices/system/clocksource)",
    )


def _available_memory() -> int:
    for line in read_file("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return min(int(line.split()[1]) * 1024, total_memory())
    return total_memory()


def _overcommit() -> tuple[str, int, int]:
    amounts = {}
    for line in read_file("/proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        amounts[name] = int(rest.split()[0]) * 1024
    mode = read_file("/proc/sys/vm/overcommit_memory")
    return mode, amounts.get("CommitLimit", 0), amounts.get("Committed_AS", 0)


def _size_of(path: str) -> int | None:
    try:
        room = os.statvfs(path)
    except OSError:
        return None
    return room.f_blocks * room.f_frsize


def _process_limit() -> int:
    # Root is not held to it.
    if os.geteuid() == 0:
        return -1
    return resource.getrlimit(resource.RLIMIT_NPROC)[0]


def _processes_of_user() -> int:
    """Threads count."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:  # it has ended
            continue
    return count


def _cgroup_pids() -> tuple[int, int]:
    """The limit that is nearest, and what is in use there; -1 if there is none."""
    nearest = (-1, 0)
    for path in cgroup_files("pids", "pids.max", "pids.max"):
        most = read_file(path)
        if most.isdigit():
            used = read_file(path.removesuffix("max") + "current")
            found = int(most), int(used) if used.isdigit() else 0
            if nearest[0] < 0 or found[0] - found[1] < nearest[0] - nearest[1]:
                nearest = found
    return nearest


def _is_synchronized() -> bool | None:
    """Whether the kernel's clock follows another; None where that is not told."""
    try:
        # `struct timex` with modes 0, which only asks; 208 bytes, and some to spare.
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != 5  # TIME_ERROR


def _below(limit: int, least: int) -> bool:
    return limit != resource.RLIM_INFINITY and limit < least


def _limit(value: int) -> str:
    return "unlimited" if value < 0 else str(value)


def _show(amount: int) -> str:
    shown: str = _native.show_bytes(amount)
    return shown
