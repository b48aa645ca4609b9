"""Limits on password guessing, and that other clients do not notice them."""

from urllib.error import HTTPError
from urllib.request import Request

import pytest

from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.sasl import failed_logins
from barnabas.broker.security.sasl.failed_logins import FailedLogins
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.testing import Broker
from tests.broker.metrics.scrape import scrape
from tests.broker.security.wire import ALICE, Wire
from tests.http_client import urlopen

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{MODULE} required user_alice=secret;",
    "connection.failed.authentication.delay.ms": "20",
}
WRONG = b"\0alice\0wrong"


def counting(**changes):
    clock = ManualClock()
    given = {"per_address": 3, "held_back": 2, "delay_ms": 100, **changes}
    return FailedLogins(clock, **given), clock


def test_an_address_has_so_many_failures_in_a_minute():
    found, clock = counting()
    for _ in range(3):
        assert found.may_try("a")
        found.failed("a")
    assert not found.may_try("a")
    assert found.may_try("b")
    clock.advance(seconds=19)
    assert not found.may_try("a")
    clock.advance(seconds=1)
    assert found.may_try("a")
    found.failed("a")
    assert not found.may_try("a")
    clock.advance(hours=1)
    for _ in range(3):  # Not more than there were at first.
        assert found.may_try("a")
        found.failed("a")
    assert not found.may_try("a")
    assert found.count == 7


def test_failures_beyond_the_limit_do_not_prolong_it():
    found, clock = counting()
    for _ in range(100):
        found.failed("a")
    clock.advance(seconds=20)
    assert found.may_try("a")


def test_addresses_are_remembered_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(failed_logins, "ADDRESSES_MAX", 3)
    found, _ = counting(per_address=1)
    for address in "abcad":
        found.failed(address)
    assert [found.may_try(address) for address in "abcd"] == [False, True, False, False]


def test_few_answers_are_held_back_at_a_time():
    found, clock = counting()
    assert [found.hold_back() for _ in range(4)] == [100, 100, 0, 0]
    clock.advance(milliseconds=100)
    assert [found.hold_back() for _ in range(3)] == [100, 100, 0]


# ------------------------------------------------------------------------------- over real sockets


def guess(broker, token=WRONG):
    """Return the error code of an attempt, or None if the connection was closed instead."""
    with Wire(broker) as wire:
        try:
            wire.send(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
            if wire.receive() is None:
                return None
            answer = wire.ask(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(token))
        except ConnectionError:
            return None
        return None if answer is None else answer.error_code


@pytest.fixture
def limited():
    with Broker(config=SETTINGS | {"barnabas.login.failures.per.address.max": "5"}) as broker:
        yield broker


def test_address_with_too_many_failures_is_refused_for_a_while(limited):
    with Wire(limited) as before, Wire(limited) as half_way:
        assert before.log_in().error_code == 0
        assert half_way.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")).error_code == 0
        assert [guess(limited) for _ in range(5)] == [ErrorCode.SASL_AUTHENTICATION_FAILED] * 5
        assert guess(limited) is None
        # The right password, too: whether it is shows by nothing.
        assert guess(limited, ALICE) is None
        half_way.send(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(ALICE))
        assert half_way.is_closed
        # Open sessions continue, and the other listener needs no login.
        assert before.ask(METADATA, 12, MetadataRequest()).cluster_id
        open_to_all = limited.server.listeners[1].bound
        with Wire(limited, open_to_all) as wire:
            assert wire.ask(METADATA, 12, MetadataRequest()).cluster_id
        limited.clock.advance(seconds=12)
        assert guess(limited, ALICE) == 0


def http_status(broker, authorization):
    host, port = broker.server.http.address
    asked = Request(f"http://{host}:{port}/metrics", headers={"Authorization": authorization})
    try:
        with urlopen(asked, timeout=60) as answer:
            return answer.status
    except HTTPError as refused:
        return refused.code


def test_wrong_passwords_over_http_lock_out_no_kafka_client():
    settings = SETTINGS | {
        "barnabas.login.failures.per.address.max": "5",
        "barnabas.http.listener": "127.0.0.1:0",
        "barnabas.http.bearer.token": "t0ken",
    }
    with Broker(config=settings) as broker:
        assert [http_status(broker, "Bearer wrong") for _ in range(7)] == [401] * 5 + [429] * 2
        assert http_status(broker, "Bearer t0ken") == 200
        assert guess(broker, ALICE) == 0
        assert broker.server.sockets.failed_logins.count == 5
        assert [guess(broker) for _ in range(5)] == [ErrorCode.SASL_AUTHENTICATION_FAILED] * 5
        assert guess(broker, ALICE) is None


def test_bare_tokens_are_guesses_too(limited, caplog):
    with Wire(limited) as half_way, Wire(limited) as short:
        for each in (half_way, short):
            each.ask(SASL_HANDSHAKE, 0, SaslHandshakeRequest("PLAIN"))
        for _ in range(5):
            with Wire(limited) as wire:
                wire.ask(SASL_HANDSHAKE, 0, SaslHandshakeRequest("PLAIN"))
                assert wire.bare(WRONG) is None
        assert guess(limited, ALICE) is None
        assert half_way.bare(ALICE) is None
        assert short.bare(b"") is None
    # What is in a token is no name of an API.
    assert "api=" not in caplog.text
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_failure_counts_without_waiting_for_response(limited):
    for number in range(1, 6):
        with Wire(limited) as wire:
            wire.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
            wire.send(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(WRONG))
            while scrape(limited)("barnabas_login_failures_total") < number:
                pass
    assert guess(limited, ALICE) is None


def test_more_failures_than_may_wait_are_answered_at_once():
    settings = SETTINGS | {
        "connection.failed.authentication.delay.ms": "600000",
        "barnabas.login.failures.delayed.max": "3",
    }
    with Broker(config=settings) as broker:
        waiting = [Wire(broker) for _ in range(3)]
        for wire in waiting:
            wire.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
            wire.send(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(WRONG))
        while scrape(broker)("barnabas_login_failures_total") < 3:
            pass
        assert guess(broker) == ErrorCode.SASL_AUTHENTICATION_FAILED
        for wire in waiting:
            wire.socket.settimeout(0.05)
            with pytest.raises(TimeoutError):
                wire.socket.recv(1)
        broker.clock.advance(seconds=600)
        for wire in waiting:
            wire.socket.settimeout(20)
            assert wire.receive().error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert wire.is_closed
            wire.socket.close()
