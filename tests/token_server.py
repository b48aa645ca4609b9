"""A server of tokens for tests: it hands them out by the client credentials grant.

Over TLS where it is given a certificate. Everything that was asked is kept in `requests`.
"""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from tests.certificates import Credential
from tests.http_server import HttpServerForTests
from tests.issuer import token
from tests.secured import MODULES, USER

CLIENT_ID, CLIENT_SECRET = "a client+of:ours", "client/secret +~*=%"
"""With all that is written otherwise where it is URL-encoded, or in a header."""
PATH = "/realms/barn/token"


class Request(NamedTuple):
    """What the server was asked."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class TokenServerForTests(HttpServerForTests):
    """`with TokenServerForTests() as server:` hands out tokens until the end of the block."""

    def __init__(
        self, certificate: Credential | None = None, port: int = 0, lifetime_s: float = 600
    ) -> None:
        self.requests: list[Request] = []
        self.user = USER
        self.lifetime_s = lifetime_s
        self.status = 200
        self.body: bytes | None = None
        """What is answered instead of a token."""
        self.headers: dict[str, str] = {}
        self.before: Callable[[], None] = lambda: None
        self.scheme = "http" if certificate is None else "https"
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                request = Request(self.path, dict(self.headers), self.rfile.read(length))
                outer.requests.append(request)
                outer.before()
                status, body = outer._answer(request)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Clients that do not trust it, or wait no longer, hang up."""

        server = Server(("127.0.0.1", port), Handler)
        if certificate is not None:
            server.socket = _context(certificate).wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        super().__init__(server)

    def _answer(self, request: Request) -> tuple[int, bytes]:
        if self.body is not None or self.status != 200:
            return self.status, self.body or b""
        if request.headers["Authorization"] not in {basic(), basic(is_urlencoded=True)}:
            said = {"error": "invalid_client", "error_description": "Who are you?"}
            return 401, json.dumps(said).encode()
        access_token = token(self.user, lifetime_s=self.lifetime_s)
        lifetime_s = int(self.lifetime_s)
        answer = {"access_token": access_token, "token_type": "Bearer", "expires_in": lifetime_s}
        return 200, json.dumps(answer).encode()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}{PATH}"


def basic(*, is_urlencoded: bool = False) -> str:
    """Return the header that the client's id and secret make."""
    user, secret = CLIENT_ID, CLIENT_SECRET
    if is_urlencoded:  # As java.net.URLEncoder has them.
        user, secret = "a+client%2Bof%3Aours", "client%2Fsecret+%2B%7E*%3D%25"
    return "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()


def client_credentials(url: str, *, are_in_jaas: bool = False, **options: str) -> dict[str, str]:
    """Return the settings of a client that gets its tokens there; `options` are of its JAAS line.

    Clients before Kafka 4.1 have all of it in the JAAS line.
    """
    settings = {}
    if are_in_jaas:
        options = {"clientId": CLIENT_ID, "clientSecret": CLIENT_SECRET, **options}
    else:
        settings = {
            "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
        }
    line = "".join(f' {name}="{value}"' for name, value in options.items())
    return settings | {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required{line};",
        "sasl.login.callback.handler.class": (
            f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
        ),
        "sasl.oauthbearer.token.endpoint.url": url,
    }


def _context(certificate: Credential) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write((certificate.key_pem() + certificate.chain_pem).encode())
        file.flush()
        context.load_cert_chain(file.name)
    return context
