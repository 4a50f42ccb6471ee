"""How many threads numerical libraries use in a worker: as many as what runs there has CPUs.

They read OMP_NUM_THREADS when they are loaded. Who has set it keeps it: the variable of the driver,
of the node service or of a runtime environment is as it was, and nothing is told to anybody.
Otherwise it is 1 in a worker, and the whole CPUs of a task or an actor that asks for several.
Workers are forked with libraries loaded, and serve one task after the other: those that are there
already are told by a call.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "OMP_NUM_THREADS"
_is_the_users = VARIABLE in os.environ
# By the name of its file, what sets the number of threads: OpenBLAS as NumPy and SciPy bring it and
# as systems have it, the OpenMP of compilers, MKL.
_SETTERS = {
    "openblas": [
        f"{prefix}openblas_set_num_threads{suffix}"
        for prefix in ("scipy_", "")
        for suffix in ("64_", "_64", "")
    ],
    "libgomp": ["omp_set_num_threads"],
    "libomp": ["omp_set_num_threads"],
    "libiomp": ["omp_set_num_threads"],
    "libmkl_rt": ["MKL_Set_Num_Threads"],
}


def begin() -> None:
    """This process is to be a worker, or what workers are forked from."""
    if not _is_the_users:
        os.environ[VARIABLE] = "1"


def give(count: int) -> None:
    """What runs next has so many CPUs."""
    if _is_the_users:
        return
    os.environ[VARIABLE] = str(count)
    for path, names in _loaded():
        try:
            _call(path, names, count)
        except OSError:  # it went since
            continue
    torch = sys.modules.get("torch")  # it asked OpenMP once
    if torch is not None and hasattr(torch, "set_num_threads"):
        torch.set_num_threads(count)


def without_ours(environment: dict[str, str]) -> dict[str, str]:
    """For a program of the user's own that a worker starts: it has the machine to itself."""
    ours = set() if _is_the_users else {VARIABLE}
    return {name: value for name, value in environment.items() if name not in ours}


def _loaded() -> list[tuple[str, list[str]]]:
    """Libraries of this process that have threads, by path, and what sets their number."""
    with open("/proc/self/maps", errors="replace") as maps:
        files = {line[line.index("/") :].rstrip("\n") for line in maps if "/" in line}
    return [
        (path, names)
        for path in files
        for part, names in _SETTERS.items()
        if part in os.path.basename(path) and ".so" in path
    ]


def _call(path: str, names: list[str], count: int) -> None:
    import ctypes

    library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    for name in names:
        setter = getattr(library, name, None)
        if setter is not None:
            setter.argtypes, setter.restype = [ctypes.c_int], None
            setter(count)
            return
