"""Clients without a login use no connections and no memory of logged-in clients."""

from __future__ import annotations

import struct
from contextlib import ExitStack

import pytest

from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.testing import Broker
from tests.broker.security.test_listeners import SECURE
from tests.broker.security.wire import Wire
from tests.waiting import wait_until

LIMIT_BYTES = 64 << 20
LONG_TOKENS = 40
MOST = 4
CLIENTS_MAX = {"max.connections": str(MOST)}


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


def half_a_token(wire, size=500_000):
    """Choose a mechanism, and send a token without its last byte."""
    assert wire.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")).error_code == 0
    frame = struct.pack(">hhihi", 36, 0, 1, -1, size) + bytes(size)
    wire.socket.sendall((struct.pack(">i", len(frame)) + frame)[:-1])


def test_tokens_that_never_end_have_the_memory_of_strangers(stack):
    settings = SECURE | {"queued.max.request.bytes": str(LIMIT_BYTES)}
    broker = stack.enter_context(Broker(config=settings))
    user = stack.enter_context(Wire(broker))
    user.log_in()
    budget = broker.server.sockets.frame_budget
    for _ in range(LONG_TOKENS):
        wire = stack.enter_context(Wire(broker))
        wire.socket.settimeout(0.2)
        try:
            half_a_token(wire)
        except TimeoutError:
            break
    wait_until(lambda: budget.used_bytes > LIMIT_BYTES // 10)
    assert budget.used_bytes <= LIMIT_BYTES // 8 + (1 << 20)
    user.send(METADATA, 12, MetadataRequest(None))
    assert user.receive().cluster_id


def test_a_newcomer_gets_the_place_of_one_that_has_not_logged_in(stack, caplog):
    broker = stack.enter_context(Broker(config=SECURE | CLIENTS_MAX))
    user = stack.enter_context(Wire(broker))
    user.log_in()
    others = [stack.enter_context(Wire(broker)) for _ in range(MOST - 1)]
    for each in others:
        assert each.ask(API_VERSIONS, 3, ApiVersionsRequest("test", "1")).error_code == 0
        assert each.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")).error_code == 0
    newcomer = stack.enter_context(Wire(broker))
    assert newcomer.log_in().error_code == 0
    assert others[0].is_closed
    assert user.ask(METADATA, 12, MetadataRequest()).cluster_id
    assert "max.connections of 4 reached, not logged in" in caplog.text


def test_reauthenticating_client_keeps_its_connection(stack):
    settings = SECURE | CLIENTS_MAX | {"connections.max.reauth.ms": "60000"}
    broker = stack.enter_context(Broker(config=settings))
    users = [stack.enter_context(Wire(broker)) for _ in range(MOST)]
    for each in users:
        each.log_in()
        assert each.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")).error_code == 0
    assert stack.enter_context(Wire(broker)).is_closed
    assert not any(each.is_closed_soon for each in users)
