"""Produce of batches that the broker decompresses: errors, waits and their order.

Times of the loop: tests/real/test_produce_batches.py.
"""

from __future__ import annotations

import random

import pytest

from barnabas.protocol.compression import LZ4, NONE, ZSTD
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import HEADER_BYTES, Record, encode_batch, read_header, seal
from barnabas.testing import Broker
from tests.broker.batches_to_inspect import BIG, create, many, spoiled
from tests.broker.data_plane import batch, produce_request


@pytest.fixture(scope="module")
def broker():
    with Broker(config={"queued.max.request.bytes": BIG}) as running:
        yield running


@pytest.mark.parametrize("compression", [NONE, LZ4, ZSTD])
def test_garbage_under_a_valid_checksum_is_refused(broker, wire, request, compression):
    topic = create(broker, request)
    good = batch(b"v", compression=compression)
    for version in (3, 9, 13):
        if compression == ZSTD and version == 3:
            continue
        # The second takes the way of the common request.
        for _ in range(2):
            assert wire.produce(topic, good, version=version).error_code == 0
        result = wire.produce(topic, spoiled(good, compression), version=version)
        assert result.error_code == ErrorCode.INVALID_RECORD
    assert set(wire.read(topic)) == {b"v"}


def test_large_uncompressed_batches_where_the_topic_says_so(broker, wire, request):
    # A known writer, whose batches are not compared with their headers otherwise.
    wire.ask(API_VERSIONS, ApiVersionsRequest("librdkafka", "2.16.0"), 3)
    topic = create(broker, request)
    body = encode_batch([Record(at, 0, b"k", b"v") for at in range(100)])
    bad = memoryview(bytearray(seal(read_header(body), body[HEADER_BYTES:-1] + b"\4")))
    assert wire.produce(topic, bad).error_code == 0
    checked = create(broker, request, 1, "-2", barnabas_record_validation_enable="true")
    assert wire.produce(checked, bad).error_code == ErrorCode.INVALID_RECORD


def test_later_batches_are_appended_after_a_waiting_batch(broker, wire, request):
    """Sequences continue over waiting, directly inspected, and uninspected batches (S12)."""
    topic = create(broker, request)
    sent = []
    sequence = 0
    rng = random.Random(1)
    for _ in range(30):
        count = rng.choice([1, 5, 5000])
        sequences = {"producer_id": 1, "producer_epoch": 0, "base_sequence": sequence}
        if count == 5000:
            records = many(count, key=b"", **sequences)
        else:
            records = batch(*[b"v"] * count, compression=rng.choice([0, LZ4]), **sequences)
        wire.send(PRODUCE, produce_request(9, topic, (0, records)), 9)
        sent.append(sequence)
        sequence += count
    results = [wire.receive().responses[0].partition_responses[0] for _ in sent]
    assert [(each.error_code, each.base_offset) for each in results] == [(0, at) for at in sent]


def test_large_batch_with_acks_0_is_appended(broker, wire, request):
    topic = create(broker, request)
    for _ in range(3):
        large = many(5000, key=b"")
        wire.send(PRODUCE, produce_request(9, topic, (0, large), acks=0), 9, answered=False)
    assert wire.produce(topic, batch(b"last")).base_offset == 15_000


def test_without_an_answer_its_error_is_a_lost_connection(broker, wire, request):
    topic = create(broker, request, cleanup_policy="compact")
    large = many(5000, key=None)
    wire.send(PRODUCE, produce_request(9, topic, (0, large), acks=0), 9, answered=False)
    assert wire.hung_up()


def test_producer_gets_a_retriable_error_if_too_many_batches_wait(
    broker, wire, request, monkeypatch
):
    topic = create(broker, request)
    large = many(5000, key=b"")
    monkeypatch.setattr(broker.server.inspector, "has_room", lambda _: False)
    result = wire.produce(topic, large)
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    monkeypatch.undo()
    assert wire.produce(topic, large).error_code == 0
