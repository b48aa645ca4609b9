"""The gate between a connection's frames and its handlers until its client has logged in.

The rules are those of ``broker/security/sasl/login.py``; here they are applied to frames: early
requests, bare tokens of SASL's first handshake, and the delay of a failure.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.api.dispatch import CloseConnection, Routes
from barnabas.broker.api.driver import Encoded, Run
from barnabas.broker.api.refusals import refusal_or_nothing
from barnabas.broker.api.waits import later
from barnabas.broker.network.framing import Chunks, answers_flexibly, encoded
from barnabas.broker.security.sasl.login import (
    API_VERSIONS_KEY,
    AUTHENTICATE_KEY,
    LoggedIn,
    Login,
    LoginFailed,
    Next,
    Outcome,
    State,
    Verdict,
)
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.frame import MIN_FRAME_BYTES
from barnabas.protocol.header import decode_request_header

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock

EARLY_REQUEST_BYTES: Final = 4096
"""Maximum size of a request before the login, except for tokens: it names a client or a
mechanism."""
LOGIN_FIRST: Final = "the client has not logged in"
_LENGTH: Final = struct.Struct(">i")
_KEY: Final = struct.Struct(">h")


class Door(Protocol):
    """Interface of the connection for its gate."""

    def logged_in(self, outcome: LoggedIn) -> int:
        """Serve the client as its authenticated user."""

    def take_token(self, token: bytes) -> Outcome:
        """Process the next token of the present login; raises CloseConnection."""

    def login_failed(self, failed: LoginFailed) -> float:
        """Register a failed login; return the delay of its response in ms."""


class LoginGate:
    """Judges the requests of one connection by the login that is under way."""

    def __init__(self, login: Login, door: Door, routes: Routes, clock: Clock) -> None:
        self.login = login
        self._door = door
        self._routes = routes
        self._clock = clock

    def judge(self, frame: memoryview) -> Chunks | Run[Encoded] | None:
        """Return a response in place of the handler's, or None for the handler.

        Raises CloseConnection if there is no response.
        """
        login = self.login
        if login.raw and login.state is State.CHOSEN:
            return self._take_token(frame)
        if len(frame) < MIN_FRAME_BYTES:
            raise CloseConnection(f"a frame of {len(frame)} bytes is no request")
        key = _KEY.unpack_from(frame)[0]
        if key != AUTHENTICATE_KEY and len(frame) > EARLY_REQUEST_BYTES:
            raise CloseConnection(f"a request of {len(frame)} bytes before the login")
        match login.judge(key):
            case Verdict.SERVED:
                self._note_versions(key, frame)
                return None
            case Verdict.REFUSED:
                return self._refuse(key, frame)
            case _:
                raise CloseConnection(LOGIN_FIRST)

    def _note_versions(self, key: int, frame: memoryview) -> None:
        """End the phase of ApiVersions after the first request of that API in a known version."""
        if key == API_VERSIONS_KEY:
            route = self._routes.get(key)
            header, _ = decode_request_header(frame)
            if route is not None and header.api_version <= route.max_version:
                self.login.versions_answered()

    def _take_token(self, frame: memoryview) -> Chunks | Run[Encoded]:
        """Process a token without a header; the response is one, too, or missing on failure."""
        outcome = self._door.take_token(bytes(frame))
        if isinstance(outcome, Next):
            return [_LENGTH.pack(len(outcome.token)), outcome.token]
        if isinstance(outcome, LoggedIn):
            self._door.logged_in(outcome)
            return [_LENGTH.pack(len(outcome.token)), outcome.token]
        return self._held_back(outcome, [])

    def _refuse(self, key: int, frame: memoryview) -> Run[Encoded]:
        """Refuse a request that is not allowed during a login, in the form of its API."""
        self.login.state = State.FAILED
        header, position = decode_request_header(frame)
        route, version = self._routes.get(key), header.api_version
        if route is None or not route.min_version <= version <= route.max_version:
            raise CloseConnection(LOGIN_FIRST)
        request = route.api.decode_request(frame, position, version)
        error = KafkaError(ErrorCode.ILLEGAL_SASL_STATE)
        response = refusal_or_nothing(route, request, error)
        chunks, _ = encoded(
            route.api.encode_response,
            response,
            version,
            header.correlation_id,
            answers_flexibly(route, version),
        )
        failed = LoginFailed(error.code, "", detail=f"{route.name} in the middle of a login")
        return self._held_back(failed, chunks)

    def _held_back(self, failed: LoginFailed, chunks: Chunks) -> Run[Encoded]:
        """Return the delayed last response of a connection, which slows down guessing."""
        delay_ms = self._door.login_failed(failed)
        return Run(later(self._clock, delay_ms, Encoded(chunks)), is_last=True)
