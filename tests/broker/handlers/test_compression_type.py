"""Topics with a codec of their own (compression.type): every way into them leads through it."""

from __future__ import annotations

from itertools import product

import pytest

from barnabas.protocol.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import iterate_batches
from barnabas.testing import Broker
from tests.broker.data_plane import Named, Wire, batch, created, produce_request, topic_name, values
from tests.broker.raw_producer import RawProducer
from tests.requests import alter_configs
from tests.waiting import wait_until

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
TYPES = ("uncompressed", *NAMES[1:])
LINES = [b"a line that repeats %d" % (at % 3) * 3 for at in range(40)]
TOPIC = 2
SET = 0


def create(broker, request, compression_type, suffix="", **configs):
    name = topic_name(request.node.name) + suffix
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    return created(broker, name, 3, {"compression.type": compression_type, **settings})


def alter(wire, topic, name, value):
    alter_configs(wire, TOPIC, topic.name, (name, SET, value))


def batches(wire, topic):
    """All stored batches with their headers, in as many fetches as it takes."""
    offset = 0
    while True:
        data = wire.fetch_one(topic, offset)
        if offset >= data.high_watermark:
            return
        for at, header in iterate_batches(data.records):
            yield header, data.records[at : at + header.size]
            offset = header.next_offset


def stored(wire, topic):
    """The codec of each stored batch."""
    return [header.compression for header, _ in batches(wire, topic)]


@pytest.mark.parametrize("kind", range(5), ids=TYPES)
def test_every_batch_is_stored_in_the_codec_of_its_topic(broker, wire, request, kind):
    topic = create(broker, request, TYPES[kind])
    for version, codec in product((3, 9, 13), CODECS):
        if version == 3 and codec == ZSTD:
            continue
        for _ in range(3):  # From the second on by the short way.
            answer = wire.produce(topic, batch(*LINES, compression=codec), version=version)
            assert (answer.error_code, answer.error_message) == (0, None)
    found = list(batches(wire, topic))
    assert {header.compression for header, _ in found} == {CODECS[kind]}
    assert [values(each) for _, each in found] == [LINES] * 14 * 3


def test_small_batches_sent_together_are_compressed_in_their_order(broker, wire, request):
    topic = create(broker, request, "lz4")
    sent = [b"%d" % at for at in range(200)]
    frames = [
        wire.encode(PRODUCE, produce_request(9, topic, (0, batch(value))), 9) for value in sent
    ]
    wire.socket.sendall(b"".join(frames))
    offsets = [wire.receive().responses[0].partition_responses[0].base_offset for _ in sent]
    assert offsets == list(range(200))
    assert wire.read(topic) == sent
    assert set(stored(wire, topic)) == {LZ4}


def test_requests_of_one_connection_keep_their_order_between_topics(broker, wire, request):
    """A large batch that is compressed comes before the small one that was sent behind it."""
    topic = create(broker, request, "zstd")
    large = [b"%d" % at * 50 for at in range(5000)]
    requests = (
        (topic, batch(*large)),
        (topic, batch(b"compressed already", compression=ZSTD)),
        (topic, batch(b"last")),
    )
    for to, data in requests:
        wire.send(PRODUCE, produce_request(9, to, (0, data)), 9)
    answers = [wire.receive().responses[0].partition_responses[0] for _ in requests]
    assert [each.base_offset for each in answers] == [0, 5000, 5001]
    assert wire.read(topic) == [*large, b"compressed already", b"last"]


def test_retries_get_their_first_offset(broker, wire, request):
    topic = create(broker, request, "gzip")
    producer = RawProducer(wire, "retries")
    sent = [
        producer.batch(topic, *LINES, sequence=at * len(LINES), transactional=False)
        for at in range(3)
    ]
    for _ in range(3):
        answers = [wire.produce(topic, each) for each in sent]
        assert [each.error_code for each in answers] == [0, 0, 0]
        assert [each.base_offset for each in answers] == [0, len(LINES), 2 * len(LINES)]
    gap = producer.batch(topic, b"v", sequence=9999, transactional=False)
    assert wire.produce(topic, gap).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert wire.read(topic) == LINES * 3


