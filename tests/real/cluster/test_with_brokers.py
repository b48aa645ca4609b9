"""Requests from one broker to another, by every protocol, logged in, allowed or not."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

import pytest

from barnabas.broker.client.security import security_of
from barnabas.broker.cluster.peers.client import PeerClient
from barnabas.broker.cluster.peers.connection import Network
from barnabas.broker.cluster.peers.interface import Failure, Limits, NoAnswer, Purpose
from barnabas.broker.cluster.peers.settings import security_of_brokers
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.runtime.clock import ManualClock, SystemClock
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.testing import Broker
from tests.broker.data_plane import Wire
from tests.broker.security.access_users import AUTHORIZER
from tests.crash.transaction_client import Producer
from tests.secured import LISTENERS, MECHANISMS, MODULES, USER, Keys, broker_settings
from tests.token_server import TokenServerForTests, client_credentials

TIMEOUT_MS = 30_000
HOST = "127.0.0.1"
NODE = 1
SESSIONS = count(1)
"""Session IDs, so that no hello uses one that has ended."""


def jaas(mechanism: str) -> str:
    """The login module of brokers: they are alice."""
    if mechanism == "OAUTHBEARER":
        return f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;"
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return (
        f'{MODULES}.{module}LoginModule required username="{USER}" '
        'password="alice-secret" user_alice="alice-secret";'
    )


def settings_of(keys: Keys) -> dict[str, str]:
    """A broker with every kind of listener, whose users are super users; or brokers by ACL."""
    settings = broker_settings(keys)
    for listener in ("sasl", "sasl_tls"):
        for mechanism in MECHANISMS:
            name = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
            settings[name] = jaas(mechanism)
    return settings | {
        "authorizer.class.name": AUTHORIZER,
        "super.users": f"User:{USER};User:CN={USER};User:CN=broker",
        "sasl.oauthbearer.token.endpoint.url": f"file://{keys.token}",
    }


@pytest.fixture(scope="module")
def broker(keys):
    with Broker(config=settings_of(keys)) as running:
        yield running


@pytest.fixture(scope="module")
def open_broker():
    """A broker without access control, with a transaction that has one partition."""
    with Broker() as running:
        running.create_topic("t", 2)
        yield running


class Asking:
    """One broker's questions to another."""

    def __init__(self, address, security, *, clock=None, **limits) -> None:
        given = Limits(**limits)
        self.client = PeerClient(
            node_id=2,
            session=next(SESSIONS),
            address_of=lambda node: address if node == NODE else None,
            transport=Network(security, given),
            clock=clock or SystemClock(),
            limits=given,
        )

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_error):
        await self.client.close()

    async def ask(self, api, version, request):
        told = asyncio.get_running_loop().create_future()
        purpose = Purpose.MARKERS if api is WRITE_TXN_MARKERS else Purpose.VERIFICATION
        self.client.ask(
            NODE, purpose, api, version, request, told.set_result, timeout_ms=TIMEOUT_MS
        )
        return await told

    async def write(self, *indexes, topic="t", producer_id=5000, version=2):
        topics = [WritableTxnMarkerTopic(topic, list(indexes))]
        marker = WritableTxnMarker(producer_id, 1, True, topics, 0, 0)
        return await self.ask(WRITE_TXN_MARKERS, version, WriteTxnMarkersRequest([marker]))

    async def verify(self, producer, *indexes, version=4):
        topics = [AddPartitionsToTxnTopic("t", list(indexes))]
        transaction = AddPartitionsToTxnTransaction("id", *producer, True, topics)
        return await self.ask(
            ADD_PARTITIONS_TO_TXN, version, AddPartitionsToTxnRequest([transaction])
        )


def text_of(path: str) -> str:
    return Path(path).read_text()


def codes(answer):
    return [
        partition.error_code
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    ]


def address_of(broker, listener):
    (bound,) = (each.bound for each in broker.server.listeners if each.name == listener)
    return HOST, bound[1]


def security_at(keys, listener, mechanism="PLAIN", **changes):
    """Return the login of a broker with these settings at this listener."""
    settings = settings_of(keys) | {
        "inter.broker.listener.name": listener,
        "sasl.mechanism.inter.broker.protocol": mechanism,
    }
    settings |= changes
    config = load_config(overrides=[f"{key}={value}" for key, value in settings.items()]).config
    return lambda: security_of_brokers(config)


UNKNOWN = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
WAYS = [("TLS", ""), ("MTLS", "")] + [
    (listener, mechanism) for listener in ("SASL", "SASL_TLS") for mechanism in MECHANISMS
]


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
async def test_brokers_are_let_in_and_may_act_for_the_cluster(broker, keys, listener, mechanism):
    security = security_at(keys, listener, mechanism or "PLAIN")
    async with Asking(address_of(broker, listener), security) as asking:
        if listener == "TLS":  # No certificate is requested there, so the broker is anonymous.
            told = await asking.write(0)
            assert told.failure is Failure.NOT_LET_IN
            assert "CLUSTER_AUTHORIZATION_FAILED" in told.reason
            return
        assert codes(await asking.write(0)) == UNKNOWN
        answer = await asking.verify((1, 0), 0)
        assert answer.error_code == 0
        (result,) = answer.results_by_transaction
        assert result.topic_results[0].results_by_partition[0].partition_error_code


async def test_anonymous_client_is_refused_as_broker(broker, keys):
    async with Asking(address_of(broker, "PLAIN"), lambda: security_of({}, {})) as asking:
        told = await asking.write(0)
        assert told.failure is Failure.NOT_LET_IN
        assert not told.was_sent


