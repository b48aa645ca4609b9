"""ListOffsets over the wire: both ends of logs, and exact searches by time (L7).

tests/interop/test_data_like_kafka.py compares each version with Apache Kafka's.
"""

from __future__ import annotations

import errno
import logging
import random
from dataclasses import replace

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS, ListOffsetsPartition
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.runtime.threads import new_event
from barnabas.testing import Broker
from tests.broker.data_plane import (
    LIST_OFFSETS_VERSIONS,
    NOW_MS,
    Wire,
    batch,
    complaints,
    created,
    list_offsets_request,
    topic_name,
)
from tests.seeds import SEED
from tests.waiting import wait_until

PATIENCE_S = 60

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)
NOT_FOUND = (0, -1, -1, -1)
COMMITTED = 1


@pytest.fixture
def topic(broker, request):
    return create(broker, topic_name(request.node.name), 2)


def create(broker, name, partitions=1, **configs):
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    return created(broker, name, partitions, {"retention.ms": "-1"} | settings)


def log_of(broker, topic, partition=0):
    return broker.server.catalogue.topics[topic.name].partitions[partition].log


def settle(broker, topic):
    """Wait until everything is durable and in the segment files."""
    log = log_of(broker, topic)
    wait_until(
        lambda: broker.call(lambda: not log.unflushed and log.high_watermark == log.next_offset)
    )
    return log


def at(*times):
    """A batch with a record at each of some times after NOW_MS."""
    return batch(*[b"v"] * len(times), times=[NOW_MS + time for time in times])


def found(wire, topic, timestamp, **more):
    """Timestamp after NOW_MS and offset of a search by time; None when there is no such record."""
    error, time, offset, _ = wire.list_offset(topic.name, NOW_MS + timestamp, **more)
    assert error == 0
    return None if offset == -1 else (time - NOW_MS, offset)


