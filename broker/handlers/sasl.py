"""SaslHandshake 0-1, SaslAuthenticate 0-2: authentication of a client.

Version notes. SaslHandshake: after version 0 tokens come bare, without requests around them
(broker/network/login_gate.py). SaslAuthenticate: v1 returns the lifetime of the login (KIP-368).

On a listener without authentication, and after a login, both get ILLEGAL_SASL_STATE and the
connection stays usable, as with Apache Kafka (measured with 4.3.0). Clients that guess a broker's
version from its advertised APIs (kafka-python does) take one without SaslHandshake for Kafka 0.9.
"""

from __future__ import annotations

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.api.driver import Run
from barnabas.broker.api.waits import later
from barnabas.broker.runtime.host import Host
from barnabas.broker.security.sasl.login import LoggedIn, Next
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sasl_authenticate import (
    SASL_AUTHENTICATE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.protocol.messages.sasl_handshake import (
    SASL_HANDSHAKE,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

AUTHENTICATED = "SaslAuthenticate request received after successful authentication"


@serves(SASL_HANDSHAKE, versions=(0, 1), short=True)
def sasl_handshake(
    host: Host, context: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse | Run[SaslHandshakeResponse]:
    """Process the client's choice of a mechanism."""
    connection = context.connection
    login = connection.login or connection.login_again()
    if login is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    failed = login.choose(request.mechanism, context.api_version)
    if failed is None:
        return SaslHandshakeResponse(mechanisms=login.mechanism_names)
    delay_ms = connection.login_failed(failed)
    response = SaslHandshakeResponse(error_code=failed.code, mechanisms=login.mechanism_names)
    return Run(later(host.clock, delay_ms, response), is_last=True)


@serves(SASL_AUTHENTICATE, versions=(0, 2), short=True)
def sasl_authenticate(
    host: Host, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | Run[SaslAuthenticateResponse]:
    """Process the client's next token."""
    connection = context.connection
    if connection.login is None:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=AUTHENTICATED
        )
    outcome = connection.take_token(bytes(request.auth_bytes))
    if isinstance(outcome, Next):
        return SaslAuthenticateResponse(auth_bytes=outcome.token)
    if isinstance(outcome, LoggedIn):
        lifetime_ms = connection.logged_in(outcome)
        return SaslAuthenticateResponse(auth_bytes=outcome.token, session_lifetime_ms=lifetime_ms)
    delay_ms = connection.login_failed(outcome)
    response = SaslAuthenticateResponse(error_code=outcome.code, error_message=outcome.message)
    return Run(later(host.clock, delay_ms, response), is_last=True)
