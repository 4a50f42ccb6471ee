"""Makes faults happen on the hosts, and ends them."""

from __future__ import annotations

import os
import signal
import threading
import time

from .hosts import send
from .schedule import DRIVER, HEAD

# What loss, delay and slowness are between, by `pick`.
_LOSS, _DELAY_S, _BYTES_PER_S = (0.02, 0.10), (0.02, 0.10), (1e6, 5e6)


class Missed(Exception):
    """There was nothing to do it to."""


def between(bounds, pick):
    return bounds[0] + (bounds[1] - bounds[0]) * pick


def choose(found, pick):
    if not found:
        raise Missed("nothing of the kind ran there")
    return found[int(pick * len(found))]


class Faults:
    """Carries out a schedule; what happened is in `done`, in seconds since `begin`."""

    def __init__(self, hosts, network, begin):
        self.hosts = hosts
        self.network = network
        self.begin = begin
        self.done = []
        self.lock = threading.Lock()

    def run(self, schedule, stop):
        """Until all are over, or `stop` is set."""
        lasting = []
        for fault in schedule:
            if stop.wait(max(0.0, self.begin + fault.at - time.monotonic())):
                break
            if fault.lasts:
                lasting.append(threading.Thread(target=self.happen, args=(fault, stop)))
                lasting[-1].start()
            else:
                self.happen(fault, stop)
        for thread in lasting:
            thread.join()

    def happen(self, fault, stop):
        entry = {**fault.as_json(), "begin": self.now(), "missed": ""}
        try:
            undo = getattr(self, fault.kind.replace("-", "_"))(fault)
            if undo:
                stop.wait(fault.lasts)
                undo()
        except Missed as reason:
            entry["missed"] = str(reason)
        entry["end"] = self.now()
        with self.lock:
            self.done.append(entry)

    def now(self):
        return round(time.monotonic() - self.begin, 3)

    # Processes.

    def kill(self, pids):
        if not send(pids, signal.SIGKILL):
            raise Missed("it had just ended")

    def stop(self, pids):
        stopped = send(pids, signal.SIGSTOP)
        if not stopped:
            raise Missed("it had just ended")
        return lambda: send(stopped, signal.SIGCONT)

    def chosen(self, fault, kind):
        return [choose(self.hosts[fault.host].tree()[kind], fault.pick)]

    def service(self, fault, name):
        pid = self.hosts[fault.host].services().get(name)
        return [choose([pid] if pid else [], 0)]

    def everything(self, fault):
        tree = self.hosts[fault.host].tree()
        return [*tree["service"], *tree["zygote"], *tree["worker"]]

    def worker_kill(self, fault):
        self.kill(self.chosen(fault, "worker"))

    def zygote_kill(self, fault):
        self.kill(self.chosen(fault, "zygote"))

    def node_kill(self, fault):
        self.kill(self.service(fault, "node"))

    def control_kill(self, fault):
        self.kill(self.service(fault, "control"))

    def host_kill(self, fault):
        self.kill(self.everything(fault))

    head_kill = host_kill

    def worker_stop(self, fault):
        return self.stop(self.chosen(fault, "worker"))

    def node_stop(self, fault):
        return self.stop(self.service(fault, "node"))

    def control_stop(self, fault):
        return self.stop(self.service(fault, "control"))

    def host_stop(self, fault):
        return self.stop(self.everything(fault))

    # Links.

    def both_ways(self, fault, **what):
        return self.network.trouble((fault.host, None), (None, fault.host), **what)

    def cut(self, fault):
        return self.both_ways(fault, cut=True)

    blink = cut

    def loss(self, fault):
        return self.both_ways(fault, loss=between(_LOSS, fault.pick))

    def delay(self, fault):
        return self.both_ways(fault, delay=between(_DELAY_S, fault.pick))

    def slow(self, fault):
        return self.both_ways(fault, rate=between(_BYTES_PER_S, fault.pick))

    def one_way(self, fault):
        return self.network.trouble((fault.host, fault.other), cut=True)

    def driver_cut(self, fault):
        return self.network.trouble((DRIVER, HEAD), (HEAD, DRIVER), cut=True)

    def pair_cut(self, fault):
        pairs = [(fault.host, fault.other), (fault.other, fault.host)]
        return self.network.trouble(*pairs, cut=True)

    # Disks.

    def disk_full(self, fault):
        path = os.path.join(self.hosts[fault.host].disk, f"full-{fault.at}")
        with open(path, "wb", buffering=0) as file:
            for size in (2**20, 4096):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    continue
        return lambda: os.unlink(path)
