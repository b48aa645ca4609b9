"""Produce responses that name the bad records of a batch (KIP-467)."""

from __future__ import annotations

import pytest

from barnabas.broker.api.inspector import Inspector
from barnabas.protocol.compression import GZIP, LZ4, NONE, ZSTD
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.batches.bad_records import LISTED_RECORDS_MAX
from tests.broker.data_plane import (
    NOW_MS,
    PRODUCE_VERSIONS,
    Wire,
    batch,
    created,
    produce_request,
    topic_name,
)
from tests.waiting import wait_until

NAMED_SINCE = 8
REASON = "Compacted topic cannot accept message without key in topic partition {}-{}"
KEYED = batch(b"v")


@pytest.fixture
def topic(broker, request):
    name = topic_name(request.node.name)
    return created(broker, name, 300, {"cleanup.policy": "compact"})


def with_keys(*keys, codec=NONE, value=b"v"):
    records = [Record(at, NOW_MS, key, value) for at, key in enumerate(keys)]
    return memoryview(bytearray(encode_batch(records, compression=codec)))


def named(result):
    return [(each.batch_index, each.batch_index_error_message) for each in result.record_errors]


def results_of(response):
    return [each for topic in response.responses for each in topic.partition_responses]


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_bad_records_have_their_index_and_reason(wire, topic, version, codec):
    bad = with_keys(b"k", None, b"k", None, codec=codec)
    for _ in range(2):
        result = wire.produce(topic, bad, version=version)
        assert result.error_code == ErrorCode.INVALID_RECORD
        reason = REASON.format(topic.name, 0)
        wanted = [(1, reason), (3, reason)] if version >= NAMED_SINCE else []
        assert named(result) == wanted
        if wanted:
            assert "rejected due to 2 record errors in total" in result.error_message
        assert wire.produce(topic, KEYED, version=version).error_code == 0


def test_large_batches_are_named_like_small_ones(wire, topic):
    keys = [b"k"] * 9000
    keys[7], keys[8999] = None, None
    for codec in (NONE, GZIP, ZSTD):
        result = wire.produce(topic, with_keys(*keys, codec=codec, value=b"v" * 30))
        assert [at for at, _ in named(result)] == [7, 8999]


def test_other_partitions_of_the_request_are_appended(wire, topic):
    data = [(at, with_keys(None) if at % 3 == 0 else KEYED) for at in range(9)]
    for _ in range(20):
        response = wire.ask(PRODUCE, produce_request(9, topic, *data), 9)
        for result in results_of(response):
            assert bool(result.error_code) == (result.index % 3 == 0) == bool(named(result))
            assert (result.base_offset >= 0) == (not result.error_code)


def test_responses_stay_in_the_order_of_their_requests(wire, topic):
    expected = []
    for at in range(60):
        bad = at % 2 == 0
        records = with_keys(*[None] * 50, codec=at // 2 % 2 * LZ4) if bad else KEYED
        wire.send(PRODUCE, produce_request(9, topic, (at % 3, records)), 9)
        expected.append((at % 3, 50 if bad else 0))
    answers = [results_of(wire.receive())[0] for _ in expected]
    assert [(each.index, len(each.record_errors)) for each in answers] == expected


def test_requests_in_parts_name_their_bad_records(wire, topic):
    data = [(at, with_keys(None, b"k") if at in {0, 150, 299} else KEYED) for at in range(300)]
    results = results_of(wire.ask(PRODUCE, produce_request(9, topic, *data), 9))
    assert [each.index for each in results] == list(range(300))
    assert {each.index for each in results if each.record_errors} == {0, 150, 299}


def test_the_list_is_limited(wire, topic):
    result = wire.produce(topic, with_keys(*[None] * (LISTED_RECORDS_MAX + 500), codec=ZSTD))
    assert len(result.record_errors) == LISTED_RECORDS_MAX
    assert f"due to {LISTED_RECORDS_MAX + 500} record errors in total" in result.error_message


def test_a_producer_without_responses_is_disconnected(broker, topic):
    with Wire(broker.address) as wire:
        request = produce_request(9, topic, (0, with_keys(None)), acks=0)
        wire.send(PRODUCE, request, 9, answered=False)
        assert wire.hung_up()


def test_a_full_inspector_costs_the_list_and_not_the_response(wire, topic, monkeypatch):
    monkeypatch.setattr(Inspector, "has_room", lambda *_: False)
    result = wire.produce(topic, with_keys(None, b"k"))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert result.error_message == "a compacted topic takes no record without a key"
    assert result.record_errors == []


def test_disconnected_clients_leave_nothing_behind(broker, topic):
    bad = with_keys(*[b"k"] * 50_000, None, codec=ZSTD)
    for _ in range(5):
        with Wire(broker.address) as gone:
            gone.send(PRODUCE, produce_request(9, topic, (0, bad), (1, KEYED)), 9)
    wait_until(lambda: broker.call(lambda: broker.server.inspector.held_bytes) == 0)
    with Wire(broker.address) as wire:
        assert wire.produce(topic, KEYED).error_code == 0
