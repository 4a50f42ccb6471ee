"""One run from the first host to the last: hosts, load, faults, and what is left afterwards."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass

from . import oracle, report
from .faults import Faults
from .hosts import STORE, Host, Network, resume_all
from .keeper import Keeper
from .schedule import COUNT, DRIVER, HEAD, draw
from .works import noted

# Until the first faults: what the load does undisturbed.
QUIET_S = 3.0
RECOVERY_S = 60.0
MOST_BEYOND_S = 10.0


@dataclass(frozen=True)
class Plan:
    """What is to happen."""

    seed: int
    seconds: float
    # Between faults, on average.
    gap: float
    # Kinds of faults to draw from, and those left out with the reason.
    kinds: frozenset[str]
    left_out: dict[str, str]
    # Kinds of operations; none: all of them.
    load: tuple[str, ...] = ()


def run(plan, logs, say=print):
    """The result, as it is written down; if it is not good, the services' logs are in `logs`."""
    folder = tempfile.mkdtemp(prefix="oxchaos-", dir="/tmp")
    result = {"seed": plan.seed, "seconds": plan.seconds, "gap": plan.gap}
    result["left_out"] = plan.left_out
    try:
        with Network(plan.seed) as network:
            hosts = {}
            try:
                start(hosts, network)
                result |= disturb(hosts, network, plan, folder, say)
            finally:
                resume_all(hosts)
                if result.get("problems", True) or result["late"]:
                    for host in hosts.values():
                        host.keep_logs(logs)
                left = [said for host in reversed(hosts.values()) for said in host.end()]
            result["problems"] += [f"left behind: {said}" for said in left]
    finally:
        shutil.rmtree(folder)
    return result


def start(hosts, network):
    for number in range(1, COUNT + 1):
        hosts[number] = Host(network, number, hosts.get(HEAD))
        said = hosts[number].start()
        if said:
            raise RuntimeError(f"host {number} does not start: {said}")


def disturb(hosts, network, plan, folder, say):
    records, runs = os.path.join(folder, "records"), os.path.join(folder, "runs")
    begin = time.monotonic()
    given = {"seed": plan.seed, "records": records, "runs": runs, "begin": begin}
    given |= {"store": STORE, "only": plan.load}
    program = "import sys, json; from chaos.load import main; main(json.loads(sys.argv[1]))"
    driver = hosts[DRIVER].start_program(program, json.dumps(given))
    try:
        if driver.stdout.readline() != "ready\n":
            raise RuntimeError(f"the driver did not start: {driver.communicate()[1]}")
        faults = Faults(hosts, network, time.monotonic() + QUIET_S)
        schedule = draw(plan.seed, plan.seconds, plan.gap, plan.kinds)
        say(f"chaos: {len(schedule)} faults in {plan.seconds:.0f} s, seed {plan.seed}")
        stop = threading.Event()
        with Keeper(hosts) as keeper:
            watch = threading.Thread(target=end_with, args=(driver, stop), daemon=True)
            watch.start()
            faults.run(schedule, stop)
            problems = keeper.wait_for_all(RECOVERY_S)
            problems += finish(driver)
            restarts = dict(keeper.restarts)
    finally:
        driver.kill()
        driver.wait()
    shift = faults.begin - begin
    done = sorted(faults.done, key=lambda fault: fault["begin"])
    done = [{**f, "begin": f["begin"] + shift, "end": f["end"] + shift} for f in done]
    found = read(records)
    problems += oracle.judge(found, noted(runs), done)
    return {
        "faults": done,
        "restarts": restarts,
        "problems": problems,
        "late": list(oracle.too_late(found, done, MOST_BEYOND_S)),
        "by_kind": oracle.by_kind(found, done),
        "by_fault": oracle.by_fault(found, done),
        "tasks_per_second": report.per_second(found, max([0.0, *(r["end"] for r in found)])),
        "records": found,
    }


def end_with(driver, stop):
    """The faults end with the driver, which should not end before."""
    driver.wait()
    stop.set()


def finish(driver):
    """Has the driver end; what it found left, or how it ended otherwise."""
    if driver.poll() is not None:
        return [f"the driver ended with {driver.returncode}: {driver.stderr.read()[-2000:]}"]
    try:
        out, err = driver.communicate(timeout=240)
    except Exception as error:
        return [f"the driver did not end: {error}"]
    if driver.returncode:
        return [f"the driver ended with {driver.returncode}: {err[-2000:]}"]
    left = json.loads(out.splitlines()[-1])
    return [f"left in the cluster: {one}" for one in left]


def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file]
