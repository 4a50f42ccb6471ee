"""The dashboard, asked as programs and as browsers do."""

from __future__ import annotations

import http.client
import json
import os
from typing import NamedTuple

from conftest import wait_until

TIMEOUT_S = 30


class Reply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    def json(self):
        return json.loads(self.body)


class Dashboard:
    """One session's, by `RayContext.dashboard_url`: `HOST:PORT/?token=TOKEN`."""

    def __init__(self, url):
        self.address, _, self.token = url.removeprefix("http://").partition("/?token=")
        self.host, _, port = self.address.rpartition(":")
        self.port = int(port)

    @property
    def bearer(self):
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def cookie(self):
        return {"Cookie": f"oxiray-{self.port}={self.token}"}

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)

    def ask(self, path, method="GET", headers=None):
        """Without the token, unless `headers` have it."""
        connection = self.connect()
        try:
            connection.request(method, path, headers=headers or {})
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path):
        """With the token."""
        return self.ask(path, headers=self.bearer)

    def json(self, path):
        reply = self.get(path)
        assert reply.status == 200, (path, reply.status, reply.text)
        return reply.json()

    def post(self, path):
        return self.ask(path, "POST", self.bearer)

    def stream(self, path):
        """Events as (name, data), until the caller closes the generator."""
        connection = self.connect()
        try:
            connection.request("GET", path, headers=self.bearer)
            response = connection.getresponse()
            assert response.status == 200, (path, response.status, response.read())
            name = ""
            while line := response.readline().decode().rstrip("\n"):
                name = line.removeprefix("event: ")
                data = response.readline().decode().removeprefix("data: ")
                assert response.readline() == b"\n"
                yield name, json.loads(data)
        finally:
            connection.close()


def servers():
    """The processes that serve dashboards of this test run, by pid."""
    base = os.environ["OXIRAY_TMPDIR"].encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().split(b"\0")
        except OSError:
            continue
        if b"dashboard" in command[1:2] and any(base in argument for argument in command):
            found.append(int(pid))
    return found


def wait_for_no_server():
    wait_until(lambda: not servers(), 20, "no dashboard is served")
