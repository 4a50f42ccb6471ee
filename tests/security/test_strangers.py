"""Who has no token gets nowhere: not into the cluster, not into its memory, not into its way.

Each attack comes from an address of its own, 127.0.1.x, so that the lines about it can be counted.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pickle
import random
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import threading
import time

import pytest
from conftest import is_alive, processes_under, wait_until
from machines import Machine, finish

MB = 2**20
# What all attacks together may cost a service, and how long a task may take meanwhile.
MOST_GROWTH = 10 * MB
MOST_LATENCY_S = 2.0
# A connection may be unknown for so long, and so many of them at the same time (crates/net).
PATIENCE_S = 5
STRANGERS = 64
GREETING = b"oxiray/1"
HEAD = ("--num-cpus=2", "--num-gpus=0", f"--object-store-memory={100 * MB}")

# Runs tasks over the network until told to stop, and prints how long the slowest took.
PULSE = """
import json, select, sys, time
import oxiray as ray

ray.init(address="auto", logging_level="error")
beat = ray.remote(resources={"other": 1}, num_cpus=0)(lambda i: i)
ray.get([beat.remote(i) for i in range(100)], timeout=30)
print("there", flush=True)
count, slowest = 0, 0.0
while not select.select([sys.stdin], [], [], 0.01)[0]:
    began = time.monotonic()
    assert ray.get(beat.remote(count), timeout=30) == count
    count, slowest = count + 1, max(slowest, time.monotonic() - began)
print(json.dumps([count, slowest]))
"""


class Target:
    """A cluster of two nodes, and what it is measured by."""

    def __init__(self, *options):
        self.head, self.other = Machine(), Machine()
        self.head.start_head(*HEAD, *options)
        self.other.join(self.head, "--num-cpus=1", '--resources={"other": 1}', *options)
        record = self.head.record()
        self.ports = {
            "control": port_of(record["address"]),
            "node": port_of(record["node_address"]),
        }
        self.pids = {"control": self.head.pid("control_pid"), "node": self.head.pid("node_pid")}

    def memory(self):
        """Of the services' own: what they share with workers is objects."""
        return {name: private_memory(pid) for name, pid in self.pids.items()}

    def refusals(self, source):
        """Lines about an address, by log file."""
        found = {}
        pattern = re.compile(rf"refused a connection.*\b{re.escape(source)}\b")
        for path in files_under(self.head.base):
            if path.endswith((".log", ".err", ".out")):
                with open(path, errors="replace") as file:
                    count = sum(bool(pattern.search(line)) for line in file)
                if count:
                    found[path] = count
        return found

    def end(self):
        try:
            self.other.end()
        finally:
            self.head.end()


def files_under(folder):
    """The paths of all regular files."""
    for inner, _, names in os.walk(folder):
        for path in (os.path.join(inner, name) for name in names):
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def port_of(address):
    return int(address.rpartition(":")[2])


def private_memory(pid):
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["RssAnon"].split()[0]) * 1024


@pytest.fixture(scope="module")
def target():
    target = Target()
    pulse = target.head.start_program(PULSE)
    try:
        assert pulse.stdout.readline() == "there\n", pulse.communicate()
        before = target.memory()
        yield target
        # Through all of it.
        growth = {name: after - before[name] for name, after in target.memory().items()}
        print(file=pulse.stdin, flush=True)
        count, slowest = json.loads(finish(pulse))
        print(f"memory grew by {growth}; {count} tasks, the slowest took {slowest:.3f} s")
        assert all(more < MOST_GROWTH for more in growth.values()), growth
        assert count > 0 and slowest < MOST_LATENCY_S
    finally:
        pulse.kill()
        pulse.wait()
        target.end()


@pytest.fixture(scope="module")
def exposed():
    """A cluster without protection."""
    target = Target("--insecure")
    yield target
    target.end()


@pytest.fixture(params=["control", "node"])
def port(request):
    return request.param


sources = (f"127.0.1.{number}" for number in itertools.count(1))


@pytest.fixture
def stranger(target, port):
    """Connects from an address of its own; afterwards nothing has become of it."""
    stranger = Stranger(target, port)
    before = target.memory()
    yield stranger
    stranger.close()
    # Known members come and go meanwhile.
    assert target.head("status").stdout.count("\nNode ") == 2
    assert target.memory()[port] - before[port] < MOST_GROWTH
    lines = wait_until(lambda: target.refusals(stranger.source), message="it was logged")
    assert list(lines.values()) == [1], lines


