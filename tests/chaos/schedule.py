"""What goes wrong when: drawn from a seed, so that a run can be had again.

Pure. A fault names its host and how to choose among what is there (`pick`, a share of the list that
is found then); everything else about it follows from its kind.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass

HEAD, DRIVER, COUNT = 1, 2, 5
OTHERS = (3, 4, 5)
EVERYBODY = (1, 2, 3, 4, 5)
# Faults that last, at one time.
MOST_AT_ONCE = 2


@dataclass(frozen=True)
class Kind:
    name: str
    what: str
    hosts: tuple[int, ...]
    weight: float
    # Seconds, from and to; none: it is over when it has happened.
    lasts: tuple[float, float] = (0.0, 0.0)


KINDS = [
    Kind("worker-kill", "SIGKILL to a worker", EVERYBODY, 34),
    Kind("zygote-kill", "SIGKILL to a zygote", EVERYBODY, 8),
    Kind("node-kill", "SIGKILL to a node service", (1, *OTHERS), 6),
    Kind("host-kill", "SIGKILL to all processes of a host", OTHERS, 3),
    Kind("control-kill", "SIGKILL to the control service", (HEAD,), 5),
    Kind("head-kill", "SIGKILL to all processes of the head's host", (HEAD,), 2),
    Kind("worker-stop", "SIGSTOP to a worker", EVERYBODY, 8, (0.2, 2.0)),
    Kind("node-stop", "SIGSTOP to a node service", (1, *OTHERS), 4, (0.2, 5.0)),
    Kind("control-stop", "SIGSTOP to the control service", (HEAD,), 3, (0.2, 2.0)),
    Kind("host-stop", "SIGSTOP to all processes of a host", OTHERS, 3, (0.5, 6.0)),
    Kind("cut", "a host without its cable", OTHERS, 5, (0.3, 6.0)),
    Kind("blink", "the driver's host without its cable, shortly", (DRIVER,), 3, (0.1, 1.0)),
    Kind("pair-cut", "two hosts that do not reach each other", EVERYBODY, 4, (0.3, 6.0)),
    Kind("one-way", "a host that hears another, which does not hear it", EVERYBODY, 4, (0.3, 6.0)),
    Kind("driver-cut", "the driver's host without the head's, for long", (DRIVER,), 2, (3.0, 8.0)),
    Kind("loss", "2 to 10 % of packets lost", EVERYBODY, 3, (0.5, 5.0)),
    Kind("delay", "20 to 100 ms more, each way", EVERYBODY, 3, (0.5, 5.0)),
    Kind("slow", "a host with 1 to 5 MB/s", EVERYBODY, 3, (0.5, 5.0)),
    Kind("disk-full", "a host whose temporary directory is full", OTHERS, 2, (0.5, 5.0)),
]
TWO_ENDED = ("pair-cut", "one-way")
# What nobody takes for a death.
SHORT_S, SHORT_GAP_S = 1.0, 5.0
BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True)
class Fault:
    at: float
    kind: str
    host: int
    lasts: float
    pick: float
    # The other end, of faults that have two.
    other: int

    def as_json(self):
        return asdict(self)


def draw(seed, seconds, gap, names):
    """The faults of a run, `gap` seconds apart on average."""
    dice = random.Random(f"faults {seed}")
    kinds = [kind for kind in KINDS if kind.name in names]
    faults, at = [], 0.0
    while kinds:
        at += dice.uniform(0.3, 1.7) * gap
        if at >= seconds:
            break
        kind = dice.choices(kinds, [kind.weight for kind in kinds])[0]
        host = dice.choice(kind.hosts)
        other = dice.choice([number for number in EVERYBODY if number != host])
        lasts = min(dice.uniform(*kind.lasts), seconds - at)
        if kind.name in TWO_ENDED and {host, other} == {HEAD, DRIVER}:
            lasts = min(lasts, SHORT_S)  # else it is a driver-cut
        fault = Fault(round(at, 3), kind.name, host, round(lasts, 3), dice.random(), other)
        if fits(fault, faults):
            faults.append(fault)
    return faults


def fits(fault, faults):
    """Whether it does not meet a lasting fault of its own host, nor too many others."""
    lasting = [one for one in faults if one.lasts and one.at + one.lasts > fault.at]
    taken = {number for one in lasting for number in ends(one)}
    if taken & ends(fault):
        return False
    # Short silences that follow each other closely are a long one.
    if is_short(fault):
        earlier = [one.at + one.lasts for one in faults if is_short(one)]
        if earlier and fault.at < max(earlier) + SHORT_GAP_S:
            return False
    return not fault.lasts or len(lasting) < MOST_AT_ONCE


def is_short(fault):
    """Whether it keeps the driver's host from the head for a moment."""
    return fault.kind == "blink" or {DRIVER, HEAD} == ends(fault)


def ends(fault):
    return {fault.host, fault.other} if fault.kind in TWO_ENDED else {fault.host}
