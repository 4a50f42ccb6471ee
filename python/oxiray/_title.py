"""What `ps` and `top` call a worker: `ray::NAME`, as Ray's users look for them.

The kernel shows the memory that the program's arguments were in. It is as long as they were: a
longer name is cut.
"""

from __future__ import annotations

_ARGUMENTS = 45  # fields of /proc/self/stat behind the name, before where the arguments begin
_LONGEST_COMM = 15

_place: tuple[int, int] | None = None


def set_title(name: str) -> None:
    """Calls this process `ray::name`. Nothing depends on it: where it cannot be done, it is not."""
    global _place
    text = f"ray::{name}".encode(errors="replace")
    try:
        if _place is None:
            with open("/proc/self/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
            _place = int(fields[_ARGUMENTS]), int(fields[_ARGUMENTS + 1])
        begin, end = _place
        if end - begin < 2:
            return
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(begin)
            memory.write(text[: end - begin - 1].ljust(end - begin, b"\0"))
        with open("/proc/self/comm", "wb", buffering=0) as comm:
            comm.write(text[:_LONGEST_COMM])
    except (OSError, ValueError, IndexError):
        return
