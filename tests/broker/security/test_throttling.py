"""Throttling: the response to a client over its quota, and the pause after it."""

from math import ceil

import pytest

from barnabas.broker.client.dialing import connect
from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.runtime.clock import monotonic
from barnabas.testing import Broker
from tests.broker.data_plane import Named, batch, fetch_request
from tests.requests import produce_request
from tests.waiting import wait_until

LIMIT = 1000.0
EVERYTHING = MetadataRequest(topics=[])


class Client:
    """One connection to a broker."""

    def __init__(self, broker, client_id):
        self.socket = connect(broker.address, 20)
        self.connection = ClientConnection(client_id)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, api, version, request, **kwargs):
        _, chunks = self.connection.request(api, version, request, **kwargs)
        self.socket.sendall(b"".join(map(bytes, chunks)))

    def receive(self, timeout=60):
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
        """Whether no response arrives for a moment."""
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


@pytest.fixture
def still(broker):
    """Return the broker with a clock that is constant between two calls of ``advance``."""
    clock = broker._manual_clock

    def stop():
        # A whole number of seconds: differences of two times are exact then.
        clock._skipped, clock._running = float(ceil(clock.monotonic())), False

    broker.call(stop)
    return broker


def limit(broker, key, value=LIMIT, client_id="limited"):
    entry = EntryData([EntityData("client-id", client_id)], [OpData(key, value or 0.0, not value)])
    with Client(broker, "admin") as admin:
        answer = admin.ask(ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([entry]))
    assert [each.error_code for each in answer.entries] == [0]


def produce(size, acks=-1, topic="t"):
    records = batch(b"x" * size)
    return produce_request({(topic, 0): records}, acks=acks)


def test_throttled_producer_is_not_served_until_it_has_waited(still):
    limit(still, "producer_byte_rate")
    with Client(still, "limited") as client, Client(still, "other") as other:
        answer = client.ask(PRODUCE, 9, produce(15_000))
        # Written, and acknowledged at once.
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert 4_500 < answer.throttle_time_ms < 5_500
        client.send(METADATA, 12, EVERYTHING)
        assert client.is_silent()
        assert other.ask(METADATA, 12, EVERYTHING).brokers
        still.clock.advance(seconds=6)
        assert client.receive().brokers


def test_produce_with_acks_0_counts_for_quota(still):
    limit(still, "producer_byte_rate")
    with Client(still, "limited") as client:
        client.send(PRODUCE, 9, produce(15_000, acks=0), expects_response=False)
        client.send(METADATA, 12, EVERYTHING)
        assert client.is_silent()
        still.clock.advance(seconds=6)
        assert client.receive().brokers


def test_acks_0_produce_that_is_inspected_on_a_thread_is_charged(still):
    still.create_topic("large", configs={"max.message.bytes": "4000000"})
    limit(still, "producer_byte_rate", 200_000.0)
    with Client(still, "limited") as client:
        client.send(PRODUCE, 9, produce(3_000_000, acks=0, topic="large"), expects_response=False)
        client.send(METADATA, 12, EVERYTHING)
        assert client.is_silent()
        still.clock.advance(seconds=6)
        assert client.receive().brokers
    log = still.server.catalogue.topics["large"].partitions[0].log
    assert log.next_offset == 1


def test_acks_0_produce_whose_error_closes_the_connection_is_charged(still):
    limit(still, "producer_byte_rate")
    with Client(still, "limited") as client:
        client.send(PRODUCE, 9, produce(15_000, acks=0, topic="none"), expects_response=False)
        assert client.socket.recv(1) == b""
    with Client(still, "limited") as client:
        assert client.ask(PRODUCE, 9, produce(10)).throttle_time_ms > 4_000


def test_a_debt_is_carried_by_a_new_connection(still):
    limit(still, "producer_byte_rate")
    with Client(still, "limited") as client:
        client.ask(PRODUCE, 9, produce(15_000))
    with Client(still, "limited") as client:
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


def test_time_counts_for_every_request_and_throttles_for_a_second_at_most(still):
    limit(still, "request_percentage", 1e-9)
    with Client(still, "limited") as client:
        answers = [client.ask(API_VERSIONS, 3, ApiVersionsRequest("c", "1"))]
        assert answers[0].throttle_time_ms == 1000
        client.send(METADATA, 12, EVERYTHING)
        assert client.is_silent()
        still.clock.advance(seconds=1)
        assert client.receive().throttle_time_ms == 1000


def fetched(answer):
    return [each.records for topic in answer.responses for each in topic.partitions]


def fetch(session=(0, 0), wait_ms=0, **settings):
    return fetch_request(12, (Named("t"), (0, 0)), session=session, max_wait_ms=wait_ms, **settings)


def filled(broker, size, count):
    with Client(broker, "other") as other:
        for _ in range(count):
            other.ask(PRODUCE, 9, produce(size))
    # What is partly in the segment files and partly in memory only may come in two answers.
    log = broker.server.catalogue.topics["t"].partitions[0].log
    wait_until(lambda: broker.call(lambda: not log.unflushed))


