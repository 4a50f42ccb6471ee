"""What this machine has to offer: usable cores and memory, limits of containers included."""

from __future__ import annotations

import os


def usable_cpus() -> int:
    """Cores this process may run on, by affinity and by the cgroup's quota."""
    cores = len(os.sched_getaffinity(0))
    quota = _cgroup_cpus()
    return max(1, cores if quota is None else min(cores, int(quota)))


def total_memory() -> int:
    """Bytes of memory, by the machine and by the cgroup's limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = (_read(path) for path in _memory_limits(_read("/proc/self/cgroup")))
    return min([total, *(int(text) for text in limits if text.isdigit())])


def _memory_limits(groups: str) -> list[str]:
    """Where the limits of all cgroups above this process are, given its /proc/self/cgroup."""
    files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
    for line in groups.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            root, name = "/sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        parts = path.strip("/").split("/")
        files += ["/".join([root, *parts[:depth], name]) for depth in range(1, len(parts) + 1)]
    return files


def _cgroup_cpus() -> float | None:
    quota, _, period = _read("/sys/fs/cgroup/cpu.max").partition(" ")
    if not quota:
        quota = _read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
        period = _read("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
    if quota.isdigit() and period.isdigit() and int(period) > 0:
        return int(quota) / int(period)
    return None


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""
