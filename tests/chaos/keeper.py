"""Starts again what has ended, on every host, as a deployment's supervisor would."""

from __future__ import annotations

import threading
import time

_EVERY_S = 0.2


class Keeper:
    """A thread for each host, for as long as the `with` lasts."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.ended = threading.Event()
        self.restarts = dict.fromkeys(hosts, 0)
        # What `oxiray start` said when it could not, by host: the last words.
        self.trouble = {}
        self.threads = [
            threading.Thread(target=self.keep, args=(host,), daemon=True) for host in hosts.values()
        ]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def keep(self, host):
        while not self.ended.wait(_EVERY_S):
            if host.wanted() <= host.services().keys():
                continue
            said = host.start()
            if said:
                self.trouble[host.number] = said
            else:
                self.restarts[host.number] += 1
                self.trouble.pop(host.number, None)

    def wait_for_all(self, timeout):
        """Until everything runs; what does not, in words."""
        deadline = time.monotonic() + timeout
        while True:
            missing = {
                number: sorted(host.wanted() - host.services().keys())
                for number, host in self.hosts.items()
                if not host.wanted() <= host.services().keys()
            }
            if not missing:
                return []
            if time.monotonic() > deadline:
                return [
                    f"host {number}: not running again after {timeout} s: {', '.join(names)}; "
                    f"`oxiray start` says: {self.trouble.get(number, 'nothing')}"
                    for number, names in missing.items()
                ]
            time.sleep(0.1)

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join(90)
