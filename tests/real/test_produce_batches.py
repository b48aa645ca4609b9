"""Produce of batches that are inspected: the time for which they hold the loop, and the memory."""

from __future__ import annotations

import socket

import pytest
import zstandard

from barnabas.protocol.compression import NONE, ZSTD, compress
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import read_header, seal, varint
from barnabas.storage.runtime.clock import counter_seconds, sleep
from barnabas.testing import Broker
from tests.attack.loop_lag import loop_lag
from tests.broker.batches_to_inspect import BIG, create, many
from tests.broker.data_plane import Wire, batch, produce_request
from tests.waiting import wait_until

HELD_MS_MAX = 250
"""Processor time of the loop's thread in one go; the rule is 50 ms on a quiet machine."""
CROWD = 60_000


@pytest.fixture(scope="module")
def broker():
    with Broker(config={"queued.max.request.bytes": BIG}) as running:
        yield running


@pytest.fixture(scope="module")
def crowd():
    """Records of seven to nine bytes with keys, in some KB of Zstandard."""
    return many(CROWD, key=b"")


def test_a_crowd_of_tiny_records_does_not_hold_the_loop(broker, wire, request, crowd):
    topic = create(broker, request, 16, cleanup_policy="compact")
    with Wire(broker.address) as other, loop_lag(broker, "tiny records") as lag:
        wire.send(PRODUCE, produce_request(9, topic, *[(at, crowd) for at in range(16)]), 9)
        slowest = 0.0
        for _ in range(20):
            begun = counter_seconds()
            other.ask(METADATA, MetadataRequest([]), 9)
            slowest = max(slowest, counter_seconds() - begun)
            sleep(0.02)
        response = wire.receive()
    results = response.responses[0].partition_responses
    assert [result.error_code for result in results] == [0] * 16
    print(f"slowest Metadata {slowest * 1000:.1f} ms")
    assert lag.busy_ms < HELD_MS_MAX


def test_timestamp_limit_check_does_not_block_the_loop(broker, wire, request, crowd):
    topic = create(broker, request, message_timestamp_before_max_ms="1000")
    with loop_lag(broker, "timestamps") as lag:
        result = wire.produce(topic, crowd)
    assert result.error_code == ErrorCode.INVALID_TIMESTAMP
    assert lag.busy_ms < HELD_MS_MAX


def test_uncompressed_crowds_neither(broker, wire, request):
    topic = create(broker, request, 4, cleanup_policy="compact")
    crowd = many(80_000, key=None, compression=NONE)
    with loop_lag(broker, "uncompressed") as lag:
        request = produce_request(9, topic, *[(at, crowd) for at in range(4)])
        response = wire.ask(PRODUCE, request, 9)
    results = response.responses[0].partition_responses
    assert [result.error_code for result in results] == [ErrorCode.INVALID_RECORD] * 4
    assert lag.busy_ms < HELD_MS_MAX


def test_compression_bombs_are_rejected_without_blocking_the_loop(broker, wire, request):
    topic = create(broker, request)
    header = read_header(batch(compression=ZSTD))
    value = bytes(200 * 1024 * 1024)
    record = b"\0\0\0\1" + varint(len(value)) + value + b"\0"
    bomb = seal(header, compress(ZSTD, varint(len(record)) + record))
    assert len(bomb) < 100_000
    with loop_lag(broker, "bomb") as lag:
        result = wire.produce(topic, memoryview(bytearray(bomb)))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert "more than" in result.error_message
    assert lag.busy_ms < HELD_MS_MAX


def test_disconnect_during_a_produce_appends_no_record(broker, wire, request, crowd):
    topic = create(broker, request, 16)
    with Wire(broker.address) as leaving:
        leaving.send(PRODUCE, produce_request(9, topic, *[(at, crowd) for at in range(16)]), 9)
        wait_until(lambda: broker.call(lambda: broker.server.inspector.held_bytes) > 0)
        leaving.socket.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: broker.call(lambda: broker.server.inspector.held_bytes) == 0)
    assert wire.read(topic) == []


def test_a_bomb_is_judged_in_little_memory(broker, wire, request):
    """127 MB of zeros in one record, at most what a batch may expand to: taken, and forgotten."""
    topic = create(broker, request)
    wire.produce(topic, batch(compression=ZSTD))  # What is imported for it stays.
    size = 127 * 1024 * 1024
    compressor = zstandard.ZstdCompressor().compressobj()
    head = b"\0\0\0\1" + varint(size)
    body = compressor.compress(varint(len(head) + size + 1) + head)
    for _ in range(127):
        body += compressor.compress(bytes(1024 * 1024))
    body += compressor.compress(b"\0") + compressor.flush()
    bomb = memoryview(bytearray(seal(read_header(batch(compression=ZSTD)), body)))
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # The peak starts again.
    before = peak_bytes()
    for _ in range(3):
        assert wire.produce(topic, bomb).error_code == 0
    assert peak_bytes() - before < 48 * 1024 * 1024


def peak_bytes():
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("acks", [-1, 0])
def test_very_many_batches_are_taken_in_slices_and_in_their_order(broker, wire, request, acks):
    topic, other = (create(broker, request, 2, f"-{acks}-{name}") for name in "ab")
    count = 5000
    asked = produce_request(9, topic, *[(at % 2, batch(b"%d" % at)) for at in range(count)])
    asked.topic_data += produce_request(9, other, (1, batch()), (7, batch())).topic_data
    asked.acks = acks
    with loop_lag(broker, "many batches") as lag:
        if acks:
            response = wire.ask(PRODUCE, asked, 9)
        else:
            asked.topic_data[-1].partition_data.pop()
            wire.send(PRODUCE, asked, 9, answered=False)
        behind = wire.produce(topic, batch(b"behind"))
    assert behind.base_offset == count // 2
    if acks:
        found, few = (each.partition_responses for each in response.responses)
        assert [(each.index, each.base_offset) for each in found] == [
            (at % 2, at // 2) for at in range(count)
        ]
        assert [(each.index, each.error_code) for each in few] == [
            (1, 0),
            (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
    assert wire.read(topic, 1) == [b"%d" % at for at in range(1, count, 2)]
    assert lag.busy_ms < HELD_MS_MAX
