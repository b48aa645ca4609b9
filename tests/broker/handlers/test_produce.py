"""Produce over the wire: accepted and rejected records, and their responses (P, S)."""

from __future__ import annotations

import logging

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE, ProduceRequest
from barnabas.protocol.records import (
    HEADER_BYTES,
    Record,
    control_batch,
    encode_batch,
    iterate_batches,
    read_header,
    seal,
)
from barnabas.storage.runtime.clock import sleep
from barnabas.testing import Broker
from tests.broker.data_plane import (
    NOW_MS,
    PRODUCE_VERSIONS,
    Named,
    Wire,
    batch,
    complaints,
    created,
    produce_request,
    topic_data,
    topic_name,
    values,
)
from tests.products import case
from tests.waiting import wait_until

GZIP, ZSTD = 1, 4
UNKNOWN = Named("nope", bytes([9] * 16))


@pytest.fixture
def topic(broker, request):
    return create(broker, request, partitions=3)


def create(broker, request, suffix="", partitions=1, **configs):
    name = topic_name(request.node.name) + suffix
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    return created(broker, name, partitions, settings)


def errors(response):
    """Error codes by position."""
    return [
        ErrorCode(result.error_code)
        for topic in response.responses
        for result in topic.partition_responses
    ]


def read(wire, topic, partition=0):
    return wire.read(topic, partition)


@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_every_version_gets_its_offsets(wire, topic, version, acks):
    for base in (0, 2, 4):
        result = wire.produce(topic, batch(b"a", b"b"), 1, version, acks=acks)
        assert (result.index, result.error_code, result.base_offset) == (1, 0, base)
        assert result.log_append_time_ms == -1
        assert result.log_start_offset == (0 if version >= 5 else -1)
    assert read(wire, topic, 1) == [b"a", b"b"] * 3


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_stored_as_it_came_but_for_offset_and_epoch(wire, topic, version):
    sent = batch(b"x" * 1000, b"y", None, compression=GZIP)
    wire.produce(topic, batch(), version=version)
    wire.produce(topic, sent, version=version)
    stored = wire.fetch_one(topic, 1).records
    assert bytes(stored[12 + 4 :]) == bytes(sent[12 + 4 :])
    assert int.from_bytes(stored[:8], "big") == 1


@pytest.mark.parametrize("version", [3, 9, 13])
@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("count", [case(40, in_test=True), case(200, in_test=False)])
def test_acknowledged_records_are_readable_at_once(wire, topic, version, acks, count):
    """Read your own ack: the high watermark moves before the answer leaves."""
    for number in range(count):
        wire.produce(topic, batch(b"%d" % number), version=version, acks=acks)
        found = wire.fetch_one(topic, number)
        assert values(found.records) == [b"%d" % number]
        assert found.high_watermark == number + 1


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize("acks", [-2, 2, 3, 32767])
def test_acks_that_mean_nothing(wire, topic, version, acks):
    # More than once: the second request must not be taken for a known good one.
    for _ in range(3):
        request = produce_request(version, topic, (0, batch()), (1, batch()), acks=acks)
        response = wire.ask(PRODUCE, request, version)
        assert errors(response) == [ErrorCode.INVALID_REQUIRED_ACKS] * 2
        alone = wire.produce(topic, batch(), version=version, acks=acks)
        assert alone.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert read(wire, topic) == []


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_one_refused_partition_leaves_the_others_alone_p7(broker, request, wire, topic, version):
    small = create(broker, request, "-small", max_message_bytes="100")
    missing = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    damaged = batch(b"v")
    damaged[-1] ^= 1
    asked = produce_request(
        version,
        topic,
        (0, batch(b"a")),
        (1, damaged),
        (7, batch()),
        (-1, batch()),
        (2, batch(b"c")),
    )
    asked.topic_data.append(topic_data(version, UNKNOWN, (0, batch()), (1, batch())))
    asked.topic_data.append(topic_data(version, small, (0, batch(b"x" * 100))))
    response = wire.ask(PRODUCE, asked, version)
    assert errors(response) == [
        ErrorCode.NONE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        missing,
        missing,
        ErrorCode.MESSAGE_TOO_LARGE,
    ]
    indexes = [each.index for each in response.responses[0].partition_responses]
    assert indexes == [0, 1, 7, -1, 2]
    assert [read(wire, topic, partition) for partition in range(3)] == [[b"a"], [], [b"c"]]


