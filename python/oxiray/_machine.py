"""What this machine has to offer: usable cores and memory, limits of containers included."""

from __future__ import annotations

import os

from . import _settings


def usable_cpus() -> int:
    """Cores this process may run on, by affinity and by the cgroup's quota."""
    cores = len(os.sched_getaffinity(0))
    quota = _cgroup_cpus()
    return max(1, cores if quota is None else min(cores, int(quota)))


def total_memory() -> int:
    """Bytes of memory, by the machine and by the cgroup's limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = map(read_file, cgroup_files("memory", "memory.max", "memory.limit_in_bytes"))
    return min([total, *(int(text) for text in limits if text.isdigit())])


def cgroup_files(controller: str, name: str, old_name: str) -> list[str]:
    """The files by this name of all cgroups above this process; in version 1 it has another."""
    root = _settings.text("OXIRAY_CGROUP_ROOT")
    files = [f"{root}/{name}", f"{root}/{controller}/{old_name}"]
    for line in read_file("/proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            folder, file = root, name
        elif controller in controllers.split(","):
            folder, file = f"{root}/{controller}", old_name
        else:
            continue
        parts = path.strip("/").split("/")
        files += ["/".join([folder, *parts[:depth], file]) for depth in range(1, len(parts) + 1)]
    return files


def _cgroup_cpus() -> float | None:
    root = _settings.text("OXIRAY_CGROUP_ROOT")
    quota, _, period = read_file(f"{root}/cpu.max").partition(" ")
    if not quota:
        quota = read_file(f"{root}/cpu/cpu.cfs_quota_us")
        period = read_file(f"{root}/cpu/cpu.cfs_period_us")
    if quota.isdigit() and period.isdigit() and int(period) > 0:
        return int(quota) / int(period)
    return None


def read_file(path: str) -> str:
    """What a file of the kernel says; nothing if it is not there."""
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""
