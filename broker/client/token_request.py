"""One token from a server: the request, its repetition, and the evaluation of the response.

Rules of this file:

* **The request has the form of Apache Kafka's own clients**: the same header, the same body.
* **Only the configured URL is requested.** No redirect is followed, and no proxy of the environment
  is used (CVE-2025-27817).
* **The client's secret is in no text**, even if the server repeats parts of the request.
* Waiting time and response size are limited. The request runs on a thread of its own, since a slow
  name resolution or a response that arrives byte by byte cannot be ended otherwise.
"""

from __future__ import annotations

import base64
import json
import math
import re
import socket
import ssl
import threading
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, urlsplit

from barnabas.broker.client.errors import TokenUnavailable, WrongSetting, is_end_of_tls, printable
from barnabas.broker.client.security_keys import HTTPS_TRUST, JAAS, TOKEN_URL
from barnabas.broker.client.token_endpoint import BEARER, TOKEN_BYTES_MAX, Token, TokenEndpoint
from barnabas.broker.security.tls.client import client_context
from barnabas.broker.security.tls.errors import TlsError

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_BYTES_MAX: Final = 256 * 1024
_GOOD: Final = (200, 201)
_PASSING: Final = (408, 425, 429)
_FINAL: Final = (501, 505)
"""Statuses from 500 on that a repeated request does not change."""

_LATE: Final = "it does not answer in time"


def fetched(endpoint: TokenEndpoint, timeout_seconds: float, *, may_repeat: bool) -> Token:
    """Return a token; raises TokenUnavailable, or WrongSetting if a retry cannot help.

    An unavailable server is tried again with growing pauses, as Kafka's clients do.
    """
    ends_s = time.monotonic() + timeout_seconds
    last_repeat_s = time.monotonic() + endpoint.retry_backoff_max_ms / 1000
    pause_s = endpoint.retry_backoff_ms / 1000
    context = _context(endpoint)
    while True:
        try:
            return _request_token(endpoint, context, ends_s - time.monotonic())
        except TokenUnavailable:
            pause_s = min(pause_s, last_repeat_s - time.monotonic())
            if not may_repeat or pause_s <= 0 or time.monotonic() + pause_s >= ends_s:
                raise
        time.sleep(pause_s)
        pause_s *= 2


def _context(endpoint: TokenEndpoint) -> ssl.SSLContext | None:
    if urlsplit(endpoint.url).scheme.lower() != "https":
        return None
    try:
        return client_context(dict(endpoint.tls))
    except TlsError as error:
        for key, same in HTTPS_TRUST.items():
            if error.key == same:
                raise WrongSetting(key, error.reason) from None
        raise WrongSetting(JAAS, f"{error.key}: {error.reason}") from None


def _request_token(
    endpoint: TokenEndpoint, context: ssl.SSLContext | None, timeout_seconds: float
) -> Token:
    request = _Request(endpoint, context, timeout_seconds)
    # Not one of a pool: the process may end while it waits for a server that does not answer.
    thread = threading.Thread(target=request.run, name="barnabas-token", daemon=True)
    thread.start()
    thread.join(max(timeout_seconds, 0))
    if thread.is_alive():
        request.give_up()
        raise _away(endpoint, _LATE)
    return request.result()


class _Request:
    """One request, on its thread; ``result`` is for the thread that waits."""

    def __init__(
        self, endpoint: TokenEndpoint, context: ssl.SSLContext | None, timeout_seconds: float
    ) -> None:
        self._endpoint = endpoint
        self._seconds_max = timeout_seconds
        parts = urlsplit(endpoint.url)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connect_s = self._limit(endpoint.connect_timeout_ms)
        host = parts.hostname or ""
        self._connection: HTTPConnection
        if context is None:
            self._connection = HTTPConnection(host, parts.port, timeout=connect_s)
        else:
            self._connection = HTTPSConnection(host, parts.port, timeout=connect_s, context=context)
        self._socket: socket.socket | None = None
        self._is_given_up = False
        self._answer: tuple[int, bytes] | None = None
        self._error: Exception | None = None

    def _limit(self, milliseconds: int | None) -> float:
        own = self._seconds_max if milliseconds is None else milliseconds / 1000
        return max(min(own, self._seconds_max), 0.001)

    def run(self) -> None:
        try:
            self._answer = self._answered()
        except Exception as error:  # noqa: BLE001  ``result`` raises it
            self._error = error
        finally:
            self._connection.close()

    def _answered(self) -> tuple[int, bytes]:
        self._connection.connect()
        # The connection lets go of it before a response without a length is read.
        self._socket = self._connection.sock
        if self._is_given_up:
            raise TimeoutError
        self._socket.settimeout(self._limit(self._endpoint.read_timeout_ms))
        body, headers = _form(self._endpoint)
        self._connection.request("POST", self._target, body, dict(headers))
        response: HTTPResponse = self._connection.getresponse()
        return response.status, response.read(ANSWER_BYTES_MAX + 1)

    def give_up(self) -> None:
        """End the thread's wait."""
        self._is_given_up = True
        if self._socket is not None:
            with suppress(OSError):  # It ends by itself just now.
                self._socket.shutdown(socket.SHUT_RDWR)

    def result(self) -> Token:
        """Return the received token; raises WrongSetting and TokenUnavailable."""
        if self._error is not None:
            raise _problem(self._endpoint, self._error) from None
        assert self._answer is not None
        return _read(self._endpoint, *self._answer)


