"""Things that tasks in several processes meet at, made of files."""

from __future__ import annotations

import os
import time


class Meeting:
    """Each who attends waits until all have come."""

    def __init__(self, directory, count):
        self.directory = directory
        self.count = count

    def attend(self, name, timeout=30.0):
        """Whether all came while this one was there."""
        open(os.path.join(self.directory, f"here-{name}"), "w").close()
        deadline = time.monotonic() + timeout
        while self.present() < self.count:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def present(self):
        return sum(name.startswith("here-") for name in os.listdir(self.directory))


class Gate:
    """Closed until opened, for good."""

    def __init__(self, path):
        self.path = path

    def open(self):
        open(self.path, "w").close()

    def wait(self, timeout=60.0):
        deadline = time.monotonic() + timeout
        while not os.path.exists(self.path) and time.monotonic() < deadline:
            time.sleep(0.005)
