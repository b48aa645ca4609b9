"""SaslHandshake 0-1, SaslAuthenticate 0-2 on a PLAINTEXT listener: there is nothing to prove.

Answered with ILLEGAL_SASL_STATE, and the connection stays usable, as with Apache Kafka (measured
with 4.3.0). Clients that guess a broker's version from what it advertises (kafka-python does) take
one without SaslHandshake for Kafka 0.9.
"""

from __future__ import annotations

from barnabas.broker.api.dispatch import RequestContext, serves
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
def sasl_handshake(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Offer no mechanism."""
    del request
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


@serves(SASL_AUTHENTICATE, versions=(0, 2), short=True)
def sasl_authenticate(
    context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """Refuse a token that was not asked for."""
    del request
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=AUTHENTICATED
    )
