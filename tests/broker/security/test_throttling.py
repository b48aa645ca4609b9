"""A client that has used more than it may: what it is told, and that it is not served meanwhile."""

import socket
import time

import pytest

from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.testing import Broker
from tests.broker.data_plane import batch

LIMIT = 1000.0
EVERYTHING = MetadataRequest(topics=[])


class Client:
    """One connection to a broker."""

    def __init__(self, broker, client_id):
        self.socket = socket.create_connection(broker.address, 20)
        self.connection = ClientConnection(client_id)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, api, version, request, **kwargs):
        _, chunks = self.connection.request(api, version, request, **kwargs)
        self.socket.sendall(b"".join(map(bytes, chunks)))

    def receive(self, timeout=20):
        self.socket.settimeout(timeout)
        while (answer := self.connection.next_response()) is NEED_DATA:
            data = self.socket.recv(65536)
            assert data, "the broker hung up"
            self.connection.receive_data(data)
        return answer[1]

    def ask(self, api, version, request):
        self.send(api, version, request)
        return self.receive()

    def is_silent(self):
        """Whether nothing comes back for a moment."""
        try:
            self.receive(timeout=0.2)
        except TimeoutError:
            return True
        return False


@pytest.fixture
def broker():
    with Broker() as broker:
        broker.create_topic("t")
        yield broker


def limit(broker, key, value=LIMIT, client_id="limited"):
    entry = EntryData([EntityData("client-id", client_id)], [OpData(key, value or 0.0, not value)])
    with Client(broker, "admin") as admin:
        answer = admin.ask(ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([entry]))
    assert [each.error_code for each in answer.entries] == [0]


def produce(size, acks=-1):
    records = batch(b"x" * size)
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(0, records)])],
    )


def test_a_producer_is_told_and_not_served_until_it_has_waited(broker):
    limit(broker, "producer_byte_rate")
    with Client(broker, "limited") as client, Client(broker, "other") as other:
        answer = client.ask(PRODUCE, 9, produce(15_000))
        # Written all the same, and answered at once.
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert 4_500 < answer.throttle_time_ms < 5_500
        client.send(METADATA, 12, EVERYTHING)
        assert client.is_silent()
        assert other.ask(METADATA, 12, EVERYTHING).brokers
        broker.clock.advance(seconds=6)
        assert client.receive().brokers


def test_what_is_sent_without_an_answer_counts_too(broker):
    limit(broker, "producer_byte_rate")
    with Client(broker, "limited") as client:
        client.send(PRODUCE, 9, produce(15_000, acks=0), expects_response=False)
        client.send(METADATA, 12, EVERYTHING)
        assert client.is_silent()
        broker.clock.advance(seconds=6)
        assert client.receive().brokers


def test_a_debt_is_carried_by_a_new_connection(broker):
    limit(broker, "producer_byte_rate")
    with Client(broker, "limited") as client:
        client.ask(PRODUCE, 9, produce(15_000))
    with Client(broker, "limited") as client:
        assert client.ask(PRODUCE, 9, produce(10)).throttle_time_ms > 4_000


@pytest.mark.parametrize("size", [10, 20_000])
def test_a_limit_counts_at_once_and_so_does_its_end(broker, size):
    with Client(broker, "limited") as client:
        for _ in range(3):  # The shortcut knows this request by now.
            assert client.ask(PRODUCE, 9, produce(size)).throttle_time_ms == 0
        limit(broker, "producer_byte_rate", 1.0)
        assert client.ask(PRODUCE, 9, produce(size)).throttle_time_ms > 0
        broker.clock.advance(hours=10)
        limit(broker, "producer_byte_rate", None)
        for _ in range(3):
            assert client.ask(PRODUCE, 9, produce(size)).throttle_time_ms == 0


def test_time_counts_for_every_request_and_throttles_for_a_second_at_most(broker):
    limit(broker, "request_percentage", 0.0001)
    with Client(broker, "limited") as client:
        answers = [client.ask(API_VERSIONS, 3, ApiVersionsRequest("c", "1"))]
        assert answers[0].throttle_time_ms == 1000
        client.send(METADATA, 12, EVERYTHING)
        assert client.is_silent()
        broker.clock.advance(seconds=1)
        assert client.receive().throttle_time_ms == 1000


def test_a_throttled_client_that_leaves_leaves_nothing_behind(broker):
    limit(broker, "producer_byte_rate")
    with Client(broker, "limited") as client:
        client.ask(PRODUCE, 9, produce(15_000))
    deadline = time.monotonic() + 10
    while broker.call(lambda: len(broker.server.sockets.connections)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    broker.clock.advance(seconds=60)


def test_a_broker_stops_while_a_client_is_throttled(broker):
    limit(broker, "producer_byte_rate")
    with Client(broker, "limited") as client:
        client.ask(PRODUCE, 9, produce(15_000))
        begun = time.monotonic()
        broker.stop()
        assert time.monotonic() - begun < 5
