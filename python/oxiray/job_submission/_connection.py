"""Asking the dashboard: by TLS if it is on another machine, and never the token to somebody else.

The dashboard's certificate comes from an authority that its token gives (`oxirayd authority`), so
that whoever has the token knows the server. One behind a proxy has the proxy's certificate, which
this machine must trust.
"""

from __future__ import annotations

import functools
import http.client
import ipaddress
import json
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from .. import _session, _settings

_PATIENCE_S = 120
# What the dashboard's certificate says that its token gives; see `FRONT_NAME` of `crates/net`.
_NAME = "oxiray.dashboard"


class Refused(RuntimeError):
    """An answer that says no."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(f"Request failed with status code {status}: {why}")
        self.status = status


class Connection:
    def __init__(self, address: str, token: str, verify: str | bool | None) -> None:
        self.address = address
        if address.startswith("http:") and not (_is_here(address) or _is_plain_allowed()):
            # The token would go where everybody on the way can read it.
            self.address = "https:" + address.partition(":")[2]
        self._token, self._verify = token, verify
        self._opener: urllib.request.OpenerDirector | None = None

    def ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> bytes:
        request = urllib.request.Request(
            self.address + path, data=body, headers=headers, method=method
        )
        try:
            with self._open(request) as said:
                answer: bytes = said.read()
                return answer
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            try:
                text = json.loads(text)["error"]
            except (ValueError, KeyError, TypeError):
                pass
            raise Refused(error.code, text) from None
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionError(
                f"Failed to connect to Ray at address: {self.address} ({_reason(error)}). `oxiray "
                "dashboard` on the head machine prints the address."
            ) from None

    def _open(self, request: urllib.request.Request) -> Any:
        if self._opener is not None:
            return self._opener.open(request, timeout=_PATIENCE_S)
        wrong: list[str] = []
        for opener in self._openers():
            try:
                said = opener.open(request, timeout=_PATIENCE_S)
            except urllib.error.URLError as error:
                if not isinstance(error.reason, ssl.SSLError):
                    raise
                wrong.append(_reason(error))
            else:
                self._opener = opener
                return said
        raise ConnectionError("; ".join(dict.fromkeys(wrong)))

    def _openers(self) -> list[urllib.request.OpenerDirector]:
        """Those that are tried by the first question; what answers it is asked from then on."""
        if not self.address.startswith("https:"):
            return [urllib.request.build_opener(_NoRedirect)]
        if self._verify is False:
            return [_opener(ssl._create_unverified_context(), None)]
        if isinstance(self._verify, str):
            return [_opener(ssl.create_default_context(cafile=self._verify), None)]
        found = [_opener(ssl.create_default_context(), None)]
        if self._token:
            own = ssl.create_default_context(cadata=_authority(self._token))
            found.insert(0, _opener(own, _NAME))
        return found


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Who answers leads nowhere else, where the token would be sent, too."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener(context: ssl.SSLContext, name: str | None) -> urllib.request.OpenerDirector:
    class Tls(http.client.HTTPSConnection):
        def connect(self) -> None:
            if name is None:
                super().connect()
            else:
                http.client.HTTPConnection.connect(self)
                self.sock = context.wrap_socket(self.sock, server_hostname=name)

    class Handler(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(Tls, request, context=context)  # type: ignore[arg-type]

    return urllib.request.build_opener(_NoRedirect, Handler(context=context))


@functools.lru_cache(8)
def _authority(token: str) -> bytes:
    """The certificate, in DER, by which the server of this token is known."""
    command = [_session.program(), "authority"]
    made = subprocess.run(command, input=token.encode(), capture_output=True, check=False)
    if made.returncode != 0:
        raise ConnectionError(f"the token gives no certificate: {made.stderr.decode().strip()}")
    return made.stdout


def _is_here(address: str) -> bool:
    host = urllib.parse.urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_plain_allowed() -> bool:
    return _settings.is_on("OXIRAY_DASHBOARD_PLAIN")


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not by the token that was given: {reason.verify_message}"
    if isinstance(reason, ssl.SSLError) and reason.reason in (
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
    ):
        return "it speaks no TLS; OXIRAY_DASHBOARD_PLAIN=1 lets the token be sent all the same"
    return str(reason if isinstance(reason, (OSError, str)) and str(reason) else error)
