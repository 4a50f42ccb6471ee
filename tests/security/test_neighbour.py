"""Another user of the machine, a real one: what they put where our sessions are is not used.

Each test has a `/tmp` of its own, by a mount that only its processes see, so that the folder is the
one that everybody's programs use. This needs to be root; otherwise the tests are skipped, which
with CI set is an error.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap

import oxiray
import pytest
from conftest import BASE, wait_until

PROGRAM = os.path.join(os.path.dirname(oxiray.__file__), "_bin", "oxiray")
NEIGHBOUR = 64321
NOTHING_RUNS = 3

PYTHON = {
    "OXIRAY_PYTHON": sys.executable,
    "OXIRAY_PYTHON_VERSION": f"{sys.version_info[0]}.{sys.version_info[1]}",
}

# Every command that looks at sessions, and those that start and stop.
COMMANDS = [
    ("status",),
    ("list", "tasks"),
    ("list", "sessions"),
    ("get", "tasks", "00"),
    ("summary", "tasks"),
    ("logs",),
    ("memory",),
    ("why", "f"),
    ("stack",),
    ("timeline", "-o", "/dev/null"),
    ("dashboard",),
    ("token",),
    ("stop",),
    ("start", "--head", "--port=0", "--node-ip-address=127.0.0.1"),
    ("start", "--address=127.0.0.1:1", "--token=oxiray-" + 64 * "0" + "66687aad"),
    ("logs", "--session", "last"),
]
PROGRAMS = {
    "init": "import oxiray as ray; ray.init()",
    "auto": "import oxiray as ray; ray.init(address='auto')",
    "by itself": "import oxiray as ray; ray.get(ray.remote(lambda: 5).remote())",
    "state": "from oxiray.util.state import list_tasks; list_tasks()",
    "cluster": "from oxiray.cluster_utils import Cluster; Cluster(initialize_head=True)",
}

pytestmark = pytest.mark.skipif(
    os.getuid() != 0 and not os.environ.get("CI"), reason="only root can be another user, too"
)

# Listens at a socket, and says so; then what it heard.
LISTEN = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
listener.listen(100)
print(os.getpid(), flush=True)
while True:
    connection, _ = listener.accept()
    heard = connection.recv(100)
    print("heard", len(heard), flush=True)
"""


class Street:
    """A machine's `/tmp`, of which we and the neighbour have the one in common."""

    def __init__(self):
        self.tmp = tempfile.mkdtemp(prefix="n-", dir=BASE)
        os.chmod(self.tmp, 0o1777)
        self.folder = f"{self.tmp}/oxiray-0"
        self.processes = []

    def start(self, *command, uid=0, **env):
        """Runs a program that sees this `/tmp`."""
        ours = ("OXIRAY_", "RAY_", "XDG_")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        script = f'mount --bind {self.tmp} /tmp && exec "$@"'
        change = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script, "sh", *change, *map(str, command)],
            env={**environment, **PYTHON, "OXIRAY_KEEP_SESSIONS": "0", **env},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def run(self, *command, **env):
        process = self.start(*command, **env)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def oxiray(self, *arguments, **env):
        return self.run(PROGRAM, *arguments, **env)

    def python(self, source, **env):
        return self.run(sys.executable, "-c", textwrap.dedent(source), **env)

    def listen(self, path, uid):
        """A process of a user that listens at a path."""
        process = self.start(sys.executable, "-c", LISTEN, path, uid=uid)
        process.stdout.readline()
        return process

    def end(self):
        for process in self.processes:
            process.kill()
            process.communicate()
        # What a killed program had started ends a moment later.
        wait_until(lambda: shutil.rmtree(self.tmp, True) or not os.path.exists(self.tmp))


@pytest.fixture
def street():
    if os.getuid() != 0:
        pytest.fail("with CI set these tests must be run as root")
    street = Street()
    yield street
    street.end()


