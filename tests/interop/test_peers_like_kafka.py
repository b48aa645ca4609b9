"""Apache Kafka gets a broker's requests to a broker: our tags do no harm and change no response.

`make nightly` sends them to Apache Kafka by the client of our brokers. `make test` compares the
bytes of requests with tags with those that Apache Kafka took when its answers were recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest

from barnabas.broker.client.security import security_of
from barnabas.broker.cluster.peers.client import PeerClient
from barnabas.broker.cluster.peers.connection import Network
from barnabas.broker.cluster.peers.interface import Limits, NoAnswer, Purpose
from barnabas.broker.runtime.clock import SystemClock
from barnabas.coordinator.transactions.state import CLASSIC
from barnabas.protocol.client import ClientConnection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest, PeerHello
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.counterparts.protected import ProtectedBarnabas, ProtectedKafka
from tests.counterparts.wire_client import WireClient
from tests.crash.transaction_client import Producer
from tests.interop.recorded_kafka import plain
from tests.requests import create_topic
from tests.secured import Keys, login, trusting
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)

NONE = ErrorCode.NONE
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
TOPIC = "t"
KEY = "id"
PID = 5000
NODE = 1
SESSIONS = count(1)
WAYS = {
    "PLAINTEXT": ("PLAIN", lambda keys: trusting(keys, "PLAINTEXT")),
    "SSL": ("TLS", lambda keys: trusting(keys, "SSL")),
    "SASL_PLAINTEXT": ("SASL", lambda keys: trusting(keys, "SASL_PLAINTEXT") | login("PLAIN")),
    "SASL_SSL": (
        "SASL_TLS",
        lambda keys: trusting(keys, "SASL_SSL") | login("SCRAM-SHA-512"),
    ),
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def live_kafka(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from serving(ProtectedKafka(keys, tmp_path_factory.mktemp("kafka")))


@pytest.fixture(scope="module")
def barnabas(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from serving(ProtectedBarnabas(keys, tmp_path_factory.mktemp("barnabas")))


@pytest.fixture(
    scope="module",
    params=[pytest.param("live_kafka", marks=pytest.mark.nightly), "barnabas"],
)
def broker(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def serving(broker: Any) -> Iterator[Any]:
    """Start a broker with a topic of three partitions; one of them is in an open transaction."""
    with broker as running:
        with WireClient(running) as client:
            create_topic(client, TOPIC, 3)
            find = partial(client.ask, FIND_COORDINATOR, FindCoordinatorRequest(KEY, 1), 3)
            wait_until(lambda: find().error_code == NONE)
            running.producer = Producer(client, KEY, CLASSIC, timeout_ms=900_000)
            running.producer.begin((TOPIC, 0))
            # Apache Kafka leads one partition after the other.
            write = partial(client.ask, WRITE_TXN_MARKERS, markers(1, 2), 2)
            wait_until(lambda: codes(write()) == [NONE, NONE])
        yield running


def markers(*indexes: int, leader_epoch: int = -1) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic(TOPIC, list(indexes), leader_epoch)]
    return WriteTxnMarkersRequest([WritableTxnMarker(PID, 1, True, topics, 0, 2)])


def codes(answer: Any) -> list[int]:
    partitions = answer.markers[0].topics[0].partitions
    return [each.error_code for each in sorted(partitions, key=lambda each: each.partition_index)]


def verification(producer: Producer) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(TOPIC, [0, 1])]
    transaction = AddPartitionsToTxnTransaction(
        KEY, producer.producer_id, producer.epoch, True, topics
    )
    return AddPartitionsToTxnRequest([transaction])


def verified(answer: Any) -> dict[int, int]:
    assert answer.error_code == NONE
    partitions = answer.results_by_transaction[0].topic_results[0].results_by_partition
    return {each.partition_index: each.partition_error_code for each in partitions}


class Asking:
    """A broker's client for another broker."""

    def __init__(self, broker: Any, keys: Keys, way: str) -> None:
        listener, settings = WAYS[way]
        security = security_of(settings(keys), {})
        host, _, port = broker.servers(listener).rpartition(":")
        limits = Limits()
        self.client = PeerClient(
            node_id=2,
            session=next(SESSIONS),
            address_of=lambda node: (host, int(port)) if node == NODE else None,
            transport=Network(lambda: security, limits),
            clock=SystemClock(),
            limits=limits,
        )

    async def ask(self, purpose: Purpose, api: Any, version: int, request: Any) -> Any:
        told = asyncio.get_running_loop().create_future()
        self.client.ask(NODE, purpose, api, version, request, told.set_result, timeout_ms=90_000)
        answer = await told
        assert not isinstance(answer, NoAnswer), answer
        return answer


