"""Without the token nobody gets anything of the dashboard, nor its owner into trouble.

Another user of the machine, another page in the same browser, a name that leads here, and those
who only want to be in the way. The engine goes on throughout.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import time

import oxiray as ray
import pytest
from conftest import wait_until
from dashboard_client import Dashboard, servers

PATHS = ["/", "/docs", "/metrics", "/api/cluster", "/api/tasks", "/api/stream", "/api/openapi.json"]
EVIL = "evil.example"
# Connections that say nothing are closed after this (crates/dashboard/src/server.rs).
PATIENCE_S = 10
STRANGERS = 512
NOBODY = 65534


@pytest.fixture(scope="module")
def dashboard():
    ray.shutdown()
    context = ray.init(num_cpus=2, logging_level="error", dashboard_port=0)
    yield Dashboard(context.dashboard_url)
    ray.shutdown()


@pytest.fixture(autouse=True)
def the_engine_goes_on(dashboard):
    yield
    assert ray.get(ray.remote(lambda: 7).remote(), timeout=30) == 7
    assert dashboard.get("/api/openapi.json").status == 200


def same_origin(dashboard):
    return {"Origin": f"http://{dashboard.address}"}


def test_without_the_token_there_is_nothing(dashboard):
    wrong = "0" * len(dashboard.token)
    tries = [
        {},
        {"Authorization": f"Bearer {wrong}"},
        {"Authorization": f"Bearer {dashboard.token[:-1]}"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Basic {dashboard.token}"},
        {"Cookie": f"oxiray-{dashboard.port}={wrong}"},
        {"Cookie": f"oxiray={dashboard.token}"},
    ]
    for path in PATHS:
        for headers in tries:
            reply = dashboard.ask(path, headers=headers)
            assert reply.status == 401, (path, headers)
            assert "oxiray dashboard" in reply.text  # the remedy
            assert dashboard.token not in reply.text
    assert dashboard.ask(f"/?token={wrong}").status == 401
    assert dashboard.ask(f"/api/openapi.json?token={dashboard.token}").status == 401


def test_the_token_in_the_address_becomes_a_cookie(dashboard):
    reply = dashboard.ask(f"/?token={dashboard.token}")
    assert (reply.status, reply.headers["Location"]) == (303, "/")
    cookie, *attributes = reply.headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)
    assert dashboard.ask("/", headers={"Cookie": cookie}).status == 200
    # Followed from another page, as a notebook, the browser would not send the cookie along.
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    reply = dashboard.ask(f"/?token={dashboard.token}", headers=link)
    assert reply.status == 200 and reply.headers["Set-Cookie"].startswith(cookie)
    assert b'http-equiv="refresh"' in reply.body and dashboard.token not in reply.text


@pytest.mark.parametrize("proof", ["cookie", "bearer"])
def test_another_page_in_the_same_browser_gets_nothing(dashboard, proof):
    proof = getattr(dashboard, proof)
    for origin in (f"http://{EVIL}", "http://127.0.0.1:1", "http://localhost:3000", "null"):
        for path in PATHS:
            reply = dashboard.ask(path, headers={**proof, "Origin": origin})
            assert reply.status == 403, (origin, path)
            assert "Access-Control-Allow-Origin" not in reply.headers
    preflight = {"Origin": f"http://{EVIL}", "Access-Control-Request-Method": "POST"}
    assert dashboard.ask("/api/cluster", "OPTIONS", preflight).status == 403
    # Images, scripts and frames are asked for without an Origin.
    for site in ("cross-site", "same-site"):
        for kind in ("image", "script", "iframe", "empty"):
            marks = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": kind}
            for path in PATHS:
                assert dashboard.ask(path, headers={**proof, **marks}).status == 403
    ours = {**proof, **same_origin(dashboard), "Sec-Fetch-Site": "same-origin"}
    assert dashboard.ask("/api/openapi.json", headers=ours).status == 200


def test_a_name_that_leads_here_gets_nothing(dashboard):
    names = [EVIL, f"{EVIL}:{dashboard.port}", f"{dashboard.address}.{EVIL}", "10.1.2.3", ""]
    for name in names:
        for path in PATHS:
            headers = {**dashboard.cookie, "Host": name}
            assert dashboard.ask(path, headers=headers).status in (400, 403), (name, path)
    # With the name it is reached by through a tunnel, it is.
    for name in ("localhost:9000", "127.0.0.1", f"localhost:{dashboard.port}"):
        headers = {**dashboard.cookie, "Host": name}
        assert dashboard.ask("/api/openapi.json", headers=headers).status == 200


def test_nothing_is_changed_by_get_or_by_a_form(dashboard):
    for path in (
        "/api/workers/00/stack",
        "/api/workers/00/profile?seconds=1",
        "/api/tasks/00/cancel",
        "/api/actors/00/kill",
    ):
        assert dashboard.get(path).status == 405
        # What a form of another page sends: the cookie at best, and no Origin of ours.
        assert dashboard.ask(path, "POST", dashboard.cookie).status == 403
        hostile = {**dashboard.cookie, "Origin": f"http://{EVIL}"}
        assert dashboard.ask(path, "POST", hostile).status == 403
        ours = {**dashboard.cookie, **same_origin(dashboard)}
        assert dashboard.ask(path, "POST", ours).status not in (401, 403, 405)
    for method in ("PUT", "DELETE", "PATCH", "TRACE"):
        reply = dashboard.ask("/api/tasks", method, dashboard.bearer)
        assert reply.status == 405 and reply.json()["error"]


def test_nothing_is_reflected_unescaped(dashboard):
    attack = "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    paths = [f"/{attack}", f"/api/{attack}", f"/api/tasks?sort={attack}", f"/api/tasks/{attack}"]
    paths += [f"/api/tasks?{attack}=1", f"/api/logs/00/{attack}", f"/?token={attack}"]
    for headers in (dashboard.bearer, {}):
        for path in paths:
            reply = dashboard.ask(path, headers=headers)
            assert 400 <= reply.status < 600, path
            kind = reply.headers["Content-Type"]
            assert "<script>" not in reply.text or kind == "application/json", (path, reply.text)


def test_every_answer_is_hardened(dashboard):
    for path in [*PATHS, "/no-such-page", "/docs/docs.js"]:
        for headers in (dashboard.bearer, {}):
            if path == "/api/stream" and headers:
                continue  # it does not end
            reply = dashboard.ask(path, headers=headers)
            policy = reply.headers["Content-Security-Policy"]
            assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            assert reply.headers["Referrer-Policy"] == "no-referrer"
            assert reply.headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "Server" not in reply.headers


def test_the_token_is_for_its_owner_alone(dashboard):
    directory = session_dir()
    path = f"{directory}/dashboard.token"
    with open(path) as file:
        assert file.read() == dashboard.token
    assert re.fullmatch("[0-9a-f]{64}", dashboard.token)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    # Nor does the command line of the server, which others can read, have it.
    dashboard.get("/")
    for pid in servers():
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            assert dashboard.token.encode() not in file.read()


def session_dir():
    from oxiray import _native

    return _native.context()["session_dir"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine_gets_nothing(dashboard):
    directory = session_dir()
    readable = [f"{directory}/{name}" for name in ("dashboard.token", "node.sock", "logs")]
    reader, writer = os.pipe()
    child = os.fork()  # not a program: that user may not be able to run this Python
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            allowed = [path for path in readable if os.access(path, os.R_OK)]
            status = dashboard.ask("/api/cluster").status
            os.write(writer, f"{allowed} {status}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.read() == "[] 401"
    os.waitpid(child, 0)


def is_closed(connection):
    """Whether the other side has closed it; what it said before is read."""
    connection.setblocking(False)
    try:
        while connection.recv(4096):
            pass
        return True
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_a_thousand_silent_connections_do_not_keep_the_owner_out(dashboard):
    idle = [socket.create_connection((dashboard.host, dashboard.port)) for _ in range(1000)]
    try:
        began = time.monotonic()
        assert dashboard.get("/api/openapi.json").status == 200
        assert time.monotonic() - began < PATIENCE_S
        still = [connection for connection in idle if not is_closed(connection)]
        assert len(still) <= STRANGERS + 1
        # The rest say nothing for too long.
        wait_until(lambda: all(map(is_closed, still)), 3 * PATIENCE_S, "silent ones are closed")
    finally:
        for connection in idle:
            connection.close()


def test_a_request_that_never_ends_is_ended(dashboard):
    slow = socket.create_connection((dashboard.host, dashboard.port))
    slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")

    def trickle():
        try:
            slow.sendall(b"X: y\r\n")
        except ConnectionError:
            return True
        time.sleep(0.2)
        return is_closed(slow)

    wait_until(trickle, 3 * PATIENCE_S, "it is closed")
    slow.close()


def test_a_kept_connection_is_closed_when_nothing_more_comes(dashboard):
    """Or a browser's spare one would keep the server for as long as the browser runs."""
    kept = socket.create_connection((dashboard.host, dashboard.port))
    head = f"Host: {dashboard.address}\r\nAuthorization: Bearer {dashboard.token}\r\n\r\n"
    kept.sendall(f"GET /api/openapi.json HTTP/1.1\r\n{head}".encode())
    assert kept.recv(15) == b"HTTP/1.1 200 OK"
    wait_until(lambda: is_closed(kept), 3 * PATIENCE_S, "it is closed")
    kept.close()


def test_nonsense_ends_only_its_own_connection(dashboard):
    nonsense = [
        b"\x00" * 100_000,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100_000,
        b"GET /" + b"x" * 1_000_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a browser that was told https
        os.urandom(4096),
    ]
    pids = dashboard.get("/api/openapi.json") and servers()
    for bytes_ in nonsense:
        with socket.create_connection((dashboard.host, dashboard.port)) as connection:
            try:
                connection.sendall(bytes_)
            except ConnectionError:
                pass
    assert dashboard.get("/api/openapi.json").status == 200
    assert servers() == pids


def test_browsers_that_leave_in_the_middle(dashboard):
    for _ in range(50):
        connection = socket.create_connection((dashboard.host, dashboard.port))
        head = f"Host: {dashboard.address}\r\nAuthorization: Bearer {dashboard.token}\r\n\r\n"
        connection.sendall(f"GET /api/stream HTTP/1.1\r\n{head}".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        # Without a good-bye: what is unread makes it a reset.
        connection.close()
    (pid,) = servers()
    wait_until(lambda: connections_of(pid) < 10, 30, "the server lets go of them")


def connections_of(pid):
    return sum(
        os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
        for name in os.listdir(f"/proc/{pid}/fd")
    )