def test_a_reader_gets_nothing_beyond_its_limit_and_all_of_it_later(still):
    filled(still, 4000, 4)
    limit(still, "consumer_byte_rate")
    with Client(still, "limited") as client:
        answer = client.ask(FETCH, 12, fetch())
        assert 8_000 < sum(map(len, fetched(answer))) <= 10_000  # Of 16,000: what windows allow.
        assert answer.session_id > 0
        assert answer.throttle_time_ms == 0
        refused = client.ask(FETCH, 12, fetch())
        assert refused.responses == []
        assert refused.session_id == 0
        assert refused.error_code == 0
        assert refused.throttle_time_ms > 5_000
        client.send(FETCH, 12, fetch())
        assert client.is_silent()
        still.clock.advance(seconds=12)
        assert fetched(client.receive()) == fetched(answer)
    assert still.call(lambda: len(still.server.fetch_sessions)) == 2


def test_fetch_session_continues_after_throttling(still):
    filled(still, 4000, 4)
    limit(still, "consumer_byte_rate")
    with Client(still, "limited") as client:
        first = client.ask(FETCH, 12, fetch())
        session = first.session_id
        refused = client.ask(FETCH, 12, fetch(session=(session, 1)))
        assert (refused.error_code, refused.session_id, refused.responses) == (0, session, [])
        still.clock.advance(seconds=12)
        again = client.ask(FETCH, 12, fetch(session=(session, 2)))
        assert fetched(again) == fetched(first)


def test_a_fetch_that_was_parked_counts_too(still):
    filled(still, 9000, 1)
    limit(still, "consumer_byte_rate")
    with Client(still, "limited") as client:
        assert fetched(client.ask(FETCH, 12, fetch()))
        client.send(FETCH, 12, fetch_request(12, (Named("t"), (0, 1)), max_wait_ms=20_000))
        assert client.is_silent()
        filled(still, 9000, 1)
        refused = client.receive()
        assert refused.responses == []
        assert refused.throttle_time_ms > 5_000


def new_topics(*names, partitions=1, validate_only=False):
    return CreateTopicsRequest(
        [CreatableTopic(name, partitions, 1) for name in names], 10_000, validate_only
    )


def test_client_over_mutation_quota_is_refused(still):
    limit(still, "controller_mutation_rate", 1.0)
    with Client(still, "limited") as client:
        answer = client.ask(CREATE_TOPICS, 7, new_topics("many", partitions=20))
        assert [each.error_code for each in answer.topics] == [0]
        assert answer.throttle_time_ms == 9_000
    with Client(still, "limited") as client:  # Not muted itself, but it shares the quota.
        answer = client.ask(CREATE_TOPICS, 7, new_topics("refused"))
        assert [each.error_code for each in answer.topics] == [89]
        assert answer.throttle_time_ms == 9_000
        still.clock.advance(seconds=9)
        answer = client.ask(CREATE_TOPICS, 7, new_topics("next", partitions=3))
        assert [each.error_code for each in answer.topics] == [0]
        assert answer.throttle_time_ms == 3_000
        still.clock.advance(seconds=3)
        answer = client.ask(DELETE_TOPICS, 6, DeleteTopicsRequest([DeleteTopicState("many")]))
        assert [each.error_code for each in answer.responses] == [0]
        assert answer.throttle_time_ms == 20_000
    with Client(still, "limited") as client:
        grow = CreatePartitionsRequest([CreatePartitionsTopic("next", 5, None)], 10_000)
        answer = client.ask(CREATE_PARTITIONS, 3, grow)
        assert [each.error_code for each in answer.results] == [89]
    with Client(still, "limited") as client:
        still.clock.advance(seconds=20)
        answer = client.ask(CREATE_PARTITIONS, 3, grow)
        assert [each.error_code for each in answer.results] == [0]
        assert answer.throttle_time_ms == 2_000
    assert still.call(lambda: still.server.catalogue.topic("refused")) is None


def test_an_old_client_is_slowed_where_a_new_one_is_refused(still):
    limit(still, "controller_mutation_rate", 1.0)
    with Client(still, "limited") as client:
        assert client.ask(CREATE_TOPICS, 5, new_topics("many", partitions=20)).throttle_time_ms
    with Client(still, "limited") as client:
        answer = client.ask(CREATE_TOPICS, 5, new_topics("more", partitions=2))
        assert [each.error_code for each in answer.topics] == [0]
        assert answer.throttle_time_ms > 2_000


def test_validated_or_refused_changes_do_not_count_for_quota(broker):
    limit(broker, "controller_mutation_rate", 1.0)
    with Client(broker, "limited") as client:
        checked = new_topics("many", partitions=500, validate_only=True)
        assert client.ask(CREATE_TOPICS, 7, checked).throttle_time_ms == 0
        answer = client.ask(CREATE_TOPICS, 7, new_topics("t", "bad name", partitions=500))
        assert [each.error_code for each in answer.topics] == [36, 17]
        assert answer.throttle_time_ms == 0


def test_a_throttled_client_that_leaves_leaves_nothing_behind(broker):
    limit(broker, "producer_byte_rate")
    with Client(broker, "limited") as client:
        client.ask(PRODUCE, 9, produce(15_000))
    wait_until(lambda: broker.call(lambda: not broker.server.sockets.connections))
    broker.clock.advance(seconds=60)


def test_a_broker_stops_while_a_client_is_throttled(broker):
    limit(broker, "producer_byte_rate")
    with Client(broker, "limited") as client:
        waits_s = client.ask(PRODUCE, 9, produce(130_000)).throttle_time_ms / 1000
        assert waits_s > 100
        begun = monotonic()
        broker.stop()
        assert monotonic() - begun < waits_s / 2
