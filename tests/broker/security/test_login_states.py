"""Every request in every state of a login, over real sockets: served, refused in its own form, or
answered by a closed connection.
"""

import pytest

from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.protocol.sasl.scram import SCRAM_SHA_256, ScramClient
from barnabas.testing import Broker
from tests.broker.sample_requests import ILLEGAL_SASL_STATE, SAMPLES, error_codes
from tests.broker.security.wire import Wire

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{MODULE} required user_alice=secret;",
    "barnabas.scram.credentials": "SCRAM-SHA-256=[name=alice,password=secret]",
    "connection.failed.authentication.delay.ms": "0",
    "connections.max.reauth.ms": "600000",
    "barnabas.login.timeout.ms": "6000000",
}
SERVED, REFUSED, CLOSED = "served", "refused", "closed"

# Without a place for an error where the request names nothing.
EMPTY = {"AlterClientQuotas", "AlterUserScramCredentials", "CreateAcls", "DeleteAcls"}


def new(wire):
    """Keep the connection without any request."""


def asked_versions(wire):
    wire.ask(API_VERSIONS, 3, ApiVersionsRequest("test", "1"))


def chosen(wire, mechanism="PLAIN", version=1):
    answer = wire.ask(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism))
    assert answer.error_code == 0


def chosen_for_bare_tokens(wire):
    chosen(wire, version=0)


def half_way(wire):
    chosen(wire, "SCRAM-SHA-256")
    first = ScramClient(SCRAM_SHA_256, "alice", "secret", "nonce").first()
    assert wire.ask(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(first)).error_code == 0


def half_way_with_bare_tokens(wire):
    chosen(wire, "SCRAM-SHA-256", 0)
    assert wire.bare(ScramClient(SCRAM_SHA_256, "alice", "secret", "nonce").first())


def logged_in(wire):
    assert wire.log_in().error_code == 0


def repeating(wire):
    logged_in(wire)
    chosen(wire)


def ended(wire):
    logged_in(wire)
    wire.broker.clock.advance(seconds=601)


STATES = (
    new,
    asked_versions,
    chosen,
    chosen_for_bare_tokens,
    half_way,
    half_way_with_bare_tokens,
    logged_in,
    repeating,
    ended,
)


def expected(state, name):
    if state is new:
        return SERVED if name in {"ApiVersions", "SaslHandshake"} else CLOSED
    if state in {asked_versions, ended}:
        return SERVED if name == "SaslHandshake" else CLOSED
    if state in {chosen, half_way, repeating}:
        # A token may be wrong here; it is taken as one.
        return SERVED if name == "SaslAuthenticate" else REFUSED
    if state in {chosen_for_bare_tokens, half_way_with_bare_tokens}:
        return CLOSED  # Taken for a token, which it is not.
    return SERVED


@pytest.fixture(scope="module")
def broker():
    with Broker(config=SETTINGS) as broker:
        yield broker


def outcome(wire, route):
    request = SAMPLES[route.name]("t", bytes(16), "", b"")
    version = route.max_version
    wire.send(route.api, version, request)
    answer = wire.receive()
    if answer is None:
        return CLOSED
    codes = list(error_codes(answer))
    # A request for a re-authentication is allowed; other errors of the state are refusals.
    is_refusal = ILLEGAL_SASL_STATE in codes or (route.name in EMPTY and not codes)
    return REFUSED if is_refusal and wire.is_closed_soon else SERVED


@pytest.mark.parametrize("state", STATES)
def test_every_request_in_every_state(broker, state):
    found, wanted = {}, {}
    for route in broker.server.routes:
        with Wire(broker) as wire:
            state(wire)
            found[route.name] = outcome(wire, route)
            wanted[route.name] = expected(state, route.name)
    assert found == wanted
