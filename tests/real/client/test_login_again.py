"""An expiring login is repeated on the same connection, also with requests under way (KIP-368)."""

from __future__ import annotations

import time

import pytest

from barnabas.broker.client import connection as client_connection
from barnabas.broker.client.brokers import Brokers
from barnabas.broker.client.errors import NotLetIn, Unreachable
from barnabas.broker.client.security import security_of
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.testing import Broker
from tests.broker.metrics.scrape import scrape
from tests.issuer import token
from tests.secured import MECHANISMS, broker_settings, login, token_login, trusting
from tests.token_server import TokenServerForTests, client_credentials

LIFETIME_MS = 60_000


@pytest.fixture
def broker(keys):
    settings = broker_settings(keys, {"SASL_TLS": 0}) | {
        "connections.max.reauth.ms": str(LIFETIME_MS)
    }
    with Broker(config=settings) as broker:
        yield broker


def brokers_of(broker, settings):
    return Brokers([broker.address], "test", 20, security=security_of(settings, {}))


def handshakes(broker):
    routes = broker.server.routes
    return next(route.requests for route in routes if route.name == "SaslHandshake")


def accepted(broker):
    return int(scrape(broker)("barnabas_connections_accepted_total"))


@pytest.fixture
def now_s(monkeypatch):
    """Return a function that advances the client's clock; the broker has another one."""
    now = [time.monotonic()]
    monkeypatch.setattr(client_connection, "monotonic", lambda: now[0])

    def go_on(seconds):
        now[0] += seconds

    return go_on


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login_is_repeated_in_time(broker, keys, now_s, mechanism):
    own = token_login(keys.token) if mechanism == "OAUTHBEARER" else login(mechanism)
    with brokers_of(broker, trusting(keys, "SASL_SSL") | own) as brokers:
        connection = brokers.any()
        for logins in (1, 2, 3):
            assert connection.ask(METADATA, MetadataRequest()).cluster_id
            assert handshakes(broker) == logins
            time.sleep(1.05)  # A broker takes no second login within a second.
            now_s(LIFETIME_MS / 1000 * 0.8)
            connection.ask(METADATA, MetadataRequest())
            assert handshakes(broker) == logins
            now_s(LIFETIME_MS / 1000 * 0.06)
        assert accepted(broker) == 1


def test_answers_that_are_under_way_are_kept(broker, keys, now_s):
    """The responses arrive before the login, and belong to earlier requests."""
    settings = trusting(keys, "SASL_SSL") | login("SCRAM-SHA-512")
    with brokers_of(broker, settings) as brokers:
        connection = brokers.any()
        connection.send(METADATA, MetadataRequest())
        connection.send(LIST_TRANSACTIONS, ListTransactionsRequest([], []))
        time.sleep(1.05)
        now_s(LIFETIME_MS / 1000)
        connection.send(METADATA, MetadataRequest())
        assert handshakes(broker) == 2
        assert connection.in_flight == 3
        assert connection.receive(METADATA).cluster_id
        assert connection.receive(LIST_TRANSACTIONS).error_code == 0
        assert connection.in_flight == 1
        assert connection.receive(METADATA).cluster_id
        assert connection.in_flight == 0


def test_a_login_that_is_not_taken_again(broker, keys, now_s):
    """The token in the file has become a bad one."""
    path = keys.write("renewed", token("alice"))
    with brokers_of(broker, trusting(keys, "SASL_SSL") | token_login(path)) as brokers:
        connection = brokers.any()
        connection.ask(METADATA, MetadataRequest())
        keys.write("renewed", "aaa.bbb.ccc")
        time.sleep(1.05)
        now_s(LIFETIME_MS / 1000)
        with pytest.raises(NotLetIn, match="login by OAUTHBEARER: "):
            connection.ask(METADATA, MetadataRequest())
        assert not connection.is_open
        keys.write("renewed", token("alice"))
        assert brokers.any().ask(METADATA, MetadataRequest()).cluster_id


@pytest.mark.slow
def test_token_near_its_expiry_is_fetched_again(broker, keys):
    """A session ends with its token unless the broker limits sessions."""
    with TokenServerForTests(lifetime_s=15) as server:
        settings = trusting(keys, "SASL_SSL") | client_credentials(server.url)
        with brokers_of(broker, settings) as brokers:
            connection = brokers.any()
            deadline = time.monotonic() + 60
            while handshakes(broker) < 3 and time.monotonic() < deadline:
                assert connection.ask(METADATA, MetadataRequest()).cluster_id
                time.sleep(0.1)
        assert handshakes(broker) == 3
        assert accepted(broker) == 1
        # One for each session: no session started with a token of another.
        assert len(server.requests) == 3


def test_a_token_that_holds_is_used_for_several_logins(broker, keys, now_s):
    with TokenServerForTests() as server:
        settings = trusting(keys, "SASL_SSL") | client_credentials(server.url)
        with brokers_of(broker, settings) as brokers:
            connection = brokers.any()
            for logins in (1, 2, 3):
                connection.ask(METADATA, MetadataRequest())
                assert handshakes(broker) == logins
                time.sleep(1.05)
                now_s(LIFETIME_MS / 1000)
        assert len(server.requests) == 1


def test_connection_lost_before_a_new_login_is_unreachable(broker, keys, now_s):
    with brokers_of(broker, trusting(keys, "SASL_SSL") | login("PLAIN")) as brokers:
        connection = brokers.any()
        connection.ask(METADATA, MetadataRequest())
        broker.stop()
        now_s(LIFETIME_MS / 1000)
        with pytest.raises(Unreachable):
            connection.ask(METADATA, MetadataRequest())
        assert not connection.is_open