@pytest.fixture
def precious(street):
    """A directory and a process of ours, which nobody may touch."""
    path = f"{street.tmp}/precious"
    os.makedirs(f"{path}/logs")
    with open(f"{path}/logs/file", "w") as file:
        file.write("text")
    process = subprocess.Popen(["sleep", "1000"])
    yield path, process
    assert os.path.exists(f"{path}/logs/file")
    assert process.poll() is None, "it was killed"
    process.kill()
    process.wait()


def since(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[19]


def record(street, precious, session):
    """The file of a started node that is none."""
    path, process = precious
    pid = f"{process.pid} {since(process.pid)}"
    return (
        f"address=127.0.0.1:6379\nnode_address=127.0.0.1:1\nnode_id=00\nsession_dir={session}\n"
        f"node_pid={pid}\ncontrol_pid={pid}\nis_head=1\nkeyring={path}/keyring\n"
        f"store={path}\nhome={path}\ncluster=../../precious\nowns_store=1\n"
    )


def give_away(path, uid=NEIGHBOUR):
    for folder, folders, files in os.walk(path):
        for name in [folder, *(f"{folder}/{name}" for name in folders + files)]:
            os.chown(name, uid, uid, follow_symlinks=False)


def plant(street, precious, session=None):
    """The neighbour makes our folder before we do, with a started node and its socket in it."""
    os.makedirs(f"{street.folder}/started")
    os.makedirs(f"{street.folder}/session_1/logs")
    for path in (street.folder, f"{street.folder}/session_1"):
        os.chmod(path, 0o777)
    with open(f"{street.folder}/started/session_1", "w") as file:
        file.write(record(street, precious, session or "/tmp/oxiray-0/session_1"))
    give_away(street.folder)
    return street.listen("/tmp/oxiray-0/session_1/node.sock", NEIGHBOUR)


def contents(path):
    """Everything in a directory: names, owners, modes and texts."""
    found = {}
    for folder, folders, files in os.walk(path):
        for name in folders + files:
            where = f"{folder}/{name}"
            about = os.lstat(where)
            text = ""
            if stat.S_ISREG(about.st_mode):
                with open(where) as file:
                    text = file.read()
            found[where] = (about.st_uid, about.st_mode, text)
    return found


def heard(listener):
    """What a process that listens has heard."""
    listener.send_signal(signal.SIGKILL)
    return listener.stdout.read()


def refusal(done):
    assert done.returncode == 1, done
    assert f"belongs to user {NEIGHBOUR}, not to you" in done.stderr, done
    assert "OXIRAY_TMPDIR" in done.stderr, done


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_folder_that_the_neighbour_made_is_refused_by_every_command(street, precious, command):
    listener = plant(street, precious)
    before = contents(street.folder)
    done = street.oxiray(*command)
    refusal(done)
    assert done.stderr.count("\n") == 1 and done.stdout == "", done
    assert contents(street.folder) == before and heard(listener) == ""


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_and_by_every_program(street, precious, program):
    listener = plant(street, precious, session=precious[0])
    before = contents(street.folder)
    refusal(street.python(program))
    assert contents(street.folder) == before and heard(listener) == ""


@pytest.mark.parametrize("what", ["link", "file", "their link to ours", "not to be entered"])
def test_something_else_in_the_place_of_the_folder(street, precious, what):
    if what == "file":
        with open(street.folder, "w"):
            pass
    elif what == "not to be entered":
        os.mkdir(street.folder, 0o000)
    else:
        target = f"{street.tmp}/theirs"
        os.makedirs(f"{target}/session_1/logs", 0o700)
        if what == "link":
            give_away(target)
        os.symlink("/tmp/theirs", street.folder)
    os.chown(street.folder, NEIGHBOUR, NEIGHBOUR, follow_symlinks=False)
    before = contents(street.tmp)
    for done in (
        street.python(PROGRAMS["init"]),
        street.oxiray("status"),
        street.oxiray("stop"),
        street.oxiray(*COMMANDS[-3]),
    ):
        refusal(done)
    assert contents(street.tmp) == before


def test_what_the_neighbour_put_into_our_open_folder_is_not_used(street, precious):
    """The folder is ours, but it was open to all for a while."""
    listener = plant(street, precious)
    os.chown(street.folder, 0, 0)
    before = contents(f"{street.folder}/session_1")
    assert street.oxiray("status").returncode == NOTHING_RUNS
    assert stat.S_IMODE(os.stat(street.folder).st_mode) == 0o700
    assert "Nothing to stop" in street.oxiray("stop").stdout
    done = street.python(
        """
        import oxiray as ray
        context = ray.init(logging_level="error")
        assert context["address"] == "local", context
        assert ray.get(ray.remote(lambda: 5).remote()) == 5
        """
    )
    assert done.returncode == 0, done
    # It cannot be put right without touching what is not ours: that is said.
    said = street.oxiray(*COMMANDS[-3]).stderr
    assert "started belongs to user" in said and "Have it removed" in said, said
    assert contents(f"{street.folder}/session_1") == before and heard(listener) == ""


def test_a_session_is_ours_by_who_listens_at_its_socket(street):
    """Whatever way the neighbour's socket came into a session of ours."""
    os.makedirs(f"{street.folder}/session_1/logs", 0o700)
    os.chmod(street.folder, 0o700)
    os.chmod(f"{street.folder}/session_1", 0o700)
    os.mkdir(f"{street.tmp}/theirs")
    os.chown(f"{street.tmp}/theirs", NEIGHBOUR, NEIGHBOUR)
    listener = street.listen("/tmp/theirs/node.sock", NEIGHBOUR)
    os.rename(f"{street.tmp}/theirs/node.sock", f"{street.folder}/session_1/node.sock")
    # Somebody of ours lives in it, so that it is not taken for one that ended.
    lock = open(f"{street.folder}/session_1/lock", "w")
    fcntl.flock(lock, fcntl.LOCK_SH)
    assert street.oxiray("status").returncode == NOTHING_RUNS
    for command in (("list", "tasks"), ("logs",), ("memory",), ("why", "x")):
        done = street.oxiray(*command, "--address=/tmp/oxiray-0/session_1")
        assert done.returncode == 1 and f"user {NEIGHBOUR} listens" in done.stderr, done
    started = record(street, ("/nowhere", FakeProcess()), "/tmp/oxiray-0/session_1")
    os.mkdir(f"{street.folder}/started", 0o700)
    with open(f"{street.folder}/started/session_1", "w") as file:
        file.write(started)
    assert "Nothing to stop" in street.oxiray("stop").stdout
    done = street.python("import oxiray as ray; print(ray.init()['address'])")
    assert done.stdout == "local\n", done
    lock.close()
    assert set(heard(listener).split("\n")) <= {"heard 0", ""}, "nothing was said to them"


class FakeProcess:
    pid = 1


def test_a_file_of_ours_kills_and_removes_nothing_by_what_it_says(street, precious):
    """Though it is ours, and true in each word."""
    path, process = precious
    os.makedirs(f"{street.folder}/started", 0o700)
    os.chmod(street.folder, 0o700)
    os.chmod(path, 0o700)
    texts = {
        "session_1": record(street, precious, "/tmp/precious"),
        "session_2": record(street, precious, "/tmp/oxiray-0/session_2/../../precious"),
        "precious": record(street, precious, "/tmp/precious"),
        "session_3": "session_dir=/tmp/precious\n",
    }
    for command in (("status",), ("stop",), ("stop", "--force"), ("token",), ("dashboard",)):
        for name, text in texts.items():
            os.makedirs(f"{street.folder}/started", 0o700, exist_ok=True)
            with open(f"{street.folder}/started/{name}", "w") as file:
                file.write(text)
        street.oxiray(*command)
        assert os.path.exists(f"{path}/logs/file") and process.poll() is None, command
    done = street.python("import oxiray as ray; print(ray.init()['address'])")
    assert done.stdout == "local\n", done


def test_the_folder_is_where_this_user_alone_can_be(street):
    """XDG_RUNTIME_DIR, where it is ours, else `/tmp`."""
    runtime = f"{street.tmp}/run"
    os.mkdir(runtime, 0o700)
    show = "import oxiray as ray; print(ray.init(logging_level='error')['session_dir'])"
    inside = {"XDG_RUNTIME_DIR": "/tmp/run"}
    assert street.python(show, **inside).stdout.startswith("/tmp/run/oxiray/session_")
    assert stat.S_IMODE(os.stat(f"{runtime}/oxiray").st_mode) == 0o700
    assert "/tmp/run/oxiray" in street.oxiray("status", **inside).stderr
    for spoil in (lambda: os.chmod(runtime, 0o755), lambda: os.chown(runtime, NEIGHBOUR, 0)):
        spoil()
        assert street.python(show, **inside).stdout.startswith("/tmp/oxiray-0/session_")
        os.chown(runtime, 0, 0)
        os.chmod(runtime, 0o700)


def test_a_directory_that_others_may_write_to_is_not_made_private_for_them(street):
    """Who names `/tmp` itself does not lose it."""
    with open(f"{street.tmp}/file", "w"):
        pass
    for done in (
        street.oxiray("status", OXIRAY_TMPDIR="/tmp"),
        street.python(PROGRAMS["init"], OXIRAY_TMPDIR="/tmp"),
    ):
        assert done.returncode == 1 and "others may use /tmp (mode 1777)" in done.stderr, done
    assert stat.S_IMODE(os.stat(street.tmp).st_mode) == 0o1777
    # As the parent of one session it will do: nobody can replace what is in there.
    done = street.python(
        "import oxiray as ray; print(ray.init(_temp_dir='/tmp', logging_level='error')"
        "['session_dir']); assert ray.get(ray.remote(lambda: 5).remote()) == 5"
    )
    assert done.stdout.startswith("/tmp/session_") and done.returncode == 0, done
    os.mkdir(f"{street.tmp}/theirs")
    os.chown(f"{street.tmp}/theirs", NEIGHBOUR, NEIGHBOUR)
    done = street.python("import oxiray as ray; ray.init(_temp_dir='/tmp/theirs')")
    assert "others could put something else" in done.stderr, done


MODES = """
import os
import numpy as np
import oxiray as ray

os.umask(0)
ray.init(
    num_cpus=2, object_store_memory=80 * 2**20, logging_level="error", log_to_driver=False
)

@ray.remote
def speak(i):
    print("said", i, flush=True)
    with open(f"/tmp/by_a_task_{i}", "w"):
        pass
    return i

@ray.remote
def fail():
    raise ValueError("a text in the record")

ray.get([speak.remote(i) for i in range(20)])
refs = [ray.put(np.full(2**20, i)) for i in range(20)]
try:
    ray.get(fail.remote())
except ValueError:
    pass
print(os.getpid(), flush=True)
input()
"""


def is_private(path):
    mode = os.lstat(path).st_mode
    return stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600)