@pytest.mark.parametrize("version", [9, 11, 12, 13])
def test_transactions_are_compressed_like_the_rest(broker, wire, request, version):
    topic = create(broker, request, "snappy")
    producer = RawProducer(wire, request.node.name, version)
    for committed in (True, False):
        producer.add(topic, 0)
        for _ in range(3):
            assert producer.send(topic, *LINES).error_code == 0
        producer.end(commit=committed)
    ends = 2 * (len(LINES) * 3 + 1)
    wait_until(lambda: wire.fetch_one(topic, 0).last_stable_offset == ends)
    aborted_from = len(LINES) * 3 + 1
    # A response may end where the segment file ends for now: it names what its own records need.
    found = wire.fetch_one(topic, aborted_from, isolation=1)
    aborted = [(each.producer_id, each.first_offset) for each in found.aborted_transactions]
    assert aborted == [(producer.producer_id, aborted_from)]
    data = [SNAPPY] * 3
    assert stored(wire, topic) == [*data, NONE, *data, NONE]  # The markers stay as they are.


def test_the_size_limit_holds_for_what_is_sent_and_for_what_is_stored(broker, wire, request):
    topic = create(broker, request, "uncompressed", max_message_bytes="1000")
    small = batch(*LINES, compression=ZSTD)
    assert len(small) < 1000
    answer = wire.produce(topic, small)
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "compression.type = uncompressed the batch is larger" in answer.error_message
    other = create(broker, request, "zstd", "-second", max_message_bytes="1000")
    assert wire.produce(other, batch(*LINES)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert wire.produce(other, batch(*LINES[:8])).error_code == 0
    assert wire.read(topic) == []


def test_another_codec_holds_from_the_next_batch_on(broker, wire, request):
    topic = create(broker, request, "producer")
    expected = []
    for kind, codec in (("producer", NONE), ("gzip", GZIP), ("producer", NONE), ("lz4", LZ4)):
        alter(wire, topic, "compression.type", kind)
        for _ in range(2):
            assert wire.produce(topic, batch(*LINES)).error_code == 0
            expected.append(codec)
    assert stored(wire, topic) == expected


def test_levels_are_those_of_the_topic(broker, wire, request):
    topic = create(broker, request, "zstd", compression_zstd_level="-50")
    lines = [b"%d %d" % (at, at * 7919 % 1000) for at in range(2000)]
    sizes = []
    for level in ("-50", "19"):
        alter(wire, topic, "compression.zstd.level", level)
        answer = wire.produce(topic, batch(*lines))
        sizes.append(len(wire.fetch_one(topic, answer.base_offset).records))
    assert sizes[1] < 0.8 * sizes[0]


def test_append_time_and_the_codec_go_together(broker, wire, request):
    topic = create(broker, request, "gzip", message_timestamp_type="LogAppendTime")
    answer = wire.produce(topic, batch(*LINES))
    (header,) = [each for _, each in iterate_batches(wire.fetch_one(topic, 0).records)]
    assert (header.compression, header.timestamp_type) == (GZIP, 1)
    assert header.max_timestamp == answer.log_append_time_ms > 0
    assert values(wire.fetch_one(topic, 0).records) == LINES


def test_disconnected_client_leaves_the_inspector_empty(broker, wire, request):
    topic = create(broker, request, "gzip")

    def is_idle():
        return broker.call(lambda: broker.server.inspector.held_bytes) == 0

    with Wire(broker.address) as gone:
        gone.send(PRODUCE, produce_request(9, topic, (0, batch(*LINES)), acks=0), 9, answered=False)
    wait_until(is_idle)
    assert wire.produce(topic, batch(b"after")).error_code == 0
    assert wire.read(topic)[-1] == b"after"


def test_the_default_of_the_broker_is_that_of_its_topics():
    with Broker(config={"compression.type": "zstd"}) as broker, Wire(broker.address) as wire:
        broker.create_topic("defaults", 1, {})
        broker.create_topic("own", 1, {"compression.type": "producer"})
        for name, codec in (("defaults", ZSTD), ("own", NONE)):
            assert wire.produce(Named(name), batch(*LINES)).error_code == 0
            assert stored(wire, Named(name)) == [codec]


def test_nothing_is_asked_of_topics_while_none_has_a_codec():
    with Broker() as broker, Wire(broker.address) as wire:
        broker.create_topic("plain", 1, {})
        assert wire.produce(Named("plain"), batch(b"v")).error_code == 0
        assert not broker.call(lambda: broker.server.catalogue.configs.encodes)
        broker.create_topic("coded", 1, {"compression.type": "gzip"})
        assert broker.call(lambda: broker.server.catalogue.configs.encodes)
