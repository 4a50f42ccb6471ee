"""A full store: objects go to disk and come back, or somebody hears clearly why not."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.exceptions import ObjectLostError, ObjectStoreFullError
from storehouse import MB, STORE, blob, digest, expect_empty, shown, spill_files, used, view

HERE = os.path.dirname(os.path.dirname(__file__))


@pytest.fixture
def small(fresh, tmp_path):
    """A session with a store that is soon full; spills to `small.spill` unless told otherwise."""

    def init(**options):
        options.setdefault("object_spilling_directory", init.spill)
        options.setdefault("object_store_memory", STORE)
        return fresh(**options)

    init.spill = str(tmp_path / "spill")
    return init


@ray.remote
def make(seed, size):
    return blob(seed, size)


@ray.remote
def zeros(size):
    return np.zeros(size, dtype=np.uint8)


@ray.remote
def hash_of(value):
    return digest(value)


@ray.remote
def fill(size):
    return digest(ray.get(ray.put(blob(7, size))))


@ray.remote
class Holder:
    """Owns what it puts, and looks at what it is told to."""

    def __init__(self):
        self.kept = []

    def put(self, seed, size):
        return [ray.put(blob(seed, size))]

    def look(self, refs):
        self.kept = ray.get(refs)

    def close(self):
        self.kept = []


def put_many(count, size, first=0):
    """Refs and digests of `count` objects, put by this process."""
    pairs = []
    for seed in range(first, first + count):
        value = blob(seed, size)
        pairs.append((ray.put(value), digest(value)))
    return pairs


def check(pairs):
    for ref, expected in pairs:
        assert digest(ray.get(ref)) == expected


@pytest.mark.slow
def test_four_times_the_store(small):
    small(num_cpus=2)
    pairs = put_many(3, 30 * MB) + put_many(25, MB, 100) + put_many(80, 120_000, 200)
    sizes = [(300 + i, 30 * MB) for i in range(3)] + [(320 + i, MB) for i in range(20)]
    sizes += [(350 + i, 120_000) for i in range(40)]
    pairs += [(make.remote(*size), digest(blob(*size))) for size in sizes]
    holders = [Holder.remote() for _ in range(2)]
    for i, size in enumerate([30 * MB] * 4 + [MB] * 10 + [120_000] * 20):
        (ref,) = ray.get(holders[i % 2].put.remote(400 + i, size))
        pairs.append((ref, digest(blob(400 + i, size))))
    ray.wait([ref for ref, _ in pairs], num_returns=len(pairs), fetch_local=False)
    assert view()["spilled"] > 2 * STORE
    check(pairs)
    # Once more, in other processes: most are on disk when the call is made.
    hashes = ray.get([hash_of.remote(ref) for ref, _ in pairs])
    assert hashes == [expected for _, expected in pairs]
    assert view()["restored"] > 2 * STORE
    del pairs, ref
    expect_empty()
    wait_until(lambda: not spill_files(small.spill))


@pytest.mark.parametrize("form", ["list", "config", "environment"])
def test_several_directories(small, tmp_path, monkeypatch, form):
    both = [str(tmp_path / "a"), str(tmp_path / "b")]
    config = {"type": "filesystem", "params": {"directory_path": both}}
    if form == "list":
        small(object_spilling_directory=both)
    elif form == "config":
        text = json.dumps(config)
        small(object_spilling_directory=None, _system_config={"object_spilling_config": text})
    else:
        monkeypatch.setenv("RAY_object_spilling_config", json.dumps(config))
        small(object_spilling_directory=None)
    pairs = put_many(6, 20 * MB)
    assert all(spill_files(directory) for directory in both)
    check(pairs)
    ray.shutdown()
    assert [os.listdir(directory) for directory in both] == [[], []]


def test_one_directory_in_the_configuration(small, tmp_path):
    place = str(tmp_path / "one")
    config = {"type": "filesystem", "params": {"directory_path": place}}
    small(
        object_spilling_directory=None,
        _system_config={"object_spilling_config": json.dumps(config)},
    )
    pairs = put_many(5, 20 * MB)
    assert spill_files(place)
    check(pairs)


def test_without_a_word_the_session_directory_is_used(small):
    context = small(object_spilling_directory=None)
    pairs = put_many(6, 20 * MB)
    session = ray._native.context()["session_dir"]
    assert spill_files(os.path.join(session, "spill"))
    check(pairs)
    del pairs
    expect_empty()
    ray.shutdown()
    assert not os.path.exists(session), context


def test_files_go_with_the_refs(small):
    small()
    pairs = put_many(10, 20 * MB)
    assert len(spill_files(small.spill)) >= 6
    del pairs[::2]
    wait_until(lambda: len(spill_files(small.spill)) <= 5)
    check(pairs)
    del pairs
    expect_empty()
    wait_until(lambda: not spill_files(small.spill))


def test_a_killed_driver_leaves_no_files(driver, tmp_path):
    place = tmp_path / "spill"
    process = driver.start(
        f"""
        import time
        import numpy as np
        import oxiray as ray
        ray.init(num_cpus=1, object_store_memory={STORE}, object_spilling_directory={str(place)!r})
        refs = [ray.put(np.ones(20 << 20, dtype=np.uint8)) for _ in range(8)]
        print("spilled", flush=True)
        time.sleep(600)
        """
    )
    assert process.stdout.readline() == "spilled\n"
    assert spill_files(place)
    process.kill()
    process.communicate()
    wait_until(lambda: os.listdir(place) == [], 10, "the spill directory is empty")
    driver.clean()


LINES = f"""
import os
import numpy as np
import oxiray as ray
ray.init(num_cpus=1, object_store_memory={STORE}, logging_level="error")
refs = [ray.put(np.ones(20 << 20, dtype=np.uint8)) for _ in range(19)]
ray.shutdown()
"""


def test_the_driver_is_told_at_first_and_at_each_doubling(driver):
    done = driver(LINES)
    lines = [line for line in done.stderr.splitlines() if "Spilled" in line]
    amounts = [float(line.partition("Spilled ")[2].split()[0]) for line in lines]
    assert len(amounts) >= 3
    assert all(later + 0.2 >= 2 * earlier for earlier, later in itertools.pairwise(amounts))
    assert all(
        "object store is full" in line and "RAY_verbose_spill_logs=0" in line for line in lines
    )


def test_the_lines_can_be_silenced(driver):
    done = driver(LINES, env={"RAY_verbose_spill_logs": "0"})
    assert "pill" not in done.stderr + done.stdout


def test_values_in_use_stay_while_others_go_to_disk(small):
    small()
    held = put_many(2, 20 * MB)
    values = [ray.get(ref) for ref, _ in held]
    others = put_many(6, 20 * MB, 50)
    check(others)
    assert [digest(value) for value in values] == [expected for _, expected in held]
    # The values stay even when the refs go.
    expected = [pair[1] for pair in held]
    del held, others
    check(put_many(5, 20 * MB, 70))
    assert [digest(value) for value in values] == expected
    del values
    expect_empty()


@pytest.mark.slow
def test_everything_in_use_is_an_error_and_no_end(small, monkeypatch):
    monkeypatch.setenv("OXIRAY_STORE_FULL_TIMEOUT_S", "3")
    small()
    pairs = put_many(7, 10 * MB)
    values = [ray.get(ref) for ref, _ in pairs]
    with pytest.raises(ObjectStoreFullError, match=r"full.*get\(\)|full.*object_store_memory"):
        ray.put(blob(99, 30 * MB))
    with pytest.raises(ObjectStoreFullError):
        ray.get(fill.options(max_retries=0).remote(30 * MB))
    with pytest.raises(ObjectStoreFullError):
        ray.get(make.options(max_retries=0).remote(1, 30 * MB))
    with pytest.raises(ObjectStoreFullError):
        hash_of.remote(blob(99, 30 * MB))
    assert [digest(value) for value in values] == [expected for _, expected in pairs]
    del values
    assert ray.get(fill.remote(30 * MB)) == digest(blob(7, 30 * MB))
    check(pairs)
    check(put_many(3, 30 * MB))
    del pairs
    expect_empty()


def test_small_objects_in_use_count_as_well(small, monkeypatch):
    monkeypatch.setenv("OXIRAY_STORE_FULL_TIMEOUT_S", "0.3")
    small()
    values, expected = [], []
    with pytest.raises(ObjectStoreFullError):
        for seed in range(2000):
            value = blob(seed, 120_000)
            values.append(ray.get(ray.put(value)))
            expected.append(digest(value))
    assert len(values) > STORE * 0.8 / 120_000
    assert [digest(value) for value in values] == expected
    values.clear()
    expect_empty()
    check(put_many(100, 120_000))


def test_a_small_object_in_the_middle_is_not_in_the_way(small, monkeypatch):
    # What must work may take the disk its time.
    monkeypatch.setenv("OXIRAY_STORE_FULL_TIMEOUT_S", "10")
    small()
    below = ray.put(blob(1, 40 * MB))
    between = ray.put(blob(2, 120_000))
    del below
    check(put_many(1, 50 * MB))
    assert digest(ray.get(between)) == digest(blob(2, 120_000))


@pytest.mark.parametrize("size", [STORE + 1, 3 * STORE])
def test_an_object_larger_than_the_store(small, size):
    small()  # with the patience of always: at once means without it
    begin = time.monotonic()
    value = np.zeros(size, dtype=np.uint8)
    with pytest.raises(ObjectStoreFullError, match="object_store_memory"):
        ray.put(value)
    with pytest.raises(ObjectStoreFullError, match="object_store_memory"):
        hash_of.remote(value)
    with pytest.raises(ObjectStoreFullError, match="object_store_memory"):
        ray.get(zeros.options(max_retries=0).remote(size))
    assert time.monotonic() - begin < 20
    expect_empty()


@pytest.mark.parametrize(
    "memory, words",
    [
        (1, "the least is"),
        (0, "the least is"),
        (-5, "the least is"),
        (75 * MB - 1, "the least is"),
        (1 << 60, "more than this machine's memory"),
        (float("inf"), "number of bytes"),
        (float("nan"), "number of bytes"),
    ],
)
def test_sizes_that_cannot_be(fresh, memory, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fresh(object_store_memory=memory)


def test_directories_that_cannot_be(small, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    for place, words in [
        (tmp_path / "missing" / "too", "neither it nor the directory it is in exists"),
        (file, "it is a file"),
        ("/proc", "cannot be made in it"),
    ]:
        with pytest.raises(Exception, match=words) as caught:
            small(object_spilling_directory=str(place))
        assert str(place) in str(caught.value)
        assert not ray.is_initialized()
    # One that works does not help one that does not.
    with pytest.raises(Exception, match="it is a file"):
        small(object_spilling_directory=[str(tmp_path / "good"), str(file)])
    assert file.read_text() == "mine"
    assert not spill_files(tmp_path / "good")


def test_a_directory_that_goes_and_comes_back(small, monkeypatch):
    monkeypatch.setenv("OXIRAY_STORE_FULL_TIMEOUT_S", "3")
    small()
    pairs = put_many(3, 20 * MB)
    (own,) = [os.path.join(small.spill, name) for name in os.listdir(small.spill)]
    os.rename(own, own + ".moved")
    with pytest.raises(ObjectStoreFullError, match="cannot be spilled"):
        put_many(2, 20 * MB)
    check(pairs)
    os.rename(own + ".moved", own)
    wait_until(lambda: can_put(30 * MB), message="objects are spilled again")
    check(pairs)


def can_put(size):
    try:
        ray.put(np.zeros(size, dtype=np.uint8))
    except ObjectStoreFullError:
        return False
    return True


def has_mount_namespaces():
    probe = f"import sys; sys.path.insert(0, {HERE!r}); import private; private.mount_namespace()"
    return subprocess.run([sys.executable, "-c", probe], capture_output=True).returncode == 0


needs_a_small_disk = pytest.mark.skipif(
    not has_mount_namespaces(), reason="a disk of its own needs root and mount namespaces"
)


@pytest.mark.slow
@needs_a_small_disk
def test_a_full_disk(driver):
    """Refused with a clear text, nothing is lost, and with space on the disk all goes on."""
    done = driver(
        f"""
        import os, threading, time
        import private
        os.makedirs("disk")
        private.mount_namespace()
        private.mount("disk", 60 << 20)
        import oxiray as ray
        from oxiray.exceptions import OutOfDiskError
        from storehouse import MB, blob, digest, expect_empty, spill_files, view

        ray.init(num_cpus=1, object_store_memory={STORE}, object_spilling_directory="disk")
        held = []
        begin = time.monotonic()
        try:
            while len(held) < 30:
                held.append((ray.put(blob(len(held), 10 * MB)), digest(blob(len(held), 10 * MB))))
            raise SystemExit("a disk of 60 MB took everything")
        except OutOfDiskError as error:
            print(error)
            assert "disk" in str(error) and os.path.abspath("disk") in str(error), error
        assert time.monotonic() - begin < 20
        assert 10 <= len(held) <= 13, len(held)

        @ray.remote(max_retries=0)
        def fill():
            return blob(0, 30 * MB)

        try:
            ray.get(fill.remote())
            raise SystemExit("there was room for a result")
        except OutOfDiskError:
            pass

        # Refs that go make room again.
        del held[:6]
        for _ in range(3):
            assert digest(ray.get(fill.remote())) == digest(blob(0, 30 * MB))
        for ref, expected in held:
            assert digest(ray.get(ref)) == expected
        del held, ref
        expect_empty()
        assert not spill_files("disk")

        # So does whoever cleans the disk up; whoever waits then goes on.
        with open("disk/filler", "wb") as file:
            file.write(bytes(55 * MB))
        held = [(ray.put(blob(i, 10 * MB)), digest(blob(i, 10 * MB))) for i in range(7)]
        late = threading.Timer(0.2, os.remove, ["disk/filler"])
        late.start()
        for i in range(7, 11):
            held.append((ray.put(blob(i, 10 * MB)), digest(blob(i, 10 * MB))))
        late.join()
        for ref, expected in held:
            assert digest(ray.get(ref)) == expected
        ray.shutdown()
        assert os.listdir("disk") == []
        """,
        env={"PYTHONPATH": HERE, "OXIRAY_STORE_FULL_TIMEOUT_S": "2"},
    )
    assert "could not be spilled" in done.stderr


@needs_a_small_disk
def test_a_read_only_disk(driver):
    driver(
        f"""
        import os
        import private
        os.makedirs("disk/inside")
        private.mount_namespace()
        private.mount("disk", 10 << 20, read_only=True)
        import oxiray as ray
        try:
            ray.init(num_cpus=1, object_store_memory={STORE}, object_spilling_directory="disk")
            raise SystemExit("it was taken")
        except Exception as error:
            assert "disk" in str(error) and "Read-only" in str(error), error
        """,
        env={"PYTHONPATH": HERE},
    )


@needs_a_small_disk
def test_a_full_disk_next_to_one_that_is_not(driver):
    driver(
        f"""
        import os
        import private
        os.makedirs("small")
        os.makedirs("large")
        private.mount_namespace()
        private.mount("small", 25 << 20)
        import oxiray as ray
        from storehouse import MB, blob, digest, spill_files
        both = ["small", "large"]
        ray.init(num_cpus=1, object_store_memory={STORE}, object_spilling_directory=both)
        held = [(ray.put(blob(i, 20 * MB)), digest(blob(i, 20 * MB))) for i in range(10)]
        assert spill_files("small") and len(spill_files("large")) >= 5
        for ref, expected in held:
            assert digest(ray.get(ref)) == expected
        """,
        env={"PYTHONPATH": HERE},
    )


def remove(path):
    os.remove(path)


def truncate(path):
    os.truncate(path, os.path.getsize(path) - 5 * MB)


def flip(path):
    with open(path, "r+b") as file:
        file.seek(7 * MB + 3)
        byte = file.read(1)[0]
        file.seek(7 * MB + 3)
        file.write(bytes([byte ^ 4]))


@pytest.mark.parametrize(
    "harm, words",
    [(remove, "was removed"), (truncate, "was truncated"), (flip, "was changed")],
    ids=["removed", "truncated", "flipped"],
)
def test_a_harmed_file_costs_its_objects_and_no_others(small, harm, words):
    small()
    pairs = put_many(8, 20 * MB)
    harmed = spill_files(small.spill)
    for path in harmed:
        harm(path)
    lost = []
    for ref, expected in pairs:
        try:
            assert digest(ray.get(ref)) == expected
        except ObjectLostError as error:
            assert words in str(error) and "spill" in str(error)
            lost.append(ref)
    # Each file held one object: the rest of the store has room for no more.
    assert len(lost) == len(harmed) >= 4
    for ref in lost[:2]:
        with pytest.raises(ObjectLostError, match=words):
            ray.get(ref)
        with pytest.raises(ObjectLostError, match=words):
            ray.get(hash_of.options(max_retries=0).remote(ref))
    del pairs, lost, ref
    expect_empty()
    check(put_many(5, 20 * MB))


def test_a_creator_waits_until_another_process_lets_go(small):
    small()
    pairs = put_many(7, 10 * MB)
    values = [ray.get(ref) for ref, _ in pairs]
    waiting = [fill.remote(30 * MB), make.remote(7, 30 * MB)]
    ready, _ = ray.wait(waiting, timeout=0.3)
    assert not ready
    del values
    assert ray.get(waiting[0], timeout=30) == digest(blob(7, 30 * MB))
    assert digest(ray.get(waiting[1], timeout=30)) == digest(blob(7, 30 * MB))
    check(pairs)


def test_this_process_waits_until_a_worker_lets_go(small):
    small()
    pairs = put_many(7, 10 * MB)
    holder = Holder.remote()
    ray.get(holder.look.remote([ref for ref, _ in pairs]))
    refs = []
    creator = threading.Thread(target=lambda: refs.append(ray.put(blob(7, 30 * MB))))
    creator.start()
    creator.join(0.3)
    assert creator.is_alive() and not refs
    ray.get(holder.close.remote())
    creator.join(30)
    assert digest(ray.get(refs.pop())) == digest(blob(7, 30 * MB))
    check(pairs)


def test_the_death_of_who_looks_makes_room(small):
    small()
    pairs = put_many(7, 10 * MB)
    holder = Holder.remote()
    ray.get(holder.look.remote([ref for ref, _ in pairs]))
    refs = []
    creator = threading.Thread(target=lambda: refs.append(ray.put(blob(7, 30 * MB))))
    creator.start()
    ray.kill(holder)
    creator.join(30)
    assert digest(ray.get(refs.pop())) == digest(blob(7, 30 * MB))
    check(pairs)


def test_interrupting_a_put_that_waits(driver):
    process = driver.start(
        f"""
        import oxiray as ray
        from storehouse import MB, blob, digest, expect_empty
        ray.init(num_cpus=1, object_store_memory={STORE}, logging_level="error")
        values = [ray.get(ray.put(blob(i, 10 * MB))) for i in range(7)]
        large = blob(9, 40 * MB)
        for _ in range(2):
            try:
                print("waiting", flush=True)
                ray.put(large)
                print("there was room", flush=True)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
        assert [digest(v) for v in values] == [digest(blob(i, 10 * MB)) for i in range(7)]
        del values
        expect_empty()
        assert digest(ray.get(ray.put(blob(1, 75 * MB)))) == digest(blob(1, 75 * MB))
        expect_empty()
        """,
        env={"PYTHONPATH": HERE},
    )
    for _ in range(2):
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.2)  # let it get into put(); if it is not there yet, the test passes as well
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - begin < 2
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    driver.clean()


def test_interrupting_a_get_that_waits(driver):
    process = driver.start(
        f"""
        import oxiray as ray
        from storehouse import MB, blob, digest, expect_empty
        ray.init(num_cpus=1, object_store_memory={STORE}, logging_level="error")
        ref = ray.put(blob(9, 40 * MB))
        values = [ray.get(ray.put(blob(i, 9 * MB))) for i in range(8)]
        try:
            print("waiting", flush=True)
            ray.get(ref)
            print("there was room", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        del values
        assert digest(ray.get(ref)) == digest(blob(9, 40 * MB))
        del ref
        expect_empty()
        """,
        env={"PYTHONPATH": HERE},
    )
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.2)  # as above
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    driver.clean()


class Unwilling:
    def __reduce__(self):
        raise ValueError("not now")


@ray.remote
def both(first, second):
    return first is second


@ray.remote(max_retries=0)
def unwilling(value):
    return [value, Unwilling()]


def test_a_value_that_fails_midway_leaves_nothing(small):
    small()
    kept = ray.put(blob(1, MB))
    before = used()
    counted = ray._native.counts()
    for _ in range(4):
        inner = ray.put(blob(2, 10 * MB))
        for attempt in (
            lambda value: ray.put(value),
            lambda value: hash_of.remote(value),
            lambda value: both.remote(value[0], value),
        ):
            with pytest.raises(ValueError, match="not now"):
                attempt([blob(3, 30 * MB), inner, Unwilling()])
        with pytest.raises(ValueError, match="not now"):
            ray.get(unwilling.remote(inner))
        with pytest.raises(ValueError, match="not now"):
            ray.get(unwilling.remote(blob(4, 20 * MB)))
    del inner
    wait_until(lambda: used() == before, message=f"used is {before} again: {shown()}")
    wait_until(lambda: ray._native.counts() == counted)
    assert view()["spilled"] == 0
    assert digest(ray.get(kept)) == digest(blob(1, MB))
    del kept
    expect_empty()


def test_garbage_does_not_keep_memory(small):
    """What only cycles hold, in driver or idle worker, is let go when memory is short."""
    small(num_cpus=1)

    @ray.remote
    def tie_a_knot(value):
        knot = [value]
        knot.append(knot)

    size = STORE * 6 // 10
    ref = ray.put(np.zeros(size, dtype=np.uint8))
    ray.get(tie_a_knot.remote(ref))
    knot = [ray.get(ref)]
    knot.append(knot)
    del ref, knot
    ray.get(ray.put(np.ones(size, dtype=np.uint8)))


def test_a_nodes_row_tells_what_is_on_disk_from_what_was_written(small):
    from oxiray.util.state import list_nodes

    small()
    refs = [ref for ref, _ in put_many(8, STORE // 4)]
    (node,) = list_nodes()
    assert 0 < node.disk_bytes <= node.spilled_bytes
    ray.get(refs[0])
    (after,) = list_nodes()
    assert after.restored_bytes >= STORE // 4 > node.restored_bytes
    del refs
    wait_until(lambda: list_nodes()[0].disk_bytes == 0, message="nothing is on disk any more")
    assert list_nodes()[0].spilled_bytes >= node.spilled_bytes