def everything(path):
    return [
        f"{folder}/{name}" for folder, folders, files in os.walk(path) for name in folders + files
    ]


def test_every_file_is_for_its_owner_alone_umask_or_not(street):
    process = street.start(sys.executable, "-c", MODES)
    assert process.stdout.readline(), process.stderr.read()
    there = everything(street.folder)
    (session,) = [name for name in os.listdir(street.folder) if name.startswith("session_")]
    names = {os.path.relpath(path, f"{street.folder}/{session}").split("/")[0] for path in there}
    assert {"node.sock", "logs", "events", "spill", "lock"} <= names, there
    assert [path for path in there if not is_private(path)] == []
    # What tasks make is theirs: the umask is as their program's.
    assert stat.S_IMODE(os.stat(f"{street.tmp}/by_a_task_0").st_mode) == 0o666
    process.communicate("\n", timeout=30)


def test_and_so_are_those_of_a_cluster(street):
    script = 'umask 0; exec "$@"'
    head = (PROGRAM, *COMMANDS[-3], "--num-cpus=1")
    done = street.run("sh", "-c", script, "sh", *head)
    assert done.returncode == 0, done
    try:
        there = everything(street.folder)
        assert {"keyring", "control.sock", "control.log"} <= set(map(os.path.basename, there))
        assert [path for path in there if not is_private(path)] == []
    finally:
        assert "Stopped 1 node and 1 control service" in street.oxiray("stop").stdout
    assert os.listdir(street.folder) == []


