"""Every client library produces and reads back what every other one produced."""

import time

import pytest
from confluent_kafka import KafkaException

from tests.counterparts.kcat import run_kcat
from tests.interop.clients import CLIENTS, Client, Confluent, Sent

pytestmark = [
    pytest.mark.timeout(600),
    # Client libraries warn about their own use of the standard library.
    pytest.mark.filterwarnings("ignore"),
]
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
BULK = tuple(Sent(b"key-%d" % (i % 7), b"value-%d-" % i + b"x" * 200) for i in range(300))
# What kcat can say; the libraries also say the rest.
PLAIN = (
    Sent(b"with-key", b"first"),
    Sent(None, b"no key"),
    Sent(b"null-value", None),
    Sent(b"headers", b"twice", (("name", b"one"), ("name", b"two"), ("empty", b""))),
    *BULK,
)
RICH = (
    *PLAIN,
    Sent(b"", b""),
    Sent(b"odd-header", b"", (("", b"empty name"), ("\u00e9", b"accent"))),
)
NULL_HEADER = Sent(b"null-header", b"", (("null", None),))
# Some libraries refuse a null header, or a record with neither key nor value, themselves.
RECORDS = {
    "kcat": PLAIN,
    "kafka-python": RICH,
    "aiokafka": (*RICH, NULL_HEADER),
    "confluent-kafka": (*RICH, NULL_HEADER, Sent(None, None)),
}


def by_name(client: Client) -> str:
    return client.name


def content(records):
    return [(record.key, record.value, tuple(record.headers)) for record in records]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("producer", CLIENTS, ids=by_name)
def test_all_clients_read_what_one_produced(broker, create_topic, producer, compression):
    topic = create_topic(partitions=3)
    records = RECORDS[producer.name]
    before_ms = int(time.time() * 1000) - 1000
    producer.produce(broker.bootstrap_servers, topic, records, compression, 1)
    for consumer in CLIENTS:
        received = consumer.consume(broker.bootstrap_servers, topic, 1, len(records))
        assert content(received) == content(records), consumer.name
        assert [record.offset for record in received] == list(range(len(records)))
        assert {record.timestamp_type for record in received} == {0}
        assert all(before_ms <= r.timestamp_ms <= time.time() * 1000 + 1000 for r in received)


@pytest.mark.parametrize("producer", CLIENTS[:3], ids=by_name)
def test_timestamps_are_kept_and_searched_exactly(broker, create_topic, producer):
    topic = create_topic()
    base_ms = int(time.time() * 1000) - 100_000
    # Out of order, two of them equal, in one batch and in several.
    deltas = [0, 500, 200, 1000, 1000, 900, 5000, 4000]
    records = [Sent(None, b"%d" % i, (), base_ms + delta) for i, delta in enumerate(deltas)]
    producer.produce(broker.bootstrap_servers, topic, records[:5], "lz4", 0)
    producer.produce(broker.bootstrap_servers, topic, records[5:], "none", 0)
    expected = {0: 0, 1: 1, 201: 1, 501: 3, 1000: 3, 1001: 6, 4500: 6, 5000: 6, 5001: -1}
    for consumer in CLIENTS:
        received = consumer.consume(broker.bootstrap_servers, topic, 0, len(records))
        assert [r.timestamp_ms for r in received] == [r.timestamp_ms for r in records]
        found = {
            delta: consumer.offset_for_time(broker.bootstrap_servers, topic, 0, base_ms + delta)
            for delta in expected
        }
        assert found == expected, consumer.name


@pytest.mark.parametrize("producer", CLIENTS[:3], ids=by_name)
def test_log_append_time_replaces_the_producers(broker, create_topic, producer):
    topic = create_topic(message_timestamp_type="LogAppendTime")
    records = [Sent(None, b"%d" % i, (), 1_000_000 + i) for i in range(20)]
    before_ms = int(time.time() * 1000)
    producer.produce(broker.bootstrap_servers, topic, records, "gzip", 0)
    after_ms = int(time.time() * 1000)
    for consumer in CLIENTS:
        received = consumer.consume(broker.bootstrap_servers, topic, 0, len(records))
        assert {record.timestamp_type for record in received} == {1}, consumer.name
        assert all(before_ms <= record.timestamp_ms <= after_ms for record in received)


@pytest.mark.parametrize("producer", CLIENTS[:3], ids=by_name)
def test_large_records(broker, create_topic, producer):
    topic = create_topic(max_message_bytes=str(6 << 20))
    records = [Sent(b"%d" % i, bytes([65 + i]) * (4 << 20)) for i in range(3)]
    producer.produce(broker.bootstrap_servers, topic, records, "none", 0)
    for consumer in CLIENTS:
        received = consumer.consume(broker.bootstrap_servers, topic, 0, len(records))
        assert content(received) == content(records), consumer.name


def test_a_record_above_the_topics_limit_is_refused(broker, create_topic):
    topic = create_topic()
    too_large = [Sent(None, b"x" * (2 << 20))]
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        Confluent().produce(broker.bootstrap_servers, topic, too_large, "none", 0)


def test_a_record_without_key_is_refused_on_a_compacted_topic(broker, create_topic):
    topic = create_topic(cleanup_policy="compact")
    with pytest.raises(KafkaException, match="INVALID_RECORD"):
        Confluent().produce(broker.bootstrap_servers, topic, [Sent(None, b"x")], "none", 0)


def test_kcat_lists_the_broker_and_its_topics(broker, create_topic):
    topic = create_topic(partitions=2)
    listing = run_kcat(["-L", "-b", broker.bootstrap_servers]).decode()
    assert f'topic "{topic}" with 2 partitions' in listing
    assert f"at {broker.bootstrap_servers}" in listing


def test_a_topic_is_created_by_the_first_record(broker, topic):
    Confluent().produce(broker.bootstrap_servers, topic, [Sent(b"k", b"v")], "none", 0)
    received = CLIENTS[0].consume(broker.bootstrap_servers, topic, 0, 1)
    assert content(received) == [(b"k", b"v", ())]
