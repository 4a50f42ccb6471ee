"""The dashboard beyond loopback: TLS, known by the token; what is plain is told, and hears none."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import ssl
import subprocess
import sys
import threading
import urllib.parse

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray import _native
from oxiray.cluster_utils import Cluster
from oxiray.job_submission import JobStatus, JobSubmissionClient
from oxiray.job_submission._connection import _authority

OXIRAY = [sys.executable, "-m", "oxiray._job_command"]


def own_address():
    """An address of this machine that is not loopback; none is sent anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
    return "127.0.0.1"


@pytest.fixture(scope="module")
def head():
    if own_address().startswith("127."):
        pytest.skip("this machine has no address but loopback")
    ray.shutdown()
    arguments = {"num_cpus": 1, "include_dashboard": True, "dashboard_host": "0.0.0.0"}
    cluster = Cluster(initialize_head=True, head_node_args=arguments)
    node = next(node for node in _native.started_nodes() if node["is_head"])
    yield node["session_dir"]
    cluster.shutdown()


@pytest.fixture
def place(head):
    """The port, and the token."""
    said = urllib.parse.urlsplit(_native.dashboard_url(head))
    # On this machine it is plain.
    assert (said.scheme, said.hostname) == ("http", "127.0.0.1")
    return said.port, said.query.removeprefix("token=")


def test_a_job_from_afar_goes_by_tls(head, place):
    port, token = place
    url = f"https://{own_address()}:{port}"
    client = JobSubmissionClient(f"{url}/?token={token}")
    assert client.get_address() == url
    job = client.submit_job(entrypoint="echo by TLS")
    wait_until(lambda: client.get_job_status(job).is_terminal(), 60, "the job ends")
    assert client.get_job_status(job) == JobStatus.SUCCEEDED
    assert client.get_job_logs(job) == "by TLS\n"
    by_header = JobSubmissionClient(url, headers={"Authorization": f"Bearer {token}"})
    assert by_header.get_version() == client.get_version()
    # What scripts have of Ray's, and what must not go as it says.
    older = JobSubmissionClient(f"http://{own_address()}:{port}/?token={token}")
    assert older.get_address() == url
    said = subprocess.run(
        [*OXIRAY, "logs", "--address", f"{url}/?token={token}", job],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (said.returncode, said.stdout) == (0, "by TLS\n"), said.stderr


def test_what_is_plain_from_afar_is_told_and_nothing_else(head, place):
    port, token = place
    for path in ("/api/jobs/", f"/?token={token}", "/metrics"):
        connection = http.client.HTTPConnection(own_address(), port, timeout=30)
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        said = answer.read().decode()
        assert answer.status == 400 and "use https://" in said, said
        assert answer.getheader("Set-Cookie") is None
        connection.close()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/api/version", headers={"Authorization": f"Bearer {token}"})
    assert connection.getresponse().status == 200
    connection.close()


def test_others_trust_its_certificate_by_hand(head, place):
    port, token = place
    path = f"{head}/dashboard.pem"
    client = JobSubmissionClient(f"https://localhost:{port}/?token={token}", verify=path)
    assert client.get_version()
    context = ssl.create_default_context(cafile=path)
    connection = http.client.HTTPSConnection("localhost", port, timeout=30, context=context)
    connection.request("GET", f"/?token={token}")
    answer = connection.getresponse()
    assert answer.status == 303 and answer.getheader("Set-Cookie").endswith("; Secure")
    connection.close()
    with pytest.raises(ssl.SSLCertVerificationError):
        http.client.HTTPSConnection("localhost", port, timeout=30).request("GET", "/")
    for name in ("dashboard.key", "dashboard.pem"):
        assert os.stat(f"{head}/{name}").st_mode & 0o777 == 0o600


def test_the_token_is_said_to_nobody_else(head, place, monkeypatch):
    """A server with another token, and one without TLS: neither hears ours."""
    port, token = place
    wrong = "0" * 64
    with pytest.raises(ConnectionError, match="not by the token"):
        JobSubmissionClient(f"https://{own_address()}:{port}/?token={wrong}")
    assert _authority(token) != _authority(wrong)
    heard = []
    with socket.create_server((own_address(), 0)) as server:

        def serve():
            while True:
                try:
                    other, _ = server.accept()
                except OSError:
                    return
                with other:
                    heard.append(other.recv(65536))
                    other.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"http://{own_address()}:{server.getsockname()[1]}/?token={token}"
        with pytest.raises(ConnectionError, match="OXIRAY_DASHBOARD_PLAIN"):
            JobSubmissionClient(address)
        assert heard and not any(token.encode() in piece for piece in heard)
        # Unless that is what is wanted.
        monkeypatch.setenv("OXIRAY_DASHBOARD_PLAIN", "1")
        with pytest.raises(RuntimeError, match="400"):
            JobSubmissionClient(address)
        assert token.encode() in heard[-1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(30)
    assert not thread.is_alive()


def test_who_says_nothing_or_nonsense_stays_for_a_while_only(head, place):
    port, token = place
    silent = socket.create_connection((own_address(), port), timeout=30)
    halved = socket.create_connection((own_address(), port), timeout=30)
    halved.sendall(b"\x16\x03\x01\x02\x00")
    nonsense = socket.create_connection((own_address(), port), timeout=30)
    nonsense.sendall(b"\x16" + bytes(range(256)) * 4)
    with nonsense:
        assert len(nonsense.recv(100)) < 100  # an alert, and the end
    client = JobSubmissionClient(f"https://{own_address()}:{port}/?token={token}")
    assert client.get_version()
    with silent, halved:
        assert silent.recv(1) == b"" and halved.recv(1) == b""


def test_an_open_network_can_be_said_to_be_safe(monkeypatch):
    if own_address().startswith("127."):
        pytest.skip("this machine has no address but loopback")
    monkeypatch.setenv("OXIRAY_DASHBOARD_PLAIN", "1")
    ray.shutdown()
    try:
        context = ray.init("local", num_cpus=1, dashboard_host=own_address(), dashboard_port=0)
        address, _, token = context.dashboard_url.partition("/?token=")
        assert f"https://{context.dashboard_url}" in context._repr_html_()
        connection = http.client.HTTPConnection(address, timeout=30)
        connection.request("GET", "/api/nodes", headers={"Authorization": f"Bearer {token}"})
        assert connection.getresponse().status == 200
        connection.close()
    finally:
        ray.shutdown()
