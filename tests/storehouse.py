"""What tests of the object store share: values that can be checked, and looks at the store."""

from __future__ import annotations

import gc
import hashlib
import os

import numpy as np
import oxiray as ray

MB = 1 << 20
# Close to the least that init() takes: soon full.
STORE = 80 * MB


def blob(seed, size):
    """An array of `size` bytes, the same for the same seed and no other."""
    return np.frombuffer(np.random.default_rng(seed).bytes(size), dtype=np.uint8)


def digest(value):
    return hashlib.blake2b(value, digest_size=16).hexdigest()


def view():
    return ray._native.cluster_view()


def used():
    return view()["store_used"]


def is_empty():
    seen = view()
    return not (seen["store_used"] or seen["store_objects"] or seen["on_disk"])


def expect_empty(timeout=10.0):
    """Nothing is in the store, or soon nothing will be."""
    from conftest import wait_until  # workers import this module, but are no test run

    gc.collect()
    wait_until(is_empty, timeout, f"the store is empty; it was {shown()}")


def shown():
    names = "store_used store_objects on_disk objects_on_disk spilled restored"
    return {name: view()[name] for name in names.split()}


def spill_files(*directories):
    """The files of spilled objects in or below these."""
    return [
        os.path.join(path, name)
        for directory in directories
        for path, _, names in os.walk(directory)
        for name in names
        if name != "lock"
    ]


def status(pid, field):
    """A field of /proc/PID/status, such as PPid or VmRSS in kB; 0 once the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            found = [line for line in file if line.startswith(f"{field}:")]
    except OSError:
        return 0
    return int(found[0].split()[1]) if found else 0


def own_memory(pid):
    """Bytes of a process's memory that are no shared file: the store does not count."""
    return status(pid, "RssAnon") * 1024


def children(pid):
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [child for child in pids if status(child, "PPid") == pid]


def workers():
    """Pids of this session's workers: what the zygote, the node service's child, has forked, or a
    zygote of its own with modules loaded, which is none itself."""
    forked = [child for zygote in children(view()["pid"]) for child in children(zygote)]
    templates = [pid for pid in forked if is_template(pid)]
    more = [worker for template in templates for worker in children(template)]
    return [pid for pid in forked if pid not in templates] + more


def is_template(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().startswith(b"ray::template")
    except OSError:
        return False