@pytest.mark.parametrize("software", [None, "franz-go", "librdkafka", "apache-kafka-java"])
@pytest.mark.parametrize("count", [1, 16, 17, 3000])
def test_headers_of_large_batches_are_believed_of_known_writers_alone(
    broker, wire, topic, software, count
):
    """Several in a row: the second one would take the shortcut."""
    if software is not None:
        wire.ask(API_VERSIONS, ApiVersionsRequest(software, "1"), 3)
    times = range(NOW_MS, NOW_MS + count)
    good = bytes(batch(*[b"v"] * count, times=times))
    header = read_header(good)._replace(max_timestamp=NOW_MS + 5000)
    wrong = memoryview(seal(header, good[HEADER_BYTES:]))
    for _ in range(3):
        assert wire.produce(topic, wrong).error_code == 0
    is_believed = software in {"librdkafka", "apache-kafka-java"} and count > 16
    newest = NOW_MS + (5000 if is_believed else count - 1)
    stored = wire.fetch_one(topic, 0, 0, max_bytes=1 << 20).records
    assert {found.max_timestamp for _, found in iterate_batches(stored)} == {newest}


def changed(position, *data):
    records = batch(b"v")
    records[position : position + len(data)] = bytes(data)
    return records


def keyless():
    return memoryview(encode_batch([Record(0, NOW_MS, None, b"v", ())]))


