"""Workers start with what others of their environment imported, unless it is unfit for a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import oxiray as ray
import pytest
from conftest import processes_under, wait_until

# Every module of these tests says where its body ran.
WHERE = "import os\nLOADED_BY = os.getpid()\n"


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Writes modules that the driver, and so its workers, can import."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(**sources):
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(WHERE + textwrap.dedent(source))

    return write


def importing(*names, then=lambda: None):
    """An actor that has imported these in the order of their names."""

    class Importer:
        def __init__(self):
            self.modules = [__import__(name) for name in names]

        def loaded_ahead(self):
            return [module.LOADED_BY != os.getpid() for module in self.modules]

        def then(self):
            return then()

    return ray.remote(num_cpus=0)(Importer)


def until_ahead(actor_class, index=-1):
    """An actor that found the module already there."""

    def one():
        actor = actor_class.remote()
        if ray.get(actor.loaded_ahead.remote())[index]:
            return actor
        ray.kill(actor)
        return None

    return wait_until(one, 60, "a worker finds the module loaded")


def test_the_next_workers_find_what_the_first_imported(fresh, modules):
    modules(oxt_slow="VALUE = 1")
    fresh()
    actors = importing("oxt_slow")
    first = actors.remote()
    assert ray.get(first.loaded_ahead.remote()) == [False]
    until_ahead(actors)

    @ray.remote(max_calls=1)
    def f():
        import oxt_slow

        return oxt_slow.LOADED_BY != os.getpid()

    # Tasks are served by the same workers, and those that were there import it themselves.
    wait_until(lambda: all(ray.get([f.remote() for _ in range(4)])), 30)
    assert ray.get(first.loaded_ahead.remote()) == [False]


def test_each_environment_has_its_own(fresh, modules):
    modules(oxt_mode="MODE = os.environ.get('OXT_MODE')")
    fresh()

    def mode():
        import oxt_mode

        return oxt_mode.MODE

    actors = importing("oxt_mode", then=mode)
    for name in ("a", "b"):
        chosen = actors.options(runtime_env={"env_vars": {"OXT_MODE": name}})
        assert ray.get(until_ahead(chosen).then.remote()) == name
    assert ray.get(until_ahead(actors).then.remote()) is None


UNFIT = {
    "thread": "import threading, time\n"
    "threading.Thread(target=time.sleep, args=[1000], daemon=True).start()",
    "socket": "import socket\nHELD = socket.socket()",
    "pipe": "HELD = os.pipe()",
    "written_file": "HELD = open(__file__ + '.log', 'w')",
    "process": "import subprocess\nHELD = subprocess.Popen(['sleep', '1000'])",
    "lock": "import threading\nLOCK = threading.Lock()\nLOCK.acquire()",
    "lock_of_a_file": "import fcntl\nHELD = open(__file__)\nfcntl.flock(HELD, fcntl.LOCK_SH)",
    "shared_memory": "import mmap\nHELD = mmap.mmap(-1, 4096)",
    "signal": "import signal\nsignal.signal(signal.SIGUSR2, lambda *_: None)",
    "directory": "os.chdir('/')",
    "print": "print('hello')",
    "entropy": "ID = os.urandom(8)",
    "generator": "import random\nRANDOM = random.Random()",
    "random_number": "import random\nID = random.random()",
    "numpy_generator": "import numpy\nRANDOM = numpy.random.default_rng()",
    "devices": "DEVICES = os.environ.get('CUDA_VISIBLE_DEVICES')",
    "session": "import oxiray\nIS_WORKER = oxiray.is_initialized()",
    "crash": "import signal\n"
    "if open('/proc/self/cmdline').read().startswith('ray::template'):\n"
    "    os.kill(os.getpid(), signal.SIGKILL)",
}


def test_what_is_not_fit_to_be_forked_with_is_left_to_workers(fresh, modules):
    sources = {f"oxt_unfit_{name}": source for name, source in UNFIT.items()}
    modules(oxt_before="", **sources, oxt_after="")
    fresh()
    actors = importing("oxt_before", *sources, "oxt_after")
    ahead = ray.get(until_ahead(actors).loaded_ahead.remote())
    assert dict(zip([*UNFIT, "after"], ahead[1:], strict=True)) == {
        **dict.fromkeys(UNFIT, False),
        "after": True,
    }
    assert ahead[0]


def test_random_numbers_are_each_workers_own(fresh, modules):
    modules(oxt_random="import random, numpy.random")
    fresh()

    def draw():
        import random

        import numpy

        return random.random(), numpy.random.rand()

    actors = importing("oxt_random", then=draw)
    warm = [until_ahead(actors) for _ in range(3)]
    for drawn in zip(*ray.get([actor.then.remote() for actor in warm]), strict=True):
        assert len(set(drawn)) == 3


def test_a_module_that_is_edited_is_loaded_again(fresh, modules):
    modules(oxt_edited="VALUE = 1")
    fresh()

    def value():
        import oxt_edited

        return oxt_edited.VALUE

    actors = importing("oxt_edited", then=value)
    assert ray.get(until_ahead(actors).then.remote()) == 1
    modules(oxt_edited="VALUE = 'another'")

    # Those that were forked before and have not begun anything, too.
    several = [actors.remote() for _ in range(4)]
    assert {*ray.get([actor.then.remote() for actor in several])} <= {"another"}
    assert ray.get(until_ahead(actors).then.remote()) == "another"


def test_exit_handlers_of_a_module_are_called_by_workers(fresh, modules, tmp_path):
    modules(
        oxt_at_exit=f"""
        import atexit
        @atexit.register
        def leave():
            open({str(tmp_path)!r} + f"/left-{{os.getpid()}}", "w").close()
        """
    )
    fresh()
    actors = importing("oxt_at_exit", then=os.getpid)
    actor = until_ahead(actors)
    pid = ray.get(actor.then.remote())
    actor.__ray_terminate__.remote()
    wait_until((tmp_path / f"left-{pid}").exists, 20)


def test_what_a_module_logs_is_shown_with_the_worker(driver, tmp_path):
    (tmp_path / "oxt_logging.py").write_text(
        WHERE + "import logging\nlogging.basicConfig(format='said %(message)s')\n"
    )
    shown = driver("""
        import os, time
        import oxiray as ray

        ray.init(num_cpus=1, logging_level="error")

        @ray.remote(num_cpus=0)
        class Speaker:
            def __init__(self):
                import oxt_logging
                self.ahead = oxt_logging.LOADED_BY != os.getpid()

            def speak(self):
                import logging
                if self.ahead:
                    logging.warning("by one that found it loaded")
                return self.ahead

        until = time.monotonic() + 50
        while not ray.get(Speaker.remote().speak.remote()):
            assert time.monotonic() < until
        """)
    shown = shown.stdout + shown.stderr
    line = next(line for line in shown.splitlines() if "said by one" in line)
    assert line.startswith("(Speaker pid="), line


def templates():
    """The processes that have loaded modules for workers."""
    found = processes_under(os.environ["OXIRAY_TMPDIR"]).items()
    return [pid for pid, command in found if command.startswith("ray::template of ")]


def test_workers_outlive_the_one_that_forked_them(fresh, modules):
    modules(oxt_outlives="")
    fresh()
    actors = importing("oxt_outlives", then=os.getpid)
    warm = until_ahead(actors)
    for pid in templates():
        os.kill(pid, 9)
    wait_until(lambda: not templates() or ray.get(warm.loaded_ahead.remote()) == [True])
    # Its end is known as that of any other.
    with pytest.raises(ray.exceptions.ActorDiedError, match="SIGKILL"):
        os.kill(ray.get(warm.then.remote()), 9)
        ray.get(warm.then.remote())
    until_ahead(actors)


def test_it_can_be_turned_off(driver, tmp_path):
    (tmp_path / "oxt_off.py").write_text(WHERE)
    shown = driver(
        """
        import os, time
        import oxiray as ray

        ray.init(num_cpus=1, logging_level="error")

        @ray.remote(max_calls=1)
        def f():
            import oxt_off
            from oxiray import _imported
            return _imported.socket, oxt_off.LOADED_BY == os.getpid()

        print({ray.get(f.remote()) for _ in range(3)})
        """,
        env={"OXIRAY_PRELOAD": "0"},
    )
    assert shown.stdout.strip() == "{(-1, True)}"


def test_their_memory_is_accounted_for(fresh, modules):
    modules(oxt_accounted="")
    fresh()
    until_ahead(importing("oxt_accounted"))
    oxiray = os.path.join(os.path.dirname(sys.executable), "oxiray")
    shown = subprocess.run([oxiray, "memory"], capture_output=True, text=True, check=True).stdout
    line = next(line for line in shown.splitlines() if line.strip().startswith("templates"))
    assert "2 processes" in line and "MiB" in line, shown


def test_a_job_finds_its_own_module_of_that_name(tmp_path):
    """A worker that joins a job with other places to look in forgets what those would hide."""
    for folder, value in (("node", 1), ("job", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "oxt_shadowed.py").write_text(f"VALUE = {value}\n")
    program = f"""
        import sys
        from oxiray import _imported, _worker
        sys.path.insert(0, {str(tmp_path / "node")!r})
        import json, oxt_shadowed
        _imported.note_template(["oxt_shadowed", "json"])
        _worker.join_job([{str(tmp_path / "node")!r}], "")
        assert sys.modules["oxt_shadowed"] is oxt_shadowed
        _worker.join_job([{str(tmp_path / "job")!r}], "")
        import oxt_shadowed
        assert oxt_shadowed.VALUE == 2 and sys.modules["json"] is json
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)
