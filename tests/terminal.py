"""Programs at a terminal of their own, and what is seen there at last."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import textwrap

_TOKEN = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+|\x1b")


def run_at_terminal(driver, source, *, columns=100, rows=30, env=None, timeout=60):
    """Runs the program with a pseudo terminal as its streams; returns all that it wrote there."""
    path = driver.directory / "program.py"
    path.write_text(textwrap.dedent(source))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-u", str(path)],
        env={**os.environ, "OXIRAY_TMPDIR": driver.base, "TERM": "xterm", **(env or {})},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=driver.directory,
        start_new_session=True,
    )
    os.close(theirs)
    written = bytearray()
    try:
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            written += piece
        assert process.wait(timeout) == 0, written.decode(errors="replace")
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    driver.clean()
    return written.decode()


def screen(written):
    """The lines that one sees in the end, without colours; nothing is wider than the terminal."""
    lines, row, column = [""], 0, 0
    for token in _TOKEN.finditer(written):
        number, command = int(token[1] or 0) if token[2] in ("A", "J", "K") else 0, token[2]
        if command == "A":
            row = max(row - max(number, 1), 0)
        elif command == "K":
            lines[row] = lines[row][:column]
        elif command == "J":
            lines[row:] = [lines[row][:column]]
        elif command == "m":
            pass
        elif token[0] == "\r":
            column = 0
        elif token[0] == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif command or token[0] == "\x1b":
            raise AssertionError(f"{token[0]!r} is not for a terminal with bars")
        else:
            text = lines[row].ljust(column)
            lines[row] = text[:column] + token[0] + text[column + len(token[0]) :]
            column += len(token[0])
    return [line.rstrip() for line in lines]
