"""A connection after a failed login: its client has half a second of the clock to close it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.testing import Broker
from tests.broker.security.wire import Wire
from tests.waiting import wait_until

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
MANY_S = 3600.0
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    JAAS: f'{MODULE} required user_alice="secret";',
    "connection.failed.authentication.delay.ms": "0",
    "barnabas.login.failures.delayed.max": "3",
}
WRONG = b"\0alice\0wrong"


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    # So that nothing but the test ends the wait.
    monkeypatch.setattr("barnabas.broker.network.late_close.LEAVE_MS", MANY_S * 1000)
    with Broker(config=SETTINGS) as running:
        yield running


def fail(wire: Wire) -> None:
    response = wire.log_in(WRONG)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message


def is_open(wire: Wire) -> bool:
    wire.socket.settimeout(0.1)
    try:
        return not wire.is_closed
    except TimeoutError:
        return True
    finally:
        wire.socket.settimeout(20)


def test_client_has_time_to_close_and_nothing_else_is_served(broker: Broker) -> None:
    with Wire(broker) as wire:
        fail(wire)
        wire.send(METADATA, 12, MetadataRequest())
        wire.send(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
        wire.send(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(b"\0alice\0secret"))
        assert is_open(wire)
        broker.clock.advance(seconds=MANY_S)
        assert wire.is_closed, "without a response to what came meanwhile"


def test_connection_ends_as_soon_as_its_client_closes_it(broker: Broker) -> None:
    wires = [Wire(broker) for _ in range(3)]
    for wire in wires:
        fail(wire)
    assert len(broker.server.sockets.connections) == 3
    for wire in wires:
        wire.socket.close()
    wait_until(lambda: not broker.server.sockets.connections)
    with Wire(broker) as wire:
        fail(wire)
        assert is_open(wire), "the places are free again"


def test_no_more_connections_wait_than_responses_may_be_delayed(broker: Broker) -> None:
    wires = [Wire(broker) for _ in range(3)]
    for wire in wires:
        fail(wire)
    with Wire(broker) as wire:
        fail(wire)
        assert wire.is_closed
    assert all(map(is_open, wires))
    for wire in wires:
        wire.socket.close()


def test_client_that_sends_on_fills_its_buffer_and_no_more(broker: Broker) -> None:
    with Wire(broker) as wire:
        fail(wire)
        wire.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            wire.socket.sendall(bytes(1024 * 1024 * 1024))
        (connection,) = broker.server.sockets.connections
        assert connection.received_bytes < 10_000_000
        broker.clock.advance(seconds=MANY_S)
        wait_until(lambda: not broker.server.sockets.connections)


def test_broker_that_stops_does_not_wait(broker: Broker) -> None:
    wire = Wire(broker)
    fail(wire)
    broker.stop()
    assert wire.is_closed
    wire.socket.close()


def test_failed_bare_token_closes_the_connection_at_once(broker: Broker) -> None:
    with Wire(broker) as wire:
        wire.ask(SASL_HANDSHAKE, 0, SaslHandshakeRequest("PLAIN"))
        assert wire.bare(WRONG) is None