class Stranger:
    def __init__(self, target, port):
        self.source = next(sources)
        self.address = ("127.0.0.1", target.ports[port])
        self.sockets = []

    def connect(self):
        connection = socket.create_connection(self.address, 10, (self.source, 0))
        self.sockets.append(connection)
        return connection

    def attempt(self, data):
        """What comes back, until the other side ends it."""
        with self.connect() as connection:
            return converse(connection, data)

    def close(self):
        for connection in self.sockets:
            connection.close()


def converse(connection, data):
    connection.settimeout(2 * PATIENCE_S)
    answer = b""
    try:
        connection.sendall(data)
        while piece := connection.recv(4096):
            answer += piece
    except (ConnectionError, ssl.SSLError):
        pass  # as good as an end; a timeout is not
    return answer


def is_alert(answer):
    """Whether an answer is nothing, or TLS's word that it is over."""
    return answer == b"" or (answer[0] == 0x15 and len(answer) == 7)


def tls(certificate=None, alpn="oxiray/1"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols([alpn])
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def shake_hands(stranger, context, data=b"\x04\x00\x00\x00\x08\x01\x10\x01"):
    """Why it did not work; what comes back must be nothing."""
    connection = stranger.connect()
    connection.settimeout(2 * PATIENCE_S)
    try:
        with context.wrap_socket(connection, server_hostname="oxiray.cluster") as wrapped:
            # With TLS 1.3 the client is done first, and may believe that it is in.
            wrapped.sendall(data)
            assert wrapped.recv(4096) == b""
        return "closed"
    except (ssl.SSLError, ConnectionError) as error:
        return str(error)


def openssl(*arguments, **options):
    if not shutil.which("openssl"):
        pytest.skip("there is no `openssl` to make certificates with")
    done = subprocess.run(
        ["openssl", *map(str, arguments)], capture_output=True, timeout=30, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def authority(folder, name):
    """The files of a certificate that signs itself, and its key."""
    files = (folder / "ca.crt", folder / "ca.key")
    openssl(
        *("req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "30", "-subj", f"/CN={name}"),
        *("-addext", "subjectAltName=DNS:oxiray.cluster", "-out", files[0], "-keyout", files[1]),
    )
    return files


class TestWhoHasNoToken:
    def test_no_certificate(self, stranger):
        why = shake_hands(stranger, tls())
        assert "certificate required" in why.lower().replace("_", " "), why

    def test_another_protocol(self, stranger):
        for alpn in ("h2", None):
            shake_hands(stranger, tls(alpn=alpn))

    def test_an_old_version_of_tls(self, stranger):
        context = tls()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert "version" in shake_hands(stranger, context).lower()

    def test_a_certificate_of_its_own(self, stranger, tmp_path):
        why = shake_hands(stranger, tls(authority(tmp_path, "oxiray node")))
        assert "closed" in why or "alert" in why or "reset" in why, why

    def test_an_authority_of_the_same_name(self, stranger, tmp_path):
        """The names in the certificates are no secret."""
        with tls().wrap_socket(stranger.connect()) as wrapped:
            theirs = wrapped.getpeercert(binary_form=True)
        issuer = openssl("x509", "-inform", "der", "-noout", "-issuer", input=theirs).decode()
        name = re.search(r"CN ?= ?(.*)", issuer)[1]
        assert name.startswith("oxiray cluster ")
        ca, ca_key = authority(tmp_path, name)
        leaf, key = tmp_path / "leaf.crt", tmp_path / "leaf.key"
        openssl(
            *("req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "30"),
            *("-subj", "/CN=oxiray node", "-addext", "subjectAltName=DNS:oxiray.cluster"),
            *("-addext", "basicConstraints=critical,CA:false"),
            *("-CA", ca, "-CAkey", ca_key, "-out", leaf, "-keyout", key),
        )
        leaf.write_bytes(leaf.read_bytes() + ca.read_bytes())
        why = shake_hands(stranger, tls((leaf, key)))
        assert "closed" in why or "alert" in why or "reset" in why, why

    def test_http(self, stranger):
        answer = stranger.attempt(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert is_alert(answer), answer

    def test_random_bytes(self, stranger):
        dice = random.Random(7)
        for length in (1, 5, 100, 10_000, 1_000_000):
            # Not the start of a handshake by chance, which would be waited for.
            data = b"\xff" + dice.randbytes(length)
            assert is_alert(stranger.attempt(data if length > 4 else 8 * data))

    def test_lengths_that_are_lies(self, stranger):
        huge_record = b"\x16\x03\x01\xff\xff" + bytes(65535)
        # A greeting of 16 MB, in records of the usual size.
        piece = b"\x16\x03\x01\x40\x00"
        huge_handshake = piece + b"\x01\xff\xff\xff" + bytes(0x4000 - 4)
        huge_handshake += (piece + bytes(0x4000)) * 1000
        plain_frame = GREETING + b"\xff\xff\xff\xff" + bytes(1000)
        for data in (huge_record, huge_handshake, plain_frame):
            assert is_alert(stranger.attempt(data))

    def test_nothing_is_unpickled(self, stranger, tmp_path):
        bomb = make_bomb(tmp_path / "exploded")
        frame = len(bomb).to_bytes(4, "little") + bomb
        for data in (bomb, frame, GREETING + frame):
            # A stranger's bytes may look like a record that is not complete.
            stranger.connect().sendall(data)
        shake_hands(stranger, tls(), frame)
        assert not (tmp_path / "exploded").exists()

    def test_the_same_source_again_and_again(self, stranger):
        """One line in the log: the fixture looks."""
        for _ in range(200):
            stranger.attempt(b"let me in, please")


def make_bomb(path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(path), "w"))

    return pickle.dumps(Bomb())


@pytest.mark.slow
class TestWhoTakesTime:
    def test_a_thousand_idle_connections(self, target, stranger):
        connections = [stranger.connect() for _ in range(1000)]

        def open_ones():
            return sum(is_open(connection) for connection in connections)

        wait_until(lambda: open_ones() <= STRANGERS, message="the oldest have to go")
        # Whoever has the token gets in, past them.
        began = time.monotonic()
        target.head("status")
        assert time.monotonic() - began < MOST_LATENCY_S
        wait_until(lambda: open_ones() == 0, PATIENCE_S + 5, "nobody stays")

    def test_one_byte_a_second(self, stranger):
        """However it goes on talking, it has to be done after a while."""
        connections = [stranger.connect() for _ in range(20)]
        began = time.monotonic()
        # The start of a true one.
        hello = iter(client_hello())
        while any(is_open(connection) for connection in connections):
            assert time.monotonic() - began < PATIENCE_S + 5, "it may go on"
            byte = bytes([next(hello)])
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.send(byte)
            time.sleep(1)
        assert time.monotonic() - began > PATIENCE_S - 1


def is_open(connection):
    """Whether the other side has not ended it."""
    connection.setblocking(False)
    try:
        return connection.recv(4096) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def client_hello():
    outgoing = ssl.MemoryBIO()
    client = tls().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="oxiray.cluster")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


class TestWithoutProtection:
    """Whoever reaches the port is a member; but there are bounds to what it can do by mistake."""

    def test_what_is_no_greeting(self, exposed, port):
        for data in (b"GET / HTTP/1.1\r\n\r\n", client_hello(), b"\0" * 100):
            with socket.create_connection(("127.0.0.1", exposed.ports[port]), 10) as connection:
                answer = converse(connection, data)
            assert answer in (b"", GREETING), answer

    def test_a_frame_of_four_gigabytes(self, exposed, port):
        before = exposed.memory()[port]
        for length in (b"\xff\xff\xff\xff", (16 * MB + 1).to_bytes(4, "little")):
            with socket.create_connection(("127.0.0.1", exposed.ports[port]), 10) as connection:
                began = time.monotonic()
                answer = converse(connection, GREETING + length + bytes(100_000))
                assert time.monotonic() - began < PATIENCE_S - 1, "not refused at once"
                assert answer in (b"", GREETING), answer
        assert exposed.memory()[port] - before < MB
        assert exposed.head("status").stdout.count("\nNode ") == 2

    def test_a_long_frame_that_never_comes(self, exposed, port):
        before = exposed.memory()[port]
        connections = [
            socket.create_connection(("127.0.0.1", exposed.ports[port]), 10) for _ in range(50)
        ]
        try:
            for connection in connections:
                connection.sendall(GREETING + (16 * MB).to_bytes(4, "little") + b"x")
            assert exposed.head("status").stdout.count("\nNode ") == 2
            assert exposed.memory()[port] - before < MOST_GROWTH
        finally:
            for connection in connections:
                connection.close()

    def test_nothing_is_unpickled(self, exposed, port, tmp_path):
        bomb = make_bomb(tmp_path / "exploded")
        frame = len(bomb).to_bytes(4, "little") + bomb
        with socket.create_connection(("127.0.0.1", exposed.ports[port]), 10) as connection:
            converse(connection, GREETING + frame)
        assert not (tmp_path / "exploded").exists()
        assert exposed.head("status").stdout.count("\nNode ") == 2

    def test_protection_cannot_be_mixed(self, exposed, target):
        newcomer = Machine()
        try:
            token = target.head("token").stdout.strip()
            address = f"--address={exposed.head.address}"
            said = newcomer("start", address, code=1, OXIRAY_TOKEN=token).stderr
            assert "--insecure" in said
            said = newcomer(
                "start", f"--address={target.head.address}", "--insecure", code=1
            ).stderr
            assert "--insecure" in said or "token" in said
            assert not processes_under(newcomer.base)
        finally:
            newcomer.end()


def test_a_node_of_another_cluster(target):
    """It has a token, and it is the wrong one."""
    stray, newcomer = Machine(), Machine()
    try:
        stray.start_head(*HEAD)
        token = stray("token").stdout.strip()
        assert token != target.head("token").stdout.strip()
        said = newcomer(
            "start", f"--address={target.head.address}", code=1, OXIRAY_TOKEN=token
        ).stderr
        assert "token" in said and "oxiray token" in said and target.head.address in said
        assert not processes_under(newcomer.base)
        # And the other way round.
        said = newcomer(
            "start",
            f"--address={stray.address}",
            code=1,
            OXIRAY_TOKEN=target.head("token").stdout.strip(),
        ).stderr
        assert "token" in said
        assert target.head("status").stdout.count("\nNode ") == 2
        assert stray("status").stdout.count("\nNode ") == 1
    finally:
        newcomer.end()
        stray.end()


# Prints the sockets that processes of this run listen at: of the network, and abstract ones, which
# no file mode protects.
SCAN = """
import json, os, re

def scan(pids):
    inodes = set()
    for pid in pids:
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                found = re.match(r"socket:.(\\d+)", os.readlink(f"/proc/{pid}/fd/{fd}"))
                inodes.update(found.groups() if found else ())
        except OSError:
            pass
    listening = []
    for kind, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        with open(f"/proc/net/{kind}") as file:
            for line in list(file)[1:]:
                fields = line.split()
                if fields[3] == state and fields[9] in inodes:
                    listening.append([kind, *fields[1].split(":")])
    with open("/proc/net/unix") as file:
        for line in list(file)[1:]:
            fields = line.split()
            if fields[6] in inodes and len(fields) > 7 and fields[7].startswith("@"):
                listening.append(["unix", fields[7], ""])
    return listening
"""


def test_a_session_of_its_own_listens_nowhere(driver):
    done = driver(
        SCAN
        + """
import oxiray as ray

ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
pid = ray.remote(lambda: os.getpid())
assert ray.get(pid.remote()) != os.getpid()
mark = f"OXIRAY_TMPDIR={os.environ['OXIRAY_TMPDIR']}".encode()
pids = []
for name in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            pids += [name] if mark in file.read().split(b"\\0") else []
    except OSError:
        pass
assert len(pids) >= 4, pids  # this one, the node service, the zygote, workers
print(json.dumps(scan(pids)))
"""
    )
    assert json.loads(done.stdout) == []


def test_a_cluster_listens_at_its_ports(target):
    """Those of the control service, the node service and, on loopback, the dashboard."""
    names = {}
    exec(SCAN, names)
    found = names["scan"](processes_under(target.head.base))
    assert all((kind, host) == ("tcp", "0100007F") for kind, host, _ in found), found
    with open(f"{target.head.record()['session_dir']}/dashboard.address") as file:
        dashboard = port_of(file.read())
    expected = sorted([*target.ports.values(), dashboard])
    assert sorted(int(port, 16) for _, _, port in found) == expected


def test_files_are_for_their_owner_alone(target):
    def mode(path):
        return stat.S_IMODE(os.lstat(path).st_mode)

    for machine in (target.head, target.other):
        session = machine.record()["session_dir"]
        clusters = f"{machine.base}/clusters"
        homes = [f"{clusters}/{name}" for name in os.listdir(clusters)]
        # Everything is in one of these.
        folders = [f"{machine.base}/{name}" for name in os.listdir(machine.base)]
        assert {session, clusters, f"{machine.base}/started"} <= set(folders)
        for folder in folders + homes:
            assert mode(folder) == 0o700, folder
        secret = [path for path in files_under(machine.base) if is_secret(path)]
        assert {os.path.basename(path) for path in secret} >= {"keyring", os.path.basename(session)}
        for path in secret:
            assert mode(path) == 0o600, path


def is_secret(path):
    folder, name = os.path.split(path)
    is_token = name in ("keyring", "dashboard.token")
    return is_token or folder.endswith("/started") or "config" in name


def shown_in(machine, secret):
    """The files, other than keyrings, that have the token."""
    found = []
    for path in files_under(machine.base):
        if not path.endswith("/keyring"):
            with open(path, "rb") as file:
                found += [path] if secret in file.read() else []
    return found


def test_the_token_is_nowhere_to_be_seen(target):
    """Not in a command line, not in a log, not in the environment of what was started."""
    token = target.head("token").stdout.strip()
    secret = token.removeprefix("oxiray-").encode()
    assert len(secret) > 32
    newcomer, by_file = Machine(), Machine()
    commands, stop = set(), threading.Event()

    def watch():
        while not stop.is_set():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                    commands.add(file.read())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        newcomer.join(target.head, "--num-cpus=1")
        path = os.path.join(by_file.base, "token")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(token)
        by_file("start", f"--address={target.head.address}", f"--token-file={path}", "--num-cpus=1")
        os.unlink(path)
        machines = (target.head, target.other, newcomer, by_file)
        # A worker's last chance to write about it.
        target.head.run_program(
            "import oxiray as ray; ray.init(address='auto')\n"
            "print(len(ray.get([ray.remote(lambda: 1).remote() for _ in range(50)])))"
        )
        assert not [path for machine in machines for path in shown_in(machine, secret)]
        # Nor do tasks inherit it.
        for pid in processes_under(newcomer.base):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
                assert secret not in file.read()
    finally:
        stop.set()
        watcher.join()
        newcomer.end()
        by_file.end()
    assert any(b"oxirayd" in command for command in commands)
    assert not [command for command in commands if secret in command]


def test_the_token_is_changed(tmp_path):
    """Nodes that run go on. The token before is good until the token is changed again: one change
    locks nobody out who has not heard of it yet, two do."""
    head, running, newcomer = Machine(), Machine(), Machine()
    try:
        head.start_head(*HEAD)
        running.join(head, "--num-cpus=1", '--resources={"other": 1}')
        node_id = running.node_id
        tokens = [head("token").stdout.strip()]
        program = head.start_program(PULSE)
        assert program.stdout.readline() == "there\n", program.communicate()
        for _ in range(2):
            tokens.append(head("token", "--rotate").stdout.strip())
        assert len(set(tokens)) == 3
        # A task that needs a new connection: bytes of an object.
        head.run_program(
            "import oxiray as ray; ray.init(address='auto', logging_level='error')\n"
            "make = ray.remote(resources={'other': 1})(lambda: bytes(10_000_000))\n"
            "assert ray.get(make.remote(), timeout=30) == bytes(10_000_000)"
        )
        print(file=program.stdin, flush=True)
        count, slowest = json.loads(finish(program))
        assert count > 0 and slowest < MOST_LATENCY_S
        assert is_alive(running.pid()) and running.node_id == node_id
        # A node that comes with the first is refused, with the second or third it is taken.
        address = f"--address={head.address}"
        said = newcomer("start", address, code=1, OXIRAY_TOKEN=tokens[0]).stderr
        assert "token" in said
        for token in tokens[1:]:
            newcomer("start", address, "--num-cpus=1", OXIRAY_TOKEN=token)
            assert head("status").stdout.partition("Left lately")[0].count("\nNode ") == 3
            newcomer("stop")
        # A node that runs knows the new one: killed, it needs none to be started again. One that
        # was stopped has forgotten it.
        kill(running)
        running("start", address, "--num-cpus=1")
        assert running.node_id != node_id
        running("stop")
        assert os.listdir(running.base) == []
        assert "token is needed" in running("start", address, code=1).stderr
    finally:
        newcomer.end()
        running.end()
        head.end()


def kill(node):
    """As when its machine loses power."""
    os.kill(node.pid(), signal.SIGKILL)
    wait_until(lambda: not processes_under(node.base), 20)


def test_the_token_before_is_good_for_a_node_that_was_away():
    """It was down while the token was changed, and has only the old one on its keyring."""
    head, away = Machine(), Machine()
    try:
        head.start_head(*HEAD)
        away.join(head, "--num-cpus=1")
        kill(away)
        head("token", "--rotate")
        away("start", f"--address={head.address}", "--num-cpus=1")
        assert head("status").stdout.partition("Left lately")[0].count("\nNode ") == 2
    finally:
        away.end()
        head.end()


def test_a_service_that_is_killed_tells_nobody_the_token(tmp_path):
    """What a crash leaves has it only where it was."""
    head = Machine()
    try:
        head.start_head(*HEAD)
        secret = head("token").stdout.strip().removeprefix("oxiray-").encode()
        for which in ("node_pid", "control_pid"):
            os.kill(head.pid(which), signal.SIGABRT)
        wait_until(lambda: not processes_under(head.base), 20)
        assert not shown_in(head, secret)
    finally:
        head.end()
