"""A switch in user space: any pair of network namespaces can be cut, slow, late or lossy.

The kernel's own way (netem) is not in every kernel, and knows no pairs. Each host has a TUN device,
`cable`, whose other end is here: what is read from one is written to another, or not, or later.

Orders come as lines of JSON, answered by a line each: {"name": "a", "from": 1, "to": 3, "cut":
true}, and later {"name": "a", "end": true}.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time

_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_CLONE_NEWNET = 0x40000000
# Fewer and larger packets than on a real wire, since each costs this process two system calls.
MTU = 9000
# What a slow link keeps before it drops, in seconds of its rate.
_LONGEST_QUEUE_S = 0.5
# Read from one device before another is looked at.
_BURST = 64

_LIBC = ctypes.CDLL(None, use_errno=True)


class Way:
    """From one host to another, and what is wrong with it at the moment."""

    __slots__ = ("cut", "delay", "free_at", "loss", "rate", "troubles")

    def __init__(self):
        self.troubles = {}
        self.free_at = 0.0
        self.sum_up()

    def sum_up(self):
        troubles = self.troubles.values()
        self.cut = any(one.get("cut") for one in troubles)
        self.loss = max([one.get("loss", 0.0) for one in troubles], default=0.0)
        self.delay = max([one.get("delay", 0.0) for one in troubles], default=0.0)
        self.rate = min([one["rate"] for one in troubles if "rate" in one], default=0.0)

    def leaves(self, size, now, dice):
        """When a packet of that size arrives; None: never."""
        if self.cut or (self.loss and dice.random() < self.loss):
            return None
        if self.rate:
            begins = max(now, self.free_at)
            if begins - now > _LONGEST_QUEUE_S:
                return None
            self.free_at = now = begins + size / self.rate
        return now + self.delay


def device(namespace):
    """A TUN device in a namespace; its other end."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        _enter(there)
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        request = struct.pack("16sH22x", b"cable", _IFF_TUN | _IFF_NO_PI)
        fcntl.ioctl(tun, _TUNSETIFF, request)
    finally:
        _enter(here)
        os.close(here)
        os.close(there)
    return tun


def _enter(namespace):
    if _LIBC.setns(namespace, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")


class Switch:
    def __init__(self, ends, seed):
        """`ends`: the descriptors by number of host, which is the last byte of its address."""
        self.ends = ends
        self.ways = {(a, b): Way() for a in ends for b in ends}
        self.dice = random.Random(seed)
        self.late = []
        self.count = 0

    def order(self, order):
        """A trouble with a name of its own begins or ends; hosts that are not named are all."""
        for (a, b), way in self.ways.items():
            if order.get("end"):
                way.troubles.pop(order["name"], None)
            elif order.get("from", a) == a and order.get("to", b) == b:
                way.troubles[order["name"]] = order
            way.sum_up()

    def carry(self, source, now):
        for _ in range(_BURST):
            try:
                packet = os.read(self.ends[source], MTU + 100)
            except BlockingIOError:
                return
            # IPv4 alone, and nothing that is for everybody.
            if len(packet) < 20 or packet[0] >> 4 != 4 or packet[19] not in self.ends:
                continue
            at = self.ways[source, packet[19]].leaves(len(packet), now, self.dice)
            if at is None:
                continue
            if at > now:
                self.count += 1
                heapq.heappush(self.late, (at, self.count, packet))
            else:
                self.deliver(packet)

    def deliver(self, packet):
        try:
            os.write(self.ends[packet[19]], packet)
        except OSError:
            pass  # as on a wire: whoever sent it sends it again

    def due(self, now):
        """Delivers what is late enough; how long until the next."""
        while self.late and self.late[0][0] <= now:
            self.deliver(heapq.heappop(self.late)[2])
        return self.late[0][0] - now if self.late else None


def main(prefix, count, seed):
    ends = {number: device(f"{prefix}-{number}") for number in range(1, count + 1)}
    switch = Switch(ends, seed)
    poll = select.epoll()
    by_descriptor = {end: number for number, end in ends.items()}
    for end in [*by_descriptor, 0]:
        poll.register(end, select.EPOLLIN)
    print(json.dumps({"ready": True}), flush=True)
    rest = b""
    while True:
        wait = switch.due(time.monotonic())
        for descriptor, _ in poll.poll(-1 if wait is None else wait):
            if descriptor:
                switch.carry(by_descriptor[descriptor], time.monotonic())
                continue
            read = os.read(0, 65536)
            if not read:
                return
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                switch.order(json.loads(line))
                print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
