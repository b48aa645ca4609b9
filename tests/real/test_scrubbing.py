"""Damaged segments, with kafka-python and with sendfile."""

from __future__ import annotations

import time

from kafka import KafkaConsumer, TopicPartition

from barnabas.storage.log.segment_read import SLICE_BYTES_MIN
from tests.broker.data_plane import Named, batch
from tests.broker.handlers.test_fetch import fill, log_of, positions, settle
from tests.broker.test_scrubbing import OFFLINE, a_pass, broker, flip, topic, wire

__all__ = ["broker", "topic", "wire"]


def test_consumer_stops_at_the_damage_and_resumes_after_it(broker, wire, topic):
    fill(broker, wire, topic, 60)
    log = log_of(broker, topic)
    segment = log.segments[2]
    flip(segment, 70)
    a_pass(broker)
    (damaged,) = log.damaged
    place = TopicPartition("t", 0)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        consumer.assign([place])
        consumer.seek(place, 0)
        seen = set()

        def read_up_to(end):
            deadline = time.monotonic() + 60
            while consumer.position(place) < end:
                assert time.monotonic() < deadline
                seen.update(each.offset for found in consumer.poll(50).values() for each in found)

        read_up_to(damaged.base_offset)
        assert seen == set(range(damaged.base_offset)), "up to the damage, and nothing of it"
        consumer.poll(200)
        assert consumer.position(place) == damaged.base_offset
        consumer.seek(place, damaged.end_offset)
        read_up_to(log.next_offset)
    assert seen == set(range(log.next_offset)) - {damaged.base_offset, damaged.base_offset + 1}
    # The client requests the ends and a time, which the damage does not touch.
    assert wire.list_offset("t", -1)[2] == log.next_offset
    assert wire.list_offset("t", -2)[2] == 0


def test_sendfile_stops_at_the_damage(broker, wire):
    """Large answers are sent from the page cache; they end before what is known to be damaged."""
    broker.create_topic("large", 1, {"retention.ms": "-1", "segment.bytes": str(1 << 20)})
    topic = Named("large", broker.call(lambda: broker.server.catalogue.topics["large"].topic_id))
    for number in range(40):
        wire.produce(topic, batch(b"%d" % number, bytes([number]) * 60_000))
    log = settle(broker, topic)
    segment = log.segments[0]
    batches = [(at, header) for at, header, _ in segment.scan(0)]
    at, header = batches[12]
    assert at > SLICE_BYTES_MIN
    flip(segment, at + 1000)
    a_pass(broker)
    data = wire.fetch_one(topic, 0, max_bytes=1 << 26)
    assert positions(data) == [each.base_offset for _, each in batches[:12]]
    assert wire.fetch_one(topic, header.base_offset).error_code == OFFLINE
    assert positions(wire.fetch_one(topic, header.next_offset))[0] == header.next_offset