class TestEnds:
    def test_an_empty_log(self, broker, wire, topic):
        epoch = log_of(broker, topic).leader_epoch
        assert wire.list_offset(topic.name, LATEST) == (0, -1, 0, epoch)
        assert wire.list_offset(topic.name, EARLIEST) == (0, -1, 0, epoch)
        for timestamp in (MAX_TIMESTAMP, 0, NOW_MS, 2**63 - 1):
            assert wire.list_offset(topic.name, timestamp) == NOT_FOUND

    @pytest.mark.parametrize("version", LIST_OFFSETS_VERSIONS)
    def test_an_error_is_its_partitions_own(self, wire, topic, version):
        wire.produce(topic, at(0))
        request = list_offsets_request(
            topic.name, (0, LATEST), (9, LATEST), (-1, NOW_MS), (1, EARLIEST)
        )
        request.topics += list_offsets_request("nope", (0, LATEST)).topics
        response = wire.ask(LIST_OFFSETS, request, version)
        answers = [
            (each.partition_index, ErrorCode(each.error_code), each.offset)
            for answer in response.topics
            for each in answer.partitions
        ]
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert answers == [
            (0, ErrorCode.NONE, 1),
            (9, missing, -1),
            (-1, missing, -1),
            (1, ErrorCode.NONE, 0),
            (0, missing, -1),
        ]

    @pytest.mark.parametrize("version", range(4, 12))
    def test_a_reader_with_another_idea_of_the_leader(self, broker, wire, topic, version):
        ours = log_of(broker, topic).leader_epoch
        for epoch, error in (
            (-1, ErrorCode.NONE),
            (ours, ErrorCode.NONE),
            (ours - 1, ErrorCode.FENCED_LEADER_EPOCH),
            (ours + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            for timestamp in (LATEST, NOW_MS):
                asked = ListOffsetsPartition(0, epoch, timestamp)
                request = list_offsets_request(topic.name, asked)
                response = wire.ask(LIST_OFFSETS, request, version)
                assert response.topics[0].partitions[0].error_code == error

    def test_the_epoch_that_wrote_it(self):
        with Broker() as broker:
            topic = create(broker, "t")
            with Wire(broker.address) as wire:
                wire.produce(topic, at(1, 2))
            old = log_of(broker, topic).leader_epoch
            broker.restart()
            with Wire(broker.address) as wire:
                new = log_of(broker, topic).leader_epoch
                assert wire.list_offset(topic.name, LATEST) == (0, -1, 2, new)
                wire.produce(topic, at(3))
                assert wire.list_offset(topic.name, EARLIEST) == (0, -1, 0, old)
                assert wire.list_offset(topic.name, LATEST) == (0, -1, 3, new)
                assert wire.list_offset(topic.name, NOW_MS + 2) == (0, NOW_MS + 2, 1, old)
                assert wire.list_offset(topic.name, NOW_MS + 3) == (0, NOW_MS + 3, 2, new)
                assert wire.list_offset(topic.name, MAX_TIMESTAMP) == (0, NOW_MS + 3, 2, new)


class TestByTime:
    def test_the_first_of_equal_records_is_the_newest(self, wire, topic):
        for times in ([1], [9, 9], [9], [3]):
            wire.produce(topic, at(*times))
        assert wire.list_offset(topic.name, MAX_TIMESTAMP)[1:3] == (NOW_MS + 9, 1)
        assert found(wire, topic, 9) == (9, 1)

    def test_below_the_log_start_nothing_is_found(self, broker, wire, topic):
        for times in ([50, 10, 20], [30, 20, 40]):
            wire.produce(topic, at(*times))
        log = settle(broker, topic)
        for start, expected in ((1, (30, 3)), (2, (30, 3)), (4, (40, 5)), (6, None)):
            broker.call(lambda start=start: log.delete_records(start))
            wait_until(lambda start=start: log.log_start_offset == start)
            assert found(wire, topic, 21) == expected
        assert found(wire, topic, 0) is None

    def test_append_times(self, broker, wire):
        topic = create(broker, "stamped", message_timestamp_type="LogAppendTime")
        times = []
        for _ in range(5):
            times.append(wire.produce(topic, at(1, 999_999)).log_append_time_ms)
            broker.clock.advance(milliseconds=10)
        assert sorted(set(times)) == times
        for number, time in enumerate(times):
            for asked in (time - 1, time):
                assert wire.list_offset(topic.name, asked)[1:3] == (time, 2 * number)
        assert wire.list_offset(topic.name, times[-1] + 1) == NOT_FOUND
        assert wire.list_offset(topic.name, MAX_TIMESTAMP)[1:3] == (times[-1], 8)

    def test_records_without_a_time(self, wire, topic):
        wire.produce(topic, batch(b"v", times=[-1]))
        assert wire.list_offset(topic.name, 0) == NOT_FOUND
        wire.produce(topic, at(5))
        assert found(wire, topic, 0) == (5, 1)

    @pytest.mark.parametrize("cold", [False, True])
    def test_any_time_in_any_log_is_found_exactly(self, cold):
        """Small segments, sparse indexes, times that go back and forth: compared with a list."""
        chosen = random.Random(SEED)
        with Broker() as broker, Wire(broker.address) as wire:
            topic = create(broker, "t")
            log = log_of(broker, topic)
            small = replace(log.config, segment_bytes=3000, index_interval_bytes=400)
            broker.call(lambda: log.configure(small))
            records = []
            for step in range(150):
                times = [
                    step * 3 + chosen.randrange(-40, 40) for _ in range(chosen.randrange(1, 9))
                ]
                stamps = [NOW_MS + time for time in times]
                codec = chosen.choice([0, 0, 1, 2, 3, 4])
                wire.produce(topic, batch(*[b"v"] * len(times), times=stamps, compression=codec))
                records += times
                if step % 20 == 0:
                    self.check(wire, topic, records, 0, chosen)
            settle(broker, topic)
            assert len(log.segments) > 4
            broker.server.file_system.cold = cold
            self.check(wire, topic, records, 0, chosen)
            start = len(records) // 3
            broker.call(lambda: log.delete_records(start))
            wait_until(lambda: log.log_start_offset == start)
            self.check(wire, topic, records, start, chosen)

    def check(self, wire, topic, records, start, chosen):
        visible = list(enumerate(records))[start:]
        for asked in [chosen.randrange(-60, 500) for _ in range(25)]:
            expected = next(((time, at) for at, time in visible if time >= asked), None)
            assert found(wire, topic, asked) == expected, f"seed {SEED}"
        newest = max(time for _, time in visible)
        expected = next(at for at, time in visible if time == newest)
        answer = wire.list_offset(topic.name, MAX_TIMESTAMP)[1:3]
        assert answer == (NOW_MS + newest, expected), f"seed {SEED}"

    def test_many_partitions_in_one_request(self, broker, wire):
        topic = create(broker, "many", 50)
        for partition in range(50):
            wire.produce(topic, at(partition, partition + 1), partition)
        asked = [(partition, NOW_MS + 25) for partition in range(50)]
        response = wire.ask(LIST_OFFSETS, list_offsets_request(topic.name, *asked), 7)
        offsets = [each.offset for each in response.topics[0].partitions]
        assert offsets == [-1] * 24 + [1] + [0] * 25

    def test_the_next_request_waits_for_the_search(self, wire, topic):
        wire.produce(topic, at(1, 2))
        frames = []
        for _ in range(20):
            by_time = list_offsets_request(topic.name, (0, NOW_MS + 2))
            frames.append(wire.encode(LIST_OFFSETS, by_time, 7))
            frames.append(wire.encode(METADATA, MetadataRequest([]), 12))
            frames.append(wire.encode(LIST_OFFSETS, list_offsets_request(topic.name, (0, -1)), 7))
        wire.socket.sendall(b"".join(frames))
        for _ in range(20):
            assert wire.receive().topics[0].partitions[0].offset == 1
            assert wire.receive().brokers
            assert wire.receive().topics[0].partitions[0].offset == 2


class TestVisibility:
    def transaction(self, broker, topic, *times, commit=None, producer_id=1):
        log = log_of(broker, topic)
        sequence = 0
        entry = log.producers.entry(producer_id)
        if entry is not None:
            sequence = entry.last_sequence + 1
        stamps = [NOW_MS + time for time in times]
        records = batch(
            *[b"v"] * len(times),
            times=stamps,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
        broker.call(lambda: log.append(records))
        if commit is not None:
            self.end(broker, topic, commit=commit, producer_id=producer_id)
        wait_until(lambda: broker.call(lambda: log.high_watermark == log.next_offset))

    def end(self, broker, topic, *, commit, producer_id=1):
        log = log_of(broker, topic)
        broker.call(
            lambda: log.append_marker(
                TransactionMarker(producer_id, 0, coordinator_epoch=0, commit=commit)
            )
        )
        wait_until(lambda: broker.call(lambda: log.high_watermark == log.next_offset))

    def test_committed_readers_find_nothing_at_or_after_the_lso_l7(self, broker, wire, topic):
        wire.produce(topic, at(10, 20))
        self.transaction(broker, topic, 30, 40)
        wire.produce(topic, at(50))
        data = wire.fetch_one(topic, 0, isolation=COMMITTED)
        latest = wire.list_offset(topic.name, LATEST, isolation=COMMITTED)
        assert latest[2] == data.last_stable_offset == 2
        assert wire.list_offset(topic.name, LATEST)[2] == 5
        assert wire.list_offset(topic.name, EARLIEST, isolation=COMMITTED)[2] == 0
        assert found(wire, topic, 15, isolation=COMMITTED) == (20, 1)
        for timestamp in (21, 30, 50):
            assert found(wire, topic, timestamp, isolation=COMMITTED) is None
        assert [found(wire, topic, t) for t in (21, 31, 41)] == [(30, 2), (40, 3), (50, 4)]
        self.end(broker, topic, commit=True)
        assert found(wire, topic, 21, isolation=COMMITTED) == (30, 2)
        assert wire.list_offset(topic.name, LATEST, isolation=COMMITTED)[2] == 6

    @pytest.mark.parametrize("version", range(1, 3))
    def test_version_one_reads_everything(self, broker, wire, topic, version):
        self.transaction(broker, topic, 30, 40)
        isolation = 1 if version >= 2 else 0
        answer = wire.list_offset(topic.name, LATEST, version=version, isolation=isolation)
        assert answer[2] == (0 if version >= 2 else 2)

    def test_markers_have_a_time_too(self, broker, wire, topic):
        """Apache Kafka does the same: a search finds a marker if all records are too old."""
        self.transaction(broker, topic, 30, commit=True)
        error, time, offset, _ = wire.list_offset(topic.name, NOW_MS + 31)
        assert (error, offset) == (0, 1)
        assert abs(time - broker.clock.now_ms()) < 60_000
        assert wire.list_offset(topic.name, MAX_TIMESTAMP)[1:3] == (time, 1)
        assert found(wire, topic, 30) == (30, 0)

    def test_nothing_above_the_high_watermark_is_found(self, broker, wire, topic):
        for times in ([10], [20], [90], [30]):
            wire.produce(topic, at(*times))
        log = settle(broker, topic)
        # As if the last batches were not durable yet.
        broker.call(lambda: setattr(log, "high_watermark", 2))
        assert wire.list_offset(topic.name, LATEST)[2] == 2
        assert found(wire, topic, 15) == (20, 1)
        assert found(wire, topic, 21) is None
        assert wire.list_offset(topic.name, MAX_TIMESTAMP)[1:3] == (NOW_MS + 20, 1)
        broker.call(lambda: setattr(log, "high_watermark", 4))
        assert found(wire, topic, 21) == (90, 2)


class TestTrouble:
    @pytest.fixture
    def broker(self):
        with Broker() as running:
            yield running

    @pytest.mark.parametrize("kind", ["damage", "disk"])
    def test_unreadable_log_fails_the_search(self, broker, wire, topic, kind, caplog):
        caplog.set_level(logging.WARNING)
        for times in ([1], [2]):
            wire.produce(topic, at(*times))
        wire.produce(topic, at(7), partition=1)
        log = settle(broker, topic)
        file_system = broker.server.file_system
        if kind == "damage":
            file_system.open(log.active.log_path).pwritev([b"\x07"], 16)
        else:

            def fail(operation):
                if operation.name == "pread" and operation.path == log.active.log_path:
                    raise OSError(errno.EIO, "input/output error")

            file_system.before = fail
        asked = [(0, NOW_MS + 2), (1, NOW_MS + 2)]
        response = wire.ask(LIST_OFFSETS, list_offsets_request(topic.name, *asked), 7)
        file_system.before = None
        errors = [each.error_code for each in response.topics[0].partitions]
        assert errors == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
        wait_until(lambda: complaints(caplog), "the thread that has read it says so")
        assert wire.list_offset(topic.name, LATEST)[2] == 2
        assert len(complaints(caplog)) == 1

    def hold(self, broker, monkeypatch, waiting):
        """Stop searches before each piece of work on a thread."""
        gate = new_event()
        run = broker.server.readers.run

        def held(work):
            def wait_and_work():
                assert gate.wait(PATIENCE_S)
                return work()

            waiting.append(work)
            return run(wait_and_work)

        monkeypatch.setattr(broker.server.readers, "run", held)
        return gate

    def test_disconnect_during_a_search_is_handled(self, broker, topic, monkeypatch):
        waiting = []
        gate = self.hold(broker, monkeypatch, waiting)
        with Wire(broker.address) as wire:
            for partition in range(2):
                wire.produce(topic, at(5), partition=partition)
            settle(broker, topic)
            wire.send(LIST_OFFSETS, list_offsets_request(topic.name, (0, NOW_MS), (1, NOW_MS)), 7)
            wait_until(lambda: waiting)
        wait_until(lambda: broker.call(lambda: not broker.server.sockets.connections))
        gate.set()
        with Wire(broker.address) as wire:
            assert wire.list_offset(topic.name, LATEST)[2] == 1
        assert len(waiting) == 1, "what nobody waits for is not searched"

    def test_topic_deletion_during_a_search_is_handled(self, broker, wire, topic, monkeypatch):
        wire.produce(topic, at(5))
        settle(broker, topic)
        waiting = []
        gate = self.hold(broker, monkeypatch, waiting)
        wire.send(LIST_OFFSETS, list_offsets_request(topic.name, (0, NOW_MS)), 7)
        wait_until(lambda: waiting)
        broker._do(broker.server.catalogue.delete_topic(topic.id))
        gate.set()
        answer = wire.receive().topics[0].partitions[0]
        # The response has an offset of what is left of the log, or an error: never another log's
        # offset.
        assert (answer.error_code, answer.offset) in {
            (0, 0),
            (0, -1),
            (ErrorCode.KAFKA_STORAGE_ERROR, -1),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        }
        assert broker.server.failure is None

    def test_broker_stop_during_a_search_disconnects(self, broker, wire, topic, monkeypatch):
        wire.produce(topic, at(5))
        waiting = []
        gate = self.hold(broker, monkeypatch, waiting)
        wire.send(LIST_OFFSETS, list_offsets_request(topic.name, (0, NOW_MS)), 7)
        wait_until(lambda: waiting)
        broker.stop()
        gate.set()
        assert wire.hung_up()
        broker.restart()
        with Wire(broker.address) as again:
            assert again.list_offset(topic.name, NOW_MS)[2] == 0

    def test_a_bomb_is_answered_by_where_it_begins(self, broker, wire, topic, monkeypatch):
        monkeypatch.setattr("barnabas.storage.log.time_lookup.DECOMPRESSED_BYTES_MAX", 10_000)
        bomb = batch(b"0" * 500_000, b"1", times=[NOW_MS, NOW_MS + 5], compression=1)
        wire.produce(topic, bomb)
        error, timestamp, offset, _ = wire.list_offset(topic.name, NOW_MS + 5)
        assert (error, timestamp, offset) == (0, NOW_MS + 5, 0)
        assert wire.list_offset(topic.name, LATEST)[2] == 2