@pytest.mark.parametrize("version", [3, 4])
def test_a_hello_changes_nothing_in_the_answer(broker, version):
    with WireClient(broker) as client:
        plain = client.ask(API_VERSIONS, ApiVersionsRequest("barnabas", "1"), version)
        hello = PeerHello(2, next(SESSIONS), "markers", 1)
        said = client.ask(API_VERSIONS, ApiVersionsRequest("barnabas", "1", hello), version)
        assert plain.error_code == NONE
        # Apache Kafka counts its metadata's offset here, which grows by itself.
        assert said.finalized_features_epoch >= plain.finalized_features_epoch
        said.finalized_features_epoch = plain.finalized_features_epoch
        assert said == plain


@pytest.mark.parametrize("way", WAYS)
async def test_questions_of_brokers_are_answered(broker, keys, way):
    asking = Asking(broker, keys, way)
    for version in (4, 5):
        request = verification(broker.producer)
        answer = await asking.ask(Purpose.VERIFICATION, ADD_PARTITIONS_TO_TXN, version, request)
        assert verified(answer) == {0: NONE, 1: ErrorCode.TRANSACTION_ABORTABLE}
    for version in (1, 2):
        # An epoch that differs from the leader's; Apache Kafka ignores a tag that it does not know.
        another = NONE if isinstance(broker, ProtectedKafka) else NOT_LEADER
        for leader_epoch, code in ((-1, NONE), (0, another)):
            request = markers(1, 2, leader_epoch=leader_epoch)
            answer = await asking.ask(Purpose.MARKERS, WRITE_TXN_MARKERS, version, request)
            assert codes(answer) == [code, code]
    await asking.client.close()


async def test_one_topic_may_be_named_once_for_each_epoch(broker, keys):
    """Partitions of one topic may be led in several epochs."""
    asking = Asking(broker, keys, "PLAINTEXT")
    topics = [WritableTxnMarkerTopic(TOPIC, [index], index) for index in (1, 2)]
    request = WriteTxnMarkersRequest([WritableTxnMarker(PID, 1, True, topics, 0, 2)])
    answer = await asking.ask(Purpose.MARKERS, WRITE_TXN_MARKERS, 2, request)
    found = {
        partition.partition_index: partition.error_code
        for topic in answer.markers[0].topics
        for partition in topic.partitions
    }
    # Barnabas is in its first epoch.
    assert found == {1: NONE, 2: NONE if isinstance(broker, ProtectedKafka) else NOT_LEADER}
    await asking.client.close()


def tagged_requests() -> dict[str, tuple[Any, int, Any]]:
    """Every kind of request with a tag that Apache Kafka does not know."""
    hello = ApiVersionsRequest("barnabas", "1", PeerHello(2, 1, "markers", 1))
    topics = [WritableTxnMarkerTopic(TOPIC, [index], index) for index in (1, 2)]
    epochs = WriteTxnMarkersRequest([WritableTxnMarker(PID, 1, True, topics, 0, 2)])
    return {
        "hello v3": (API_VERSIONS, 3, hello),
        "hello v4": (API_VERSIONS, 4, hello),
        "markers v1": (WRITE_TXN_MARKERS, 1, markers(1, 2, leader_epoch=0)),
        "markers v2": (WRITE_TXN_MARKERS, 2, markers(1, 2, leader_epoch=0)),
        "markers of two epochs": (WRITE_TXN_MARKERS, 2, epochs),
    }


def bytes_of(api: Any, version: int, request: Any) -> bytes:
    _, chunks = ClientConnection("peer").request(api, version, request)
    return b"".join(map(bytes, chunks))


def codes_by_request(broker: Any) -> dict[str, Any]:
    """The bytes of each request, and the error codes of its answer."""
    found = {}
    with WireClient(broker) as client:
        for label, (api, version, request) in tagged_requests().items():
            answer = client.ask(api, request, version)
            if api is API_VERSIONS:
                errors = [answer.error_code]
            else:
                topics = [topic for each in answer.markers for topic in each.topics]
                errors = [one.error_code for topic in topics for one in topic.partitions]
            found[label] = {"request": bytes_of(api, version, request), "errors": errors}
    return found


def test_requests_with_tags_are_those_that_kafka_took(kafka):
    recorded = kafka.observe("requests with tags", codes_by_request)
    sent = {label: plain(bytes_of(*each)) for label, each in tagged_requests().items()}
    assert {label: each["request"] for label, each in recorded.items()} == sent
    assert {code for each in recorded.values() for code in each["errors"]} == {NONE}