def _form(endpoint: TokenEndpoint) -> tuple[bytes, Mapping[str, str]]:
    """Return body and headers, byte for byte as Kafka's clients send them."""
    parts = (endpoint.client_id, endpoint.client_secret, endpoint.scope)
    user, secret, scope = map(_urlencoded, parts) if endpoint.is_urlencoded else parts
    basic = base64.b64encode(f"{user}:{secret}".encode()).decode()
    body = "grant_type=client_credentials" + (f"&scope={scope}" if scope else "")
    return body.encode(), {
        "Accept": "application/json",
        "Authorization": f"Basic {basic}",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }


def _urlencoded(text: str) -> str:
    return quote_plus(text, safe="*").replace("~", "%7E")  # As java.net.URLEncoder does it.


# ----------------------------------------------------------------------------------- the response


def _read(endpoint: TokenEndpoint, status: int, data: bytes) -> Token:
    if status not in _GOOD:
        said = _error_text(endpoint, data)
        reason = f"the server answers {status}" + (f": {said}" if said else "")
        passes = status in _PASSING or (status >= 500 and status not in _FINAL)
        raise _away(endpoint, reason) if passes else _wrong(endpoint, reason)
    if len(data) > ANSWER_BYTES_MAX:
        raise _wrong(endpoint, f"the answer has more than {ANSWER_BYTES_MAX} bytes")
    answer = _object(data)
    if answer is None:
        raise _wrong(endpoint, "the answer is not JSON")
    texts = (answer.get(name) for name in ("access_token", "id_token"))
    text = next((each.strip() for each in texts if isinstance(each, str) and each.strip()), "")
    if not text:
        raise _wrong(endpoint, "the response has no access_token")
    if len(text) > TOKEN_BYTES_MAX or not BEARER.fullmatch(text):
        raise _wrong(endpoint, "the access_token is malformed or too long")
    return Token(text, _lifetime_seconds(answer, text))


def _lifetime_seconds(answer: Mapping[str, Any], token: str) -> float | None:
    """Return the lifetime of a token: the lesser of the response's and its own."""
    found = [_number(answer.get("expires_in"))]
    ends = _number(_claims(token).get("exp"))
    if ends is not None:
        found.append(ends - time.time())
    return min((max(each, 0.0) for each in found if each is not None), default=None)


def _claims(token: str) -> Mapping[str, Any]:
    """Return the claims of a JWT, without verification, which is the brokers' task."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        data = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
    except ValueError:
        return {}
    return _object(data) or {}


def _object(data: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _number(value: object) -> float | None:
    """Return a number, which some servers write as text."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,12}", value, re.ASCII):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e15 and math.isfinite(value) else None


# ------------------------------------------------------------------------------------ what is said


def _error_text(endpoint: TokenEndpoint, data: bytes) -> str:
    """Return the server's error text (RFC 6749, section 5.2), without the secret."""
    answer = _object(data) or {}
    words = [answer.get(name) for name in ("error", "error_description")]
    text = " - ".join(each for each in words if isinstance(each, str) and each)
    basic = _form(endpoint)[1]["Authorization"].split()[1]
    secrets = (endpoint.client_secret, _urlencoded(endpoint.client_secret), basic)
    return "" if any(each in text for each in secrets) else printable(text)


def _problem(endpoint: TokenEndpoint, error: Exception) -> Exception:
    """Return the exception to raise for a failed request; anything else is an internal error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _wrong(
            endpoint,
            f"the server's certificate cannot be trusted: {error.verify_message}"
            f" (the option ssl.truststore.location in {JAAS} names who is)",
        )
    if isinstance(error, ssl.SSLError) and not is_end_of_tls(error):
        reason = (error.reason or "no TLS").lower().replace("_", " ")
        return _wrong(endpoint, f"the TLS handshake failed: {reason}")
    if isinstance(error, TimeoutError):
        return _away(endpoint, _LATE)
    if isinstance(error, OSError):
        return _away(endpoint, error.strerror or str(error))
    if isinstance(error, IncompleteRead):
        return _away(endpoint, "the answer ends in the middle")
    if isinstance(error, HTTPException):
        return _wrong(endpoint, f"the answer is not HTTP's ({type(error).__name__})")
    return error


def _wrong(endpoint: TokenEndpoint, reason: str) -> WrongSetting:
    return WrongSetting(TOKEN_URL, f"{endpoint.shown_url}: {reason}")


def _away(endpoint: TokenEndpoint, reason: str) -> TokenUnavailable:
    return TokenUnavailable(f"{TOKEN_URL}: {endpoint.shown_url}: {reason}")
