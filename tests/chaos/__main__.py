"""A run by hand: `make chaos`, or `python -m chaos --help` with tests/ in PYTHONPATH."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys

from conftest import BASE

from . import campaign, report
from .campaign import Plan
from .hosts import NoHosts
from .schedule import BY_NAME, KINDS

# Kinds that are not among those of a plain run, and why.
LEFT_OUT = {
    "driver-cut": "a node that the head does not hear for long (here: 3 s) is given up, and with "
    "the driver's node its session ends: the driver's calls raise RaySystemError",
}

# Faults that this makes in no run, and why.
NOT_MADE = {
    "driver-node-kill": "SIGKILL to the driver's node service ends its session: its calls raise "
    "RaySystemError, and there is no load any more to judge by",
    "memory-hog": "the hosts have one machine's memory, which is not theirs alone to use up",
}


def chosen(only, without):
    """The kinds to draw from, and those left out with the reason."""
    for name in [*only, *without]:
        if name not in BY_NAME:
            sys.exit(f"chaos: there is no fault {name!r}; there are: {', '.join(BY_NAME)}")
    left_out = {} if only else {**LEFT_OUT, **NOT_MADE, **dict.fromkeys(without, "--without")}
    names = frozenset(only) or frozenset(BY_NAME) - left_out.keys()
    return names, left_out


def main():
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    split = lambda text: [name for name in text.split(",") if name]  # noqa: E731
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--gap", type=float, default=0.36, help="seconds between faults")
    parser.add_argument("--only", type=split, default=[], metavar="KIND,KIND")
    parser.add_argument("--without", type=split, default=[], metavar="KIND,KIND")
    parser.add_argument("--load", type=split, default=[], metavar="KIND,KIND", help="operations")
    parser.add_argument("--report", default="target/chaos", help="directory for both files")
    parser.add_argument("--list", action="store_true", help="say which faults there are")
    options = parser.parse_args()
    try:
        if options.list:
            for kind in KINDS:
                print(f"{kind.name:14} {kind.what}; {LEFT_OUT.get(kind.name, 'by default')}")
            return 0
        names, left_out = chosen(options.only, options.without)
        logs = os.path.join(options.report, f"chaos-{options.seed}-logs")
        plan = Plan(options.seed, options.seconds, options.gap, names, left_out, options.load)
        result = campaign.run(plan, logs)
    except NoHosts as error:
        sys.exit(f"chaos: hosts cannot be had here: {error}")
    finally:
        shutil.rmtree(BASE, ignore_errors=True)
    paths = report.write(options.report, result)
    print(report.summary(result))
    print("written:", *(os.path.relpath(path) for path in paths))
    return 1 if result["problems"] or result["late"] else 0


if __name__ == "__main__":
    sys.exit(main())