@pytest.mark.parametrize(
    ("listener", "changes", "said"),
    [
        (
            "SASL",
            {"listener.name.sasl.plain.sasl.jaas.config": jaas("PLAIN").replace("-secret", "-x")},
            "login by PLAIN as alice",
        ),
        ("SASL_TLS", {"ssl.truststore.certificates": "other"}, "not signed by a trusted authority"),
        (
            "MTLS",
            {"inter.broker.listener.name": "PLAIN"},
            "the listener expects TLS",
        ),
        ("PLAIN", {"inter.broker.listener.name": "SASL"}, ""),
        ("PLAIN", {"inter.broker.listener.name": "MTLS"}, "is TLS spoken here"),
    ],
    ids=["wrong password", "not trusted", "TLS there", "no login there", "no TLS there"],
)
async def test_refused_login_reports_reason(broker, keys, listener, changes, said):
    if changes.get("ssl.truststore.certificates") == "other":
        changes = {"ssl.truststore.certificates": text_of(keys.other_trust).replace("\n", " ")}
    security = security_at(keys, listener, **changes)
    async with Asking(address_of(broker, listener), security) as asking:
        told = await asking.write(0)
        assert isinstance(told, NoAnswer)
        is_closed = "is TLS" in said  # The connection is closed without a reason.
        assert told.failure is (Failure.UNREACHABLE if is_closed else Failure.NOT_LET_IN), told
        assert said in told.reason
        assert not told.was_sent
        assert "secret" not in told.reason


async def test_invalid_login_setting_is_reported(broker, keys):
    security = security_at(keys, "SASL", "GSSAPI")
    async with Asking(address_of(broker, "SASL"), security) as asking:
        told = await asking.write(0)
        assert told.failure is Failure.NOT_LET_IN
        assert "GSSAPI" in told.reason


async def test_a_token_is_fetched_beside_the_loop(broker, keys):
    """A slow server of tokens does not block the event loop."""
    loop = asyncio.get_running_loop()
    came, goes_on = asyncio.Event(), asyncio.Event()

    def wait() -> None:
        loop.call_soon_threadsafe(came.set)
        asyncio.run_coroutine_threadsafe(goes_on.wait(), loop).result()

    with TokenServerForTests() as server:
        server.before = wait
        settings = {"security.protocol": "SASL_PLAINTEXT"} | client_credentials(server.url)
        security = security_of(settings, {})
        async with Asking(address_of(broker, "SASL"), lambda: security) as asking:
            asked = asyncio.ensure_future(asking.write(0))
            await came.wait()
            assert not asked.done()
            goes_on.set()
            assert codes(await asked) == UNKNOWN


async def test_a_login_that_ends_is_followed_by_another_connection(keys):
    settings = settings_of(keys) | {"connections.max.reauth.ms": "60000"}
    clock = ManualClock()
    async with Broker(config=settings) as broker:
        security = security_at(keys, "SASL")
        async with Asking(address_of(broker, "SASL"), security, clock=clock) as asking:
            sockets = broker.server.sockets
            for seconds, connections in ((0, 1), (50, 1), (2, 2), (50, 2)):
                clock.advance(seconds=seconds)
                assert codes(await asking.write(0)) == UNKNOWN
                assert sockets.connections_accepted == connections


async def test_stores_that_were_replaced_hold_for_the_next_connection(broker, keys):
    path = keys.write("replaced.pem", text_of(keys.other_trust))
    security = security_of(
        {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": path,
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": jaas("PLAIN"),
        },
        {},
    )
    async with Asking(address_of(broker, "SASL_TLS"), lambda: security) as asking:
        assert (await asking.write(0)).failure is Failure.NOT_LET_IN
        keys.write("replaced.pem", text_of(keys.trust))
        assert codes(await asking.write(0)) == UNKNOWN


# ---------------------------------------------------------------------------- what they do to a log


async def test_markers_are_written_and_partitions_verified(open_broker):
    with Wire(open_broker.address) as wire:
        producer = Producer(wire, "id", 0)
        producer.begin(("t", 1))
        known = (producer.producer_id, producer.epoch)
    security = security_of({}, {})
    async with Asking(open_broker.address, lambda: security) as asking:
        assert codes(await asking.write(0, producer_id=5001)) == [0]
        assert codes(await asking.write(0, producer_id=5001, version=1)) == [0]
        for version in (4, 5):
            answer = await asking.verify(known, 0, 1, version=version)
            (result,) = answer.results_by_transaction
            found = {
                each.partition_index: each.partition_error_code
                for each in result.topic_results[0].results_by_partition
            }
            assert found[1] == 0
            assert found[0] == ErrorCode.TRANSACTION_ABORTABLE
        sockets = open_broker.server.sockets
        assert len(sockets.peer_sessions) == 2


async def test_a_broker_that_restarts_is_asked_again(tmp_path):
    async with Broker(storage=tmp_path) as broker:
        await broker.create_topic("t", 1)
        security = security_of({}, {})
        async with Asking(broker.address, lambda: security, pause_max_ms=0) as asking:
            assert codes(await asking.write(0)) == [0]
            await broker.restart()
            told = await asking.write(0)
            while isinstance(told, NoAnswer):
                assert told.failure in {Failure.LOST, Failure.UNREACHABLE}
                told = await asking.write(0)
            assert codes(told) == [0]


def test_every_kind_of_listener_is_covered():
    assert {"PLAIN", *(listener for listener, _ in WAYS)} == set(LISTENERS)