MALFORMED = {
    "null": (None, ErrorCode.INVALID_RECORD),
    "empty": (memoryview(b""), ErrorCode.INVALID_RECORD),
    "two batches": (
        memoryview(bytes(batch(b"a")) + bytes(batch(b"b"))),
        ErrorCode.INVALID_RECORD,
    ),
    "a control batch": (
        memoryview(control_batch(1, 0, commit=True, coordinator_epoch=0, timestamp=NOW_MS)),
        ErrorCode.INVALID_RECORD,
    ),
    "a control batch without transaction": (
        batch(b"v", control=True, producer_id=1, producer_epoch=0, base_sequence=0),
        ErrorCode.INVALID_RECORD,
    ),
    "a wrong checksum": (changed(17, 1, 2, 3, 4), ErrorCode.CORRUPT_MESSAGE),
    "another magic": (changed(16, 1), ErrorCode.INVALID_RECORD),
    "a record too few": (changed(57, 0, 0, 0, 2), ErrorCode.INVALID_RECORD),
    "no record": (changed(57, 0, 0, 0, 0), ErrorCode.INVALID_RECORD),
    "a codec nobody knows": (changed(21, 0, 5), ErrorCode.INVALID_RECORD),
    "cut off": (batch(b"v")[:-1], ErrorCode.CORRUPT_MESSAGE),
    "cut off early": (batch(b"v")[:10], ErrorCode.CORRUPT_MESSAGE),
    "no sequence": (batch(b"v", producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD),
    "a transaction of nobody": (
        batch(b"v", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True),
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    "a transaction without producer": (batch(b"v", transactional=True), ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
@pytest.mark.parametrize("kind", MALFORMED)
def test_records_that_no_log_takes(wire, topic, kind, version):
    records, error = MALFORMED[kind]
    # Before, in the place of, and after a request that the shortcut knows.
    for expected in (0, 1):
        assert wire.produce(topic, records, version=version).error_code == error
        assert wire.produce(topic, batch(b"good"), version=version).base_offset == expected
    result = wire.produce(topic, records, version=version)
    assert (result.error_code, result.base_offset) == (error, -1)
    assert read(wire, topic) == [b"good"] * 2


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_zstd_only_where_readers_know_it(wire, topic, version):
    for _ in range(2):
        result = wire.produce(topic, batch(b"v" * 99, compression=ZSTD), version=version)
        known = version >= 7
        assert result.error_code == (0 if known else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


@pytest.mark.parametrize("version", [9, 13])
def test_compacted_topics_want_keys(broker, request, wire, version):
    compacted = create(broker, request, cleanup_policy="compact")
    assert wire.produce(compacted, keyless(), version=version).error_code == 87
    assert wire.produce(compacted, batch(), version=version).base_offset == 0
    assert wire.produce(compacted, keyless(), version=version).error_code == 87


@pytest.mark.parametrize("version", [3, 9, 13])
def test_internal_topics_are_not_for_clients(broker, wire, version):
    name = "__consumer_offsets"
    if broker.call(lambda: name not in broker.server.catalogue.topics):
        broker.create_topic(name, configs={"cleanup.policy": "compact"})
    internal = Named(name, broker.call(lambda: broker.server.catalogue.topics[name].topic_id))
    for _ in range(2):
        result = wire.produce(internal, batch(), version=version)
        assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_append_time_is_stamped_and_returned(broker, request, wire, version):
    stamped = create(broker, request, message_timestamp_type="LogAppendTime")
    for number in range(3):
        result = wire.produce(stamped, batch(b"a", times=[5]), version=version)
        now_ms = broker.clock.now_ms()
        assert 0 <= now_ms - result.log_append_time_ms < 5000
        found = wire.fetch_one(stamped, number).records
        ((_, header),) = iterate_batches(found)
        assert header.max_timestamp == result.log_append_time_ms
        assert header.timestamp_type == 1


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_retries_get_their_first_offset_s4(wire, topic, version):
    def sequence(number, count=1, epoch=0):
        records = batch(
            *[b"%d" % number] * count,
            producer_id=9,
            producer_epoch=epoch,
            base_sequence=number,
        )
        result = wire.produce(topic, records, version=version)
        return ErrorCode(result.error_code), result.base_offset

    good = ErrorCode.NONE
    assert [sequence(number) for number in range(7)] == [(good, n) for n in range(7)]
    assert [sequence(number) for number in range(2, 7)] == [(good, n) for n in range(2, 7)]
    assert sequence(1) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)  # S11: no 46
    assert sequence(9) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert sequence(0, epoch=1) == (good, 7)
    assert sequence(7) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)  # S8
    assert sequence(1, 3, epoch=1) == (good, 8)
    assert sequence(1, 3, epoch=1) == (good, 8)
    assert read(wire, topic) == [b"%d" % n for n in range(7)] + [b"0"] + [b"1"] * 3  # S2


@pytest.mark.parametrize("version", [3, 9, 13])
def test_a_retry_of_what_is_not_durable_yet_waits_for_it_s4(broker, wire, topic, version):
    records = batch(b"v", producer_id=9, producer_epoch=0, base_sequence=0)
    request = produce_request(version, topic, (0, records))
    frames = [wire.encode(PRODUCE, request, version) for _ in range(50)]
    wire.socket.sendall(b"".join(frames))
    offsets = [wire.receive().responses[0].partition_responses[0].base_offset for _ in frames]
    assert offsets == [0] * 50
    assert read(wire, topic) == [b"v"]


@pytest.mark.parametrize("version", [3, 9, 13])
def test_pipelined_answers_come_in_order_with_errors_between_them(wire, topic, version):
    kinds = ["good", "bad", "elsewhere", "several", "acks"]
    asked = [kinds[number * 7 % 5] for number in range(200)]
    frames = []
    for number, kind in enumerate(asked):
        value = b"%d" % number
        request = produce_request(version, topic, (0, batch(value)))
        if kind == "bad":
            request = produce_request(version, topic, (0, changed(17, 9, 9, 9, 9)))
        elif kind == "elsewhere":
            request = produce_request(version, UNKNOWN, (0, batch(value)))
        elif kind == "several":
            request = produce_request(version, topic, (0, batch(value)), (1, batch(value)))
        elif kind == "acks":
            request.acks = 5
        frames.append(wire.encode(PRODUCE, request, version))
        if number % 50 == 49:
            frames.append(wire.encode(METADATA, MetadataRequest([]), 12))
    wire.socket.sendall(b"".join(frames))
    expected = []
    for number, kind in enumerate(asked):
        # ``receive`` compares correlation ids: an answer out of its place fails here.
        response = wire.receive()
        offsets = [each.base_offset for each in response.responses[0].partition_responses]
        if kind in {"good", "several"}:
            assert offsets[0] == len(expected)
            expected.append(b"%d" % number)
        else:
            assert offsets == [-1]
        if number % 50 == 49:
            assert wire.receive().brokers
    assert read(wire, topic) == expected


@pytest.mark.parametrize("version", [3, 9, 13])
def test_nothing_at_all_is_answered_at_once(wire, version):
    assert wire.ask(PRODUCE, ProduceRequest(None, -1, 1000, []), version).responses == []


class TestAcksZero:
    @pytest.mark.parametrize("version", PRODUCE_VERSIONS)
    def test_acks_0_appends_without_a_response(self, wire, topic, version):
        request = produce_request(version, topic, (0, batch(b"quiet")), acks=0)
        for _ in range(3):
            wire.send(PRODUCE, request, version, answered=False)
        # The next request with an answer gets the next answer.
        assert wire.ask(METADATA, MetadataRequest([]), 12).brokers
        assert wire.produce(topic, batch(b"loud"), version=version).base_offset == 3
        assert read(wire, topic) == [b"quiet"] * 3 + [b"loud"]

    @pytest.mark.parametrize("version", PRODUCE_VERSIONS)
    def test_an_error_closes_the_connection_with_one_line(
        self, broker, wire, topic, version, caplog
    ):
        caplog.set_level(logging.WARNING)
        request = produce_request(version, topic, (0, batch(b"a")), (9, batch(b"b")), acks=0)
        wire.send(PRODUCE, request, version, answered=False)
        assert wire.hung_up()
        with Wire(broker.address) as other:
            wait_until(lambda: read(other, topic) == [b"a"])  # P7
        lines = complaints(caplog)
        assert len(lines) <= 1  # Fewer when many such lines came before: they are limited.
        for line in lines:
            assert "api=Produce" in line
            assert "acks=0 and error 3 for partition 9" in line

    def test_the_line_is_written(self, topic, caplog):
        caplog.set_level(logging.WARNING)
        with Broker() as fresh, Wire(fresh.address) as wire:
            request = produce_request(9, topic, (0, batch(b"a")), acks=0)
            wire.send(PRODUCE, request, 9, answered=False)
            assert wire.hung_up()
        (line,) = complaints(caplog)
        assert "acks=0 and error 3 for partition 0" in line

    def test_a_flood_waits_for_the_journal(self, broker, wire, topic):
        """A producer with acks=0 awaits no response, so only the backlog slows it."""
        broker.call(lambda: broker.server.sockets.backlog.set(True))
        try:
            request = produce_request(9, topic, (0, batch(b"x")), acks=0)
            for _ in range(20):
                wire.send(PRODUCE, request, 9, answered=False)
            assert wire.silent(0.1)
            with Wire(broker.address) as other:
                assert len(read(other, topic)) <= 1
        finally:
            broker.call(lambda: broker.server.sockets.backlog.set(False))
        with Wire(broker.address) as other:
            wait_until(lambda: len(read(other, topic)) == 20)


class TestLargeFrames:
    """Frames above a ring's size have memory of their own, which the log keeps by reference."""

    def test_their_bytes_are_what_was_sent(self, broker, request):
        topic = create(broker, request, "-big", max_message_bytes=str(4 << 20))
        sizes = [300_000, 600_000, 262_144, 262_000, 900_000, 500_000, 2_000_000, 70_000]
        sent = []
        wires = {Wire(broker.address): version for version in (3, 9, 13)}
        for turn in range(4):
            for wire, version in wires.items():
                for size in sizes:
                    # Random data does not compress; the pattern shows the origin of each byte.
                    value = b"%08d" % len(sent) * (size // 8)
                    sent.append(value)
                    asked = produce_request(version, topic, (0, batch(value)))
                    wire.send(PRODUCE, asked, version)
            for wire in wires if turn % 2 else reversed(wires):
                for _ in sizes:
                    assert errors(wire.receive()) == [ErrorCode.NONE]
        with Wire(broker.address) as reader:
            stored = reader.read(topic)
        assert sorted(stored) == sorted(sent)
        for wire in wires:
            wire.socket.close()

    @pytest.mark.parametrize("slow", ["barnabas-journal", ".log"])
    def test_memory_is_not_used_again_while_the_disk_wants_it(self, slow):
        """Large frames keep coming while those before them wait for a slow disk."""
        with Broker() as broker:
            broker.create_topic("t", 1, {"max.message.bytes": str(4 << 20)})
            topic = Named("t")

            def linger(operation):
                if operation.name == "pwritev" and slow in operation.path:
                    sleep(0.01)

            broker.server.file_system.before = linger
            sent = []
            with Wire(broker.address) as wire, Wire(broker.address) as reader:
                for turn in range(12):
                    for size in (300_000, 500_000, 290_000, 700_000):
                        value = b"%08d" % len(sent) * (size // 8)
                        sent.append(value)
                        wire.send(PRODUCE, produce_request(9, topic, (0, batch(value))), 9)
                    for _ in range(4):
                        wire.receive()
                    if turn % 4 == 3:
                        assert reader.read(topic) == sent
                broker.server.file_system.before = None
                log = broker.server.catalogue.topics["t"].partitions[0].log
                wait_until(lambda: broker.call(lambda: not log.unflushed))
                assert reader.read(topic) == sent
            broker.restart()
            with Wire(broker.address) as reader:
                assert reader.read(topic) == sent

    def test_several_batches_in_one_large_frame(self, broker, request, wire):
        topic = create(broker, request, partitions=12)
        sent = [b"%02d" % partition * 50_000 for partition in range(12)]
        for _ in range(5):
            data = [(partition, batch(value)) for partition, value in enumerate(sent)]
            response = wire.ask(PRODUCE, produce_request(9, topic, *data), 9)
            assert errors(response) == [ErrorCode.NONE] * 12
        for partition, value in enumerate(sent):
            assert read(wire, topic, partition) == [value] * 5

    def test_a_damaged_large_batch_leaves_its_memory_to_the_next(self, broker, request, wire):
        topic = create(broker, request)
        for number in range(20):
            records = batch(b"%04d" % number * 100_000)
            if number % 2:
                records[-1] ^= 1
            result = wire.produce(topic, records)
            assert result.error_code == (ErrorCode.CORRUPT_MESSAGE if number % 2 else 0)
        assert read(wire, topic) == [b"%04d" % number * 100_000 for number in range(0, 20, 2)]