def test_memory_files_are_private_and_keep_their_length(fresh):
    fresh()
    seals = 0x1 | 0x2 | 0x4  # no more seals, no shrinking, no growing
    found = set()
    for name in os.listdir("/proc/self/map_files"):
        path = f"/proc/self/map_files/{name}"
        if not os.readlink(path).startswith("/memfd:oxiray"):
            continue
        found.add(os.readlink(path).split(":")[1].split(" ")[0])
        descriptor = os.open(path, os.O_RDWR)
        try:
            assert stat.S_IMODE(os.stat(descriptor).st_mode) == 0o600
            assert fcntl.fcntl(descriptor, 1034) & seals == seals, path
            with pytest.raises(OSError):
                os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)
    assert {"oxiray-arena", "oxiray-bells", "oxiray-table"} <= found


def test_two_containers_that_share_the_folder_leave_each_other_alone(street):
    """Each has its own numbers of processes, by which nobody can tell who lives."""

    def container(source):
        command = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable)
        return street.start(*command, "-u", "-c", textwrap.dedent(source))

    first = container(
        """
        import os
        import numpy as np
        import oxiray as ray
        directory = ray.init(
            num_cpus=1, object_store_memory=80 * 2**20, logging_level="error"
        )["session_dir"]
        refs = [ray.put(np.full(2**20, i)) for i in range(20)]
        print(directory, flush=True)
        input()
        assert [ray.get(ref)[0] for ref in refs] == list(range(20))
        assert ray.get(ray.remote(lambda: 5).remote()) == 5
        assert sorted(os.listdir(directory)) == sorted(set(os.listdir(directory)) | {
            "node.sock", "logs", "events", "spill", "lock"})
        """
    )
    directory = first.stdout.readline().strip()
    assert directory, first.stderr.read()
    before = sorted(everything(street.tmp + directory.removeprefix("/tmp")))
    second = container(
        f"""
        import subprocess
        import oxiray as ray
        for _ in range(2):
            context = ray.init(num_cpus=1, logging_level="error")
            assert context["address"] == "local"
            assert ray.get(ray.remote(lambda: 5).remote()) == 5
            ray.shutdown()
        for command in ("status", "stop", "list sessions"):
            subprocess.run([{PROGRAM!r}, *command.split()], capture_output=True)
        """
    )
    _, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    after = everything(street.tmp + directory.removeprefix("/tmp"))
    assert set(before) <= set(after), set(before) - set(after)
    _, err = first.communicate("\n", timeout=60)
    assert first.returncode == 0, err
    assert os.listdir(street.folder) == []


def test_the_node_service_hears_nobody_else(street):
    """Though nothing but the mode of two directories keeps them out."""
    process = street.start(
        sys.executable,
        "-u",
        "-c",
        "import oxiray as ray; print(ray.init(logging_level='error')['session_dir']); input()",
    )
    directory = street.tmp + process.stdout.readline().strip().removeprefix("/tmp")
    for path in (street.folder, directory):
        os.chmod(path, 0o755)
    os.chmod(f"{directory}/node.sock", 0o777)
    said = street.start(
        sys.executable,
        "-c",
        "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
        "s.connect(sys.argv[1]); print(s.recv(10))",
        f"{directory.replace(street.tmp, '/tmp')}/node.sock",
        uid=NEIGHBOUR,
    ).communicate(timeout=30)
    assert said[0] == "b''\n", said
    process.communicate("\n", timeout=30)
