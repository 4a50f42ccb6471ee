"""Histories of registers and keys on real processes, under faults, are linearizable."""

from __future__ import annotations

import json
import os
import random
import time

import pytest
from linearizable import LOST, Operation, check, register
from machines import Machine, finish


def history(*operations):
    """Each is when it was asked, when it was answered, the question, and the answer."""
    return [Operation(*operation) for operation in operations]


def test_a_history_that_is_one_has_an_order():
    found = check(
        history(
            (0, 9, ("write", 1), None),
            (1, 2, ("read",), None),
            (3, 4, ("read",), 1),
            (5, 6, ("swap", 1, 2), True),
            (7, 8, ("swap", 1, 3), False),
        ),
        register,
        None,
    )
    assert [one.question[0] for one in found] == ["read", "write", "read", "swap", "swap"]


@pytest.mark.parametrize(
    "operations",
    [
        # A value that nobody has written.
        [(0, 1, ("read",), 5)],
        # Written and answered, and then not there.
        [(0, 1, ("write", 5), None), (2, 3, ("read",), None)],
        # New, then old: time goes back.
        [(0, 9, ("write", 5), None), (1, 2, ("read",), 5), (3, 4, ("read",), None)],
        # One write that is seen twice, with another in between: it was done twice.
        [
            (0, 9, ("write", 1), None),
            (1, 2, ("read",), 1),
            (3, 4, ("write", 2), None),
            (5, 6, ("read",), 2),
            (7, 8, ("read",), 1),
        ],
        # Two that both were the first.
        [(0, 3, ("swap", None, 1), True), (1, 2, ("swap", None, 2), True)],
        # Nobody was the first, and yet it is there.
        [(0, 3, ("swap", None, 1), False), (4, 5, ("read",), 1)],
        # Deleted twice.
        [(0, 1, ("write", 1), None), (2, 5, ("delete",), True), (3, 4, ("delete",), True)],
    ],
)
def test_one_that_is_none_has_none(operations):
    assert check(history(*operations), register, None) is None


def test_what_was_never_answered_may_have_happened_or_not():
    asked = (0, float("inf"), ("write", 1), LOST)
    assert check(history(asked, (1, 2, ("read",), None)), register, None)
    assert check(history(asked, (1, 2, ("read",), 1)), register, None)
    assert not check(history(asked, (1, 2, ("read",), 1), (3, 4, ("read",), None)), register, None)
    assert not check(history((5, 9, ("write", 1), LOST), (1, 2, ("read",), 1)), register, None)


def test_long_histories_take_no_long_time():
    dice, operations, value = random.Random(3), [], None
    for at in range(300):
        if dice.random() < 0.5:
            value = at
            operations.append((at, at + 3 * dice.random(), ("write", at), None))
        else:
            operations.append((at, at + 3 * dice.random(), ("read",), value))
    # Reads that overlap writes may be of either: only what is apart is certain to be in order.
    check(history(*operations), register, None)
    apart = [(at, at + 0.5, question, answer) for at, _, question, answer in operations]
    assert check(history(*apart), register, None)


#: Clients of a cluster: each asks, and notes when it asked and when it was answered, by one clock.
CLIENTS = """
    import json, random, sys, threading, time
    import oxiray as ray
    from oxiray.experimental import internal_kv as kv

    ray.init(address=sys.argv[1], logging_level="error", namespace="histories")
    histories, lock, ends = {}, threading.Lock(), time.monotonic() + float(sys.argv[2])

    @ray.remote(num_cpus=0)
    class Register:
        value = None

        def ask(self, what, *values):
            if what == "read":
                return self.value
            if what == "write":
                (self.value,) = values
                return None
            old, new = values
            is_right = self.value == old
            self.value = new if is_right else self.value
            return is_right

    registers = [Register.remote() for _ in range(2)]
    ray.get([one.ask.remote("read") for one in registers])

    def at_actor(which, question):
        return ray.get(registers[which].ask.remote(*question), timeout=60)

    def at_key(which, question):
        key = f"key {which}"
        if question == ("read",):
            value = kv._internal_kv_get(key)
            return None if value is None else int(value)
        if question[0] == "write":
            kv._internal_kv_put(key, str(question[1]))
            return None
        if question[0] == "swap":
            return not kv._internal_kv_put(key, str(question[2]), overwrite=False)
        return bool(kv._internal_kv_del(key))

    def client(kind, ask, number):
        dice, count = random.Random(number), 0
        while time.monotonic() < ends:
            count += 1
            which, value = dice.randrange(2), 1000 * number + count
            if ask is at_key:
                more = [("swap", None, value), ("delete",)]
            else:
                more = [("swap", None, value)]
            question = dice.choice([("read",), ("read",), ("write", value), *more])
            asked = time.monotonic()
            answer = ask(which, question)
            with lock:
                history = histories.setdefault(f"{kind} {which}", [])
                history.append((asked, time.monotonic(), question, answer))
            time.sleep(dice.random() * 0.02)

    values_of = {None: None}

    def names(number):
        # Who has the name: made if nobody has it, looked up, killed.
        dice, count, made = random.Random(number), 0, []
        while time.monotonic() < ends:
            count += 1
            asked, value = time.monotonic(), 1000 * number + count
            what = dice.choice(("read", "read", "swap", "drop"))
            if what == "swap":
                question = (what, None, value)
                try:
                    actor = Register.options(name="boss").remote()
                    made.append((actor, value))
                    values_of[actor._actor_id.hex()] = value
                    answer = True
                except ValueError:
                    answer = False
            elif what == "drop" and made:
                # It returns before the name is free: when it was is not known.
                actor, value = made.pop()
                question, answer = (what, value), "lost"
                ray.kill(actor)
            else:
                question = ("read",)
                try:
                    answer = "id " + ray.get_actor("boss")._actor_id.hex()
                except ValueError:
                    answer = None
            with lock:
                history = histories.setdefault("name", [])
                history.append((asked, time.monotonic(), question, answer))
            time.sleep(dice.random() * 0.05)
        for actor, _ in made:
            ray.kill(actor)

    kinds = (("actor", at_actor), ("key", at_key))
    threads = [
        threading.Thread(target=client, args=(kind, ask, number))
        for kind, ask in kinds
        for number in (1, 2, 3)
    ]
    threads += [threading.Thread(target=names, args=(number,)) for number in (4, 5)]
    print("go", flush=True)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for row, (asked, answered, question, answer) in enumerate(histories.get("name", ())):
        if isinstance(answer, str) and answer.startswith("id "):
            seen = values_of[answer.removeprefix("id ")]
            histories["name"][row] = (asked, answered, question, seen)
    print(json.dumps(histories))
    ray.shutdown()
"""

LONG = os.environ.get("OXIRAY_TEST_LONG") == "1"
SECONDS = 60 if LONG else 6
SMALL = ("--num-cpus=1", "--num-gpus=0", f"--object-store-memory={80 * 2**20}")


@pytest.fixture
def head():
    """A head whose state outlives its control service."""
    machine = Machine()
    machine.start_head(*SMALL)
    yield machine
    machine.end()


@pytest.mark.timeout(60 + 5 * SECONDS)
def test_registers_and_keys_while_the_control_service_is_killed(head):
    clients = head.start_program(CLIENTS, head.address, str(SECONDS))
    assert clients.stdout.readline() == "go\n", clients.communicate()[1]
    dice, kills, ends = random.Random(8), 0, time.monotonic() + SECONDS
    while time.monotonic() < ends:
        time.sleep(dice.uniform(0.2, 0.7))
        head.kill_control()
        head.start_control_again(*SMALL)
        kills += 1
    histories = json.loads(finish(clients, 60))
    assert kills >= 2 and len(histories) == 5
    for name, rows in histories.items():
        operations = [
            Operation(asked, answered, tuple(question), LOST if answer == "lost" else answer)
            for asked, answered, question, answer in rows
        ]
        assert len(operations) > 20, f"{name} was asked {len(operations)} times"
        assert check(operations, register, None), f"no order explains {name}: {sorted(rows)}"
