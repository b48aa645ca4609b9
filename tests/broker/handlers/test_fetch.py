"""Fetch over the wire: what is read, how far, when it waits and what ends the wait (L)."""

from __future__ import annotations

import errno
import logging
import random
from dataclasses import replace

import pytest

from barnabas.broker.handlers.records.fetch_reader import COPIED_BYTES_MAX
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FETCH, FetchPartition
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import iterate_batches
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.runtime.clock import monotonic, sleep
from barnabas.testing import Broker
from tests.broker.committed_reader import Seen, committed_records
from tests.broker.data_plane import (
    EXPANDED_BYTES,
    FETCH_VERSIONS,
    NOW_MS,
    Named,
    Wire,
    batch,
    complaints,
    created,
    fetch_request,
    topic_name,
    values,
)
from tests.seeds import SEED
from tests.waiting import wait_until

UNKNOWN = Named("nope", bytes([9] * 16))
HOUR_MS = 3_600_000
COMMITTED = 1


@pytest.fixture
def topic(broker, request):
    return create(broker, topic_name(request.node.name), 3)


def create(broker, name, partitions=1):
    # The records are years old, and some tests advance the clock by hours.
    return created(broker, name, partitions, {"retention.ms": "-1"})


def log_of(broker, topic, partition=0):
    return broker.server.catalogue.topics[topic.name].partitions[partition].log


def use_small_segments(broker, topic):
    """Smaller ones than a topic may have."""
    log = log_of(broker, topic)
    settings = replace(log.config, segment_bytes=2000, index_interval_bytes=500)
    broker.call(lambda: log.configure(settings))


def settle(broker, topic, partition=0):
    """Wait until everything is in the segment files: what is in memory comes separately."""
    log = log_of(broker, topic, partition)
    wait_until(
        lambda: broker.call(lambda: not log.unflushed and log.high_watermark == log.next_offset)
    )
    return log


def fill(broker, wire, topic, count=5, partition=0, size=100):
    """Batches of two records, so that offsets fall into their middle."""
    for number in range(count):
        wire.produce(topic, batch(b"%d" % number, b"x" * size), partition)
    settle(broker, topic, partition)
    return len(batch(b"0", b"x" * size))


def positions(data):
    """Base offsets of the batches in an answer."""
    return [header.base_offset for _, header in iterate_batches(data.records)]


def waits(broker):
    return broker.call(lambda: len(broker.server.fetch_waits))


def park(broker, wire, *topics, version=12, **more):
    """Send a fetch and wait until it waits."""
    settings = {"max_wait_ms": HOUR_MS} | more
    wire.send(FETCH, fetch_request(version, *topics, **settings), version)
    wait_until(lambda: waits(broker) > 0)


class TestReading:
    @pytest.mark.parametrize("isolation", [0, 1])
    @pytest.mark.parametrize("version", FETCH_VERSIONS)
    def test_every_version_reads_what_was_stored(self, broker, wire, topic, version, isolation):
        fill(broker, wire, topic, 3)
        data = wire.fetch_one(topic, 0, version=version, isolation=isolation)
        assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 6, 6)
        assert data.log_start_offset == (0 if version >= 5 else -1)
        assert positions(data) == [0, 2, 4]
        assert data.aborted_transactions == ([] if isolation else None)
        assert data.diverging_epoch is None
        answer = wire.fetch((topic, (0, 0)), version=version).responses[0]
        assert (answer.topic, answer.topic_id) == (
            ("", topic.id) if version >= 13 else (topic.name, bytes(16))
        )

    def test_a_fetch_begins_with_the_batch_that_holds_its_offset(self, broker, wire, topic):
        fill(broker, wire, topic)
        for offset in range(10):
            data = wire.fetch_one(topic, offset)
            assert positions(data) == list(range(offset // 2 * 2, 10, 2))

    @pytest.mark.parametrize("isolation", [0, 1])
    def test_nothing_beyond_the_high_watermark_is_shown(self, broker, wire, topic, isolation):
        fill(broker, wire, topic)
        log = log_of(broker, topic)
        # As if the last three batches were not durable yet.
        broker.call(lambda: setattr(log, "high_watermark", 4))
        for offset in range(11):
            data = wire.fetch_one(topic, offset, isolation=isolation)
            assert (data.error_code, data.high_watermark) == (0, 4)
            assert positions(data) == list(range(offset // 2 * 2, 4, 2))
        assert wire.fetch_one(topic, 11).error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    @pytest.mark.parametrize("version", FETCH_VERSIONS)
    def test_one_partitions_error_leaves_the_others_alone_p7(self, broker, wire, topic, version):
        fill(broker, wire, topic, 1)
        response = wire.fetch(
            (UNKNOWN, (0, 0)),
            (topic, (0, 0), (9, 0), (-1, 0), (1, 5), (2, 0)),
            version=version,
            max_wait_ms=HOUR_MS,
        )
        assert response.error_code == 0
        found = [
            (each.partition_index, ErrorCode(each.error_code))
            for answer in response.responses
            for each in answer.partitions
        ]
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert found == [
            (0, ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else missing),
            (0, ErrorCode.NONE),
            (9, missing),
            (-1, missing),
            (1, ErrorCode.OFFSET_OUT_OF_RANGE),
            (2, ErrorCode.NONE),
        ]
        assert values(response.responses[1].partitions[0].records) == [b"0", b"x" * 100]

    @pytest.mark.parametrize("version", FETCH_VERSIONS)
    def test_an_isolation_level_that_does_not_exist(self, broker, wire, topic, version):
        fill(broker, wire, topic, 1)
        response = wire.fetch((topic, (0, 0)), version=version, isolation=2)
        found = [response.error_code] if version >= 7 else []
        found += [each.error_code for each in response.responses[0].partitions]
        assert set(found) == {ErrorCode.INVALID_REQUEST}


class TestBounds:
    @pytest.mark.parametrize("version", [4, 12, 18])
    def test_whole_batches_and_at_least_one(self, broker, wire, topic, version):
        size = fill(broker, wire, topic)
        for limit, count in (
            (-5, 1),
            (0, 1),
            (1, 1),
            (size, 1),
            (2 * size - 1, 1),
            (2 * size, 2),
            (3 * size + 50, 3),
            (1 << 30, 5),
        ):
            by_partition = wire.fetch_one(topic, 0, version=version, partition_max_bytes=limit)
            by_request = wire.fetch_one(topic, 0, version=version, max_bytes=limit)
            assert len(positions(by_partition)) == len(positions(by_request)) == count

    def test_only_the_first_partition_with_data_may_exceed_the_bounds(self, broker, wire, topic):
        size = fill(broker, wire, topic)
        fill(broker, wire, topic, partition=1)
        asked = (topic, (2, 0), (1, 0), (0, 0))

        def counts(**more):
            found = wire.fetch(asked, **more).responses[0].partitions
            return [len(positions(each)) for each in found]

        assert counts(max_bytes=1) == [0, 1, 0]
        assert counts(partition_max_bytes=1) == [0, 1, 0]
        assert counts(max_bytes=size) == [0, 1, 0]
        assert counts(max_bytes=2 * size - 1) == [0, 1, 0]
        assert counts(max_bytes=7 * size) == [0, 5, 2]
        assert counts(max_bytes=1000 * size, partition_max_bytes=2 * size) == [0, 2, 2]

    def test_the_brokers_own_bound(self):
        with Broker(config={"fetch.max.bytes": "1024"}) as small, Wire(small.address) as wire:
            topic = create(small, "t")
            fill(small, wire, topic, 20)
            assert len(wire.fetch_one(topic, 0).records) <= 1024

    def test_many_partitions(self, broker, wire):
        topic = create(broker, "many", 300)
        for partition in range(300):
            wire.produce(topic, batch(b"%d" % partition), partition)
        for partition in range(300):
            settle(broker, topic, partition)
        asked = [(partition, 0) for partition in range(300)]
        for version in (4, 12, 18):
            response = wire.fetch((topic, *asked), version=version)
            found = [values(each.records) for each in response.responses[0].partitions]
            assert found == [[b"%d" % partition] for partition in range(300)]

    @pytest.mark.parametrize("codec", range(5))
    def test_reading_on_from_any_offset_meets_every_record(self, broker, wire, topic, codec):
        sent = []
        chosen = random.Random(SEED)
        for _ in range(40):
            group = [b"%d" % (len(sent) + n) * chosen.randrange(1, 90) for n in range(3)]
            sent += group
            wire.produce(topic, batch(*group, compression=codec))
        for limit in (1, 500, 2000, 1 << 20):
            offset = chosen.randrange(20)
            found = {}
            while offset < len(sent):
                data = wire.fetch_one(topic, offset, partition_max_bytes=limit)
                for at, header in iterate_batches(data.records):
                    view = data.records[at : at + header.size]
                    for record in iterate_records(view, limit_bytes=EXPANDED_BYTES):
                        found[record.offset] = record.value
                    assert header.next_offset > offset  # L5
                    offset = header.next_offset
            assert all(found[at] == sent[at] for at in found)
            assert set(found) >= set(range(20, len(sent)))


class TestLeaderEpochs:
    @pytest.mark.parametrize("version", range(9, 19))
    def test_a_reader_with_another_idea_of_the_leader(self, broker, wire, topic, version):
        fill(broker, wire, topic, 1)
        ours = log_of(broker, topic).leader_epoch
        for epoch, error in (
            (-1, ErrorCode.NONE),
            (ours, ErrorCode.NONE),
            (ours - 1, ErrorCode.FENCED_LEADER_EPOCH),
            (ours + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            asked = FetchPartition(0, epoch, 0, partition_max_bytes=1000)
            response = wire.fetch((topic, asked), version=version)
            assert response.responses[0].partitions[0].error_code == error

    @pytest.mark.parametrize("version", range(12, 19))
    def test_consumer_of_another_log_gets_the_diverging_epoch(self, version):
        with Broker() as broker:
            topic = create(broker, "t")
            with Wire(broker.address) as wire:
                fill(broker, wire, topic, 2)
            old = log_of(broker, topic).leader_epoch
            broker.restart()
            with Wire(broker.address) as wire:
                fill(broker, wire, topic, 1)
                new = log_of(broker, topic).leader_epoch
                assert new > old

                def ask(offset, epoch):
                    asked = FetchPartition(0, -1, offset, epoch, partition_max_bytes=1000)
                    started = monotonic()
                    response = wire.fetch((topic, asked), version=version, max_wait_ms=80_000)
                    assert monotonic() - started < 60, "a divergence is told at once"
                    return response.responses[0].partitions[0]

                for offset, epoch in ((4, old), (2, old), (4, new), (0, new)):
                    data = ask(offset, epoch)
                    assert (data.error_code, data.diverging_epoch) == (0, None)
                    assert len(data.records)
                data = ask(5, old)
                assert data.error_code == 0
                assert not data.records
                assert data.high_watermark == 6
                assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (old, 4)
                data = ask(7, new)
                assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (new, 6)
                # What never was is out of range, as with Apache Kafka.
                assert ask(1, new + 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
                log = log_of(broker, topic)
                broker.call(lambda: log.delete_records(2))
                wait_until(lambda: log.log_start_offset == 2)
                assert ask(1, old).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


class Transactions:
    """Writes transactions straight into a log, and knows what each reader must see."""

    def __init__(self, broker, topic, partition=0):
        self.broker = broker
        self.log = log_of(broker, topic, partition)
        self.sequences = {}
        self.open = {}
        self.committed = {}
        self.all = {}

    def append(self, producer_id, *contents, transactional=True):
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + len(contents)
        identity = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        if producer_id < 0:
            identity = {}
        # Today's time, as the markers have: years between batches would begin a new segment.
        times = [self.broker.clock.now_ms()] * len(contents)
        view = batch(*contents, times=times, transactional=transactional, **identity)
        base = self.broker.call(lambda: self.log.append(view)).base_offset
        placed = {base + number: value for number, value in enumerate(contents)}
        self.all |= placed
        if transactional:
            self.open.setdefault(producer_id, {}).update(placed)
        else:
            self.committed |= placed

    def end(self, producer_id, *, commit):
        self.broker.call(
            lambda: self.log.append_marker(
                TransactionMarker(producer_id, 0, coordinator_epoch=0, commit=commit)
            )
        )
        placed = self.open.pop(producer_id)
        if commit:
            self.committed |= placed
        self.sequences[producer_id] = self.sequences[producer_id]

    def settle(self):
        log = self.log
        wait_until(lambda: self.broker.call(lambda: log.high_watermark == log.next_offset))

    @property
    def stable(self):
        first = [min(placed) for placed in self.open.values()]
        return min([*first, self.log.high_watermark])


class TestIsolation:
    def test_an_open_transaction_hides_what_follows_it(self, broker, wire, topic):
        writer = Transactions(broker, topic)
        writer.append(-1, b"before", transactional=False)
        writer.append(1, b"open")
        writer.append(-1, b"after", transactional=False)
        settle(broker, topic)
        data = wire.fetch_one(topic, 0, isolation=COMMITTED)
        assert (data.high_watermark, data.last_stable_offset) == (3, 1)
        assert (values(data.records), data.aborted_transactions) == ([b"before"], [])
        for offset in (1, 2, 3):
            empty = wire.fetch_one(topic, offset, isolation=COMMITTED)
            assert (empty.error_code, len(empty.records)) == (0, 0)
            assert empty.aborted_transactions == []
        plain = wire.fetch_one(topic, 0)
        assert values(plain.records) == [b"before", b"open", b"after"]  # L6
        assert plain.aborted_transactions is None

    @pytest.mark.parametrize("version", FETCH_VERSIONS)
    def test_the_aborted_are_named_and_shipped(self, broker, wire, topic, version):
        writer = Transactions(broker, topic)
        writer.append(7, b"a", b"b")
        writer.append(8, b"c")
        writer.end(7, commit=False)
        writer.end(8, commit=True)
        settle(broker, topic)
        data = wire.fetch_one(topic, 1, version=version, isolation=COMMITTED)
        assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions] == [
            (7, 0)
        ]
        assert positions(data) == [0, 2, 3, 4]
        assert committed_records(data, 1) == ([Seen(2, b"c")], 5)
        assert wire.fetch_one(topic, 1, version=version).aborted_transactions is None

    @pytest.mark.parametrize("cold", [False, True])
    def test_readers_see_exactly_the_committed_l1_l2_l4(self, cold):
        chosen = random.Random(SEED)
        with Broker() as broker, Wire(broker.address) as wire:
            # Small segments: the aborted lists come from several indexes.
            topic = create(broker, "t")
            use_small_segments(broker, topic)
            writer = Transactions(broker, topic)
            for step in range(150):
                producer_id = chosen.randrange(5)
                if producer_id in writer.open and chosen.random() < 0.3:
                    writer.end(producer_id, commit=chosen.random() < 0.5)
                elif chosen.random() < 0.2:
                    writer.append(-1, b"p%d" % step, transactional=False)
                else:
                    writer.append(producer_id, *[b"t%d" % step] * chosen.randrange(1, 4))
                if step % 10 == 0:
                    writer.settle()
                    self.check(wire, topic, writer, chosen)
            writer.settle()
            if cold:
                settle(broker, topic)
                broker.server.file_system.cold = True
            for producer_id in list(writer.open):
                self.check(wire, topic, writer, chosen)
                writer.end(producer_id, commit=chosen.random() < 0.5)
                writer.settle()
            for start in range(0, writer.log.next_offset, 7):
                self.check(wire, topic, writer, chosen, start)

    def check(self, wire, topic, writer, chosen, start=None):
        """Read from somewhere to the end in one committed reader's way."""
        stable = writer.stable
        start = chosen.randrange(stable + 1) if start is None else start
        offset, found = start, {}
        while offset < stable:
            limit = chosen.choice([1, 300, 1000, 1 << 20])
            data = wire.fetch_one(topic, offset, isolation=COMMITTED, partition_max_bytes=limit)
            assert data.last_stable_offset == stable
            records, position = committed_records(data, offset)
            assert position > offset, f"L5, seed {SEED}"
            assert position <= stable
            found |= dict(records)
            offset = position
        expected = {at: value for at, value in writer.committed.items() if start <= at < stable}
        assert found == expected, f"seed {SEED}"

    def test_a_committed_reader_sleeps_through_what_it_may_not_see(self, broker, wire, topic):
        writer = Transactions(broker, topic)
        park(broker, wire, (topic, (0, 0)), isolation=COMMITTED)
        for _ in range(5):
            writer.append(1, b"open")
            writer.settle()
        assert wire.silent()
        settle(broker, topic)
        writer.end(1, commit=True)
        data = wire.receive().responses[0].partitions[0]
        assert values(data.records)[:5] == [b"open"] * 5
        assert data.last_stable_offset == 6
        assert waits(broker) == 0

    def test_an_aborted_transaction_wakes_with_its_list(self, broker, wire, topic):
        """KAFKA-5376: the list belongs to delayed answers too."""
        writer = Transactions(broker, topic)
        park(broker, wire, (topic, (0, 0)), isolation=COMMITTED)
        writer.append(1, b"open")
        writer.end(1, commit=False)
        data = wire.receive().responses[0].partitions[0]
        assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions] == [
            (1, 0)
        ]
        assert committed_records(data, 0)[0] == []

    def test_an_open_transaction_does_not_stall_other_partitions(self, broker, wire, topic):
        Transactions(broker, topic).append(1, b"open")
        park(broker, wire, (topic, (0, 0), (1, 0)), isolation=COMMITTED)
        with Wire(broker.address) as other:
            other.produce(topic, batch(b"v"), 1)
        found = wire.receive().responses[0].partitions
        assert [values(each.records) for each in found] == [[], [b"v"]]


class TestWaiting:
    @pytest.mark.parametrize("version", FETCH_VERSIONS)
    def test_an_append_wakes_at_once(self, broker, wire, topic, version):
        park(broker, wire, (topic, (0, 0), (1, 0)), version=version)
        with Wire(broker.address) as other:
            other.produce(topic, batch(b"news"), 1)
        found = wire.receive().responses[0].partitions
        assert [values(each.records) for each in found] == [[], [b"news"]]
        assert waits(broker) == 0

    def test_until_there_are_enough_bytes(self, broker, wire, topic):
        size = len(batch(b"0"))
        with Wire(broker.address) as other:
            other.produce(topic, batch(b"0"))
            settle(broker, topic)
            park(broker, wire, (topic, (0, 0), (1, 0)), min_bytes=4 * size)
            for number in (1, 2):
                other.produce(topic, batch(b"%d" % number), number % 2)
                assert wire.silent(0.05)
            other.produce(topic, batch(b"3"), 1)
        found = wire.receive().responses[0].partitions
        assert all(each.records for each in found)

    def test_until_the_time_is_up(self, broker, wire, topic):
        fill(broker, wire, topic, 1)
        park(broker, wire, (topic, (0, 0)), min_bytes=1 << 20, max_wait_ms=HOUR_MS)
        broker.clock.advance(milliseconds=HOUR_MS - 60_000)
        assert wire.silent(0.05)
        broker.clock.advance(minutes=1)
        assert positions(wire.receive().responses[0].partitions[0]) == [0]
        assert waits(broker) == 0

    @pytest.mark.parametrize(
        "more",
        [
            {"min_bytes": 0},
            {"min_bytes": -1},
            {"max_wait_ms": 0},
            {"max_wait_ms": -1},
        ],
    )
    def test_fetch_without_need_to_wait_returns_at_once(self, wire, topic, more):
        settings = {"max_wait_ms": HOUR_MS, "min_bytes": 1 << 20} | more
        data = wire.fetch_one(topic, 0, **settings)
        assert (data.error_code, len(data.records)) == (0, 0)

    def test_for_no_more_than_may_be_answered(self, broker, wire, topic):
        size = fill(broker, wire, topic, 3)
        data = wire.fetch_one(topic, 0, max_wait_ms=HOUR_MS, min_bytes=1 << 20, max_bytes=2 * size)
        assert positions(data) == [0, 2]

    def test_not_when_more_is_there_than_one_read_finds(self, broker, wire, topic):
        """A second segment, or what is not written yet, is another read."""
        use_small_segments(broker, topic)
        size = fill(broker, wire, topic, 20)
        data = wire.fetch_one(topic, 0, max_wait_ms=HOUR_MS, min_bytes=20 * size)
        assert 0 < len(positions(data)) < 20

    def test_of_no_partition_at_all(self, wire):
        assert wire.fetch(max_wait_ms=HOUR_MS).responses == []

    @pytest.mark.parametrize("version", [4, 12, 13, 18])
    def test_ends_when_the_topic_is_deleted(self, broker, wire, topic, version):
        park(broker, wire, (topic, (0, 0), (2, 0)), version=version)
        catalogue = broker.server.catalogue
        broker._do(catalogue.delete_topic(topic.id))
        missing = (
            ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        found = wire.receive().responses[0].partitions
        assert [each.error_code for each in found] == [missing] * 2
        assert waits(broker) == 0

    def test_ends_when_another_kind_of_request_comes(self, broker, wire, topic):
        park(broker, wire, (topic, (0, 0)))
        wire.send(METADATA, MetadataRequest([]), 12)
        assert wire.receive().responses[0].partitions[0].error_code == 0
        assert wire.receive().brokers

    def test_ends_when_that_came_together_with_it(self, broker, wire, topic):
        asked = fetch_request(12, (topic, (0, 0)), max_wait_ms=HOUR_MS)
        frames = [wire.encode(FETCH, asked, 12), wire.encode(METADATA, MetadataRequest([]), 12)]
        wire.socket.sendall(b"".join(frames))
        assert wire.receive().responses[0].partitions[0].error_code == 0
        assert wire.receive().brokers

    def test_wait_continues_when_another_fetch_arrives(self, broker, wire, topic):
        park(broker, wire, (topic, (0, 0)))
        wire.send(FETCH, fetch_request(12, (topic, (1, 0)), max_wait_ms=HOUR_MS), 12)
        assert wire.silent()
        with Wire(broker.address) as other:
            other.produce(topic, batch(b"first"), 0)
            assert values(wire.receive().responses[0].partitions[0].records) == [b"first"]
            assert wire.silent(0.05)
            other.produce(topic, batch(b"second"), 1)
        assert values(wire.receive().responses[0].partitions[0].records) == [b"second"]

    def test_is_forgotten_with_its_connection(self, broker, topic):
        with Wire(broker.address) as wire:
            park(broker, wire, (topic, (0, 0), (1, 0)))
        wait_until(lambda: waits(broker) == 0)

    def test_of_many_readers_is_ended_by_one_append(self, broker, topic):
        readers = [Wire(broker.address) for _ in range(50)]
        for reader in readers:
            park(broker, reader, (topic, (0, 0)))
        with Wire(broker.address) as other:
            other.produce(topic, batch(b"v"))
        for reader in readers:
            assert values(reader.receive().responses[0].partitions[0].records) == [b"v"]
            reader.socket.close()


class TestSessions:
    @pytest.mark.parametrize("version", range(7, 19))
    def test_session_returns_only_changes(self, broker, wire, topic, version):
        fill(broker, wire, topic, 1)
        first = wire.fetch((topic, (0, 0), (1, 0)), version=version, session=(0, 0))
        name = first.session_id
        assert name > 0
        assert [each.partition_index for each in first.responses[0].partitions] == [0, 1]

        def go_on(epoch, *asked, **more):
            response = wire.fetch(*asked, version=version, session=(name, epoch), **more)
            assert (response.error_code, response.session_id) == (0, name)
            return [
                (each.partition_index, each.error_code, values(each.records))
                for answer in response.responses
                for each in answer.partitions
            ]

        assert go_on(1, (topic, (0, 2))) == []
        wire.produce(topic, batch(b"news"), 1)
        assert go_on(2) == [(1, 0, [b"news"])]
        assert go_on(3, (topic, (1, 1))) == []
        assert go_on(4, (topic, (2, 0))) == [(2, 0, [])]  # added: told once
        assert go_on(5) == []
        assert go_on(6, (topic, (2, 9))) == [(2, ErrorCode.OFFSET_OUT_OF_RANGE, [])]
        assert go_on(7) == [(2, ErrorCode.OFFSET_OUT_OF_RANGE, [])]  # as long as it lasts
        assert go_on(8, (topic, (2, 0))) == [(2, 0, [])]
        wire.produce(topic, batch(b"forgotten"), 1)
        assert go_on(9, forget=[(topic, [1])]) == []
        assert wire.fetch(version=version, session=(name, 9)).error_code == 71
        assert wire.fetch(version=version, session=(name + 1, 1)).error_code == 70
        assert go_on(10) == []
        closed = wire.fetch((topic, (0, 2)), version=version, session=(name, -1))
        assert (closed.error_code, closed.session_id) == (0, 0)
        assert wire.fetch(version=version, session=(name, 11)).error_code == 70

    def test_names_and_ids_do_not_mix(self, wire, topic):
        name = wire.fetch((topic, (0, 0)), version=12, session=(0, 0)).session_id
        answer = wire.fetch(version=13, session=(name, 1))
        assert (answer.error_code, answer.session_id, answer.responses) == (106, 0, [])
        assert wire.fetch(version=12, session=(name, 1)).error_code == 0

    def test_a_moved_log_start_and_high_watermark_are_news(self, broker, wire, topic):
        fill(broker, wire, topic, 2)
        log = log_of(broker, topic)
        name = wire.fetch((topic, (0, 4)), session=(0, 0)).session_id
        broker.call(lambda: log.delete_records(1))
        wait_until(lambda: log.log_start_offset == 1)
        (answer,) = wire.fetch(session=(name, 1)).responses
        assert answer.partitions[0].log_start_offset == 1
        assert wire.fetch(session=(name, 2)).responses == []

    def test_waiting_session_wakes_at_a_new_record(self, broker, wire, topic):
        name = wire.fetch((topic, (0, 0), (1, 0)), session=(0, 0)).session_id
        park(broker, wire, session=(name, 1))
        with Wire(broker.address) as other:
            other.produce(topic, batch(b"v"), 1)
        (answer,) = wire.receive().responses
        assert [values(each.records) for each in answer.partitions] == [[b"v"]]

    def test_partitions_take_turns(self, broker, wire, topic):
        size = fill(broker, wire, topic)
        for partition in (1, 2):
            fill(broker, wire, topic, partition=partition)
        response = wire.fetch((topic, (0, 0), (1, 0), (2, 0)), session=(0, 0), max_bytes=size)
        name, served = response.session_id, []
        for epoch in range(1, 6):
            answer = wire.fetch(session=(name, epoch), max_bytes=size).responses[0]
            served += [each.partition_index for each in answer.partitions if each.records]
        assert served == [1, 2, 0, 1, 2]

    @pytest.mark.parametrize("version", [12, 13])
    def test_session_reports_a_deleted_topic_and_its_successor(self, broker, wire, topic, version):
        wire.produce(topic, batch(b"old"))
        name = wire.fetch((topic, (0, 0)), version=version, session=(0, 0)).session_id
        broker._do(broker.server.catalogue.delete_topic(topic.id))
        missing = 100 if version >= 13 else 3
        (answer,) = wire.fetch(version=version, session=(name, 1)).responses
        assert answer.partitions[0].error_code == missing
        again = create(broker, topic.name)
        wire.produce(again, batch(b"new"))
        (answer,) = wire.fetch(version=version, session=(name, 2)).responses
        found = answer.partitions[0]
        if version >= 13:
            assert found.error_code == missing
        else:
            assert values(found.records) == [b"new"]

    def test_slots_are_limited(self):
        settings = {"max.incremental.fetch.session.cache.slots": "2"}
        with Broker(config=settings) as broker, Wire(broker.address) as wire:
            topic = create(broker, "t")
            names = [wire.fetch((topic, (0, 0)), session=(0, 0)).session_id for _ in range(3)]
            assert names[2] == 0
            broker.clock.advance(minutes=3)
            assert wire.fetch((topic, (0, 0)), session=(0, 0)).session_id > 0
            assert wire.fetch(session=(names[0], 1)).error_code == 70
            assert wire.fetch(session=(names[1], 1)).error_code == 0

    @pytest.mark.parametrize("crash", [False, True])
    def test_a_restart_ends_them_all(self, crash):
        with Broker() as broker:
            topic = create(broker, "t")
            with Wire(broker.address) as wire:
                wire.produce(topic, batch(b"kept"))
                name = wire.fetch((topic, (0, 0)), session=(0, 0)).session_id
                park(broker, wire, (topic, (0, 1)), session=(name, 1))
                if crash:
                    broker.crash()
                    assert wire.hung_up()
                else:
                    broker.stop()
                    assert wire.receive().error_code == 0  # completed early, not dropped
            broker.restart()
            with Wire(broker.address) as wire:
                assert wire.fetch(session=(name, 2)).error_code == 70
                again = wire.fetch((topic, (0, 0)), session=(0, 0))
                assert values(again.responses[0].partitions[0].records) == [b"kept"]
                assert again.session_id > 0


class TestColdData:
    """Data that is not in the page cache is read on a thread."""

    @pytest.fixture
    def broker(self):
        with Broker() as running:
            yield running

    @pytest.fixture
    def waited(self, broker, monkeypatch):
        """Counts the rounds in which a thread read."""
        rounds = []
        run = broker.server.readers.run

        def counted(work):
            rounds.append(work)
            return run(work)

        monkeypatch.setattr(broker.server.readers, "run", counted)
        return rounds

    @pytest.mark.parametrize("version", [4, 12, 18])
    @pytest.mark.parametrize("isolation", [0, 1])
    def test_all_versions_read_the_same_records(
        self, broker, wire, topic, waited, version, isolation
    ):
        for partition in range(3):
            fill(broker, wire, topic, partition=partition)
        settings = {"version": version, "isolation": isolation}
        asks = [
            ((topic, (0, 3), (1, 0), (2, 8)), {}),
            ((topic, (0, 3), (1, 0), (2, 8)), {"max_bytes": 400}),
            ((topic, (0, 3), (1, 0), (2, 8)), {"partition_max_bytes": 1}),
            ((topic, (0, 10), (1, 99), (2, 8)), {}),
        ]
        warm = [wire.fetch(asked, **more, **settings) for asked, more in asks]
        assert not waited
        broker.server.file_system.cold = True
        for (asked, more), expected in zip(asks, warm, strict=True):
            waited.clear()
            found = wire.fetch(asked, **more, **settings)
            assert found == expected
            assert len(waited) == 1, "everything is read in one go"

    def test_hundreds_of_partitions_in_one_go(self, broker, wire, waited):
        topic = create(broker, "many", 150)
        for partition in range(150):
            wire.produce(topic, batch(b"%d" % partition), partition)
        for partition in range(150):
            settle(broker, topic, partition)
        broker.server.file_system.cold = True
        asked = [(partition, 0) for partition in range(150)]
        found = wire.fetch((topic, *asked)).responses[0].partitions
        assert [values(each.records) for each in found] == [[b"%d" % n] for n in range(150)]
        assert len(waited) == 1

    def test_in_a_session_and_parked(self, broker, wire, topic, waited):
        fill(broker, wire, topic, 1)
        broker.server.file_system.cold = True
        first = wire.fetch((topic, (0, 0), (1, 0)), session=(0, 0))
        assert values(first.responses[0].partitions[0].records)[:1] == [b"0"]
        park(broker, wire, (topic, (0, 2)), session=(first.session_id, 1))
        with Wire(broker.address) as other:
            other.produce(topic, batch(b"new"), 1)
        (answer,) = wire.receive().responses
        assert [values(each.records) for each in answer.partitions] == [[b"new"]]

    @pytest.mark.parametrize("cold", [False, True])
    def test_damage_is_returned_to_each_client_and_logged_once(
        self, broker, wire, topic, waited, cold, caplog
    ):
        caplog.set_level(logging.WARNING)
        size = fill(broker, wire, topic)
        fill(broker, wire, topic, partition=1)
        log = log_of(broker, topic)
        file_system = broker.server.file_system
        file_system.open(log.active.log_path).pwritev([b"\x07"], 16)  # the first batch's magic
        file_system.cold = cold
        for _ in range(3):
            found = wire.fetch((topic, (0, 0), (1, 0)), max_wait_ms=HOUR_MS).responses[0]
            assert found.partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert not found.partitions[0].records
            assert len(positions(found.partitions[1])) == 5
            wait_until(lambda: log.damaged)
        (line,) = complaints(caplog)
        assert line == (
            f"log damaged topic={topic.name} partition=0 offsets=0-1 "
            f"file={0:020}.log bytes=0-{size} reason=no record batch starts here"
        )
        assert len(waited) == (3 if cold else 0), "the other partition is as cold as ever"
        found = wire.fetch_one(topic, 2)
        assert positions(found) == [2, 4, 6, 8]

    @pytest.mark.parametrize("cold", [False, True])
    def test_a_disk_that_does_not_read(self, broker, wire, topic, cold, caplog):
        fill(broker, wire, topic)
        file_system = broker.server.file_system
        reads = []

        def fail(operation):
            if operation.name == "pread" and operation.path.endswith(".log"):
                reads.append(operation)
                raise OSError(errno.EIO, "input/output error")

        file_system.before = fail
        file_system.cold = cold
        log = log_of(broker, topic)
        for _ in range(3):
            data = wire.fetch_one(topic, 0, max_wait_ms=HOUR_MS)
            assert data.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            wait_until(lambda: log.damaged)
        assert len(reads) == 3, "the first reader, and the scrubber: a bad sector can take seconds"
        (line,) = complaints(caplog)
        assert "offsets=0-9 " in line
        assert "it cannot be read: [Errno 5] input/output error" in line
        file_system.before = None
        broker.clock.advance(seconds=620)
        wait_until(lambda: not log.damaged)
        data = wire.fetch_one(topic, 0)
        assert len(positions(data)) == 5

    def test_disconnect_during_a_disk_read_is_handled(self, broker, wire, topic, monkeypatch):
        fill(broker, wire, topic)
        broker.server.file_system.cold = True
        held = []
        run = broker.server.readers.run
        monkeypatch.setattr(broker.server.readers, "run", holding(broker, held))
        with Wire(broker.address) as other:
            other.send(FETCH, fetch_request(12, (topic, (0, 0))), 12)
            wait_until(lambda: held)
        sockets = broker.server.sockets
        wait_until(lambda: broker.call(lambda: len(sockets.connections)) == 1)
        broker.call(lambda: release(run, held[0]))
        monkeypatch.setattr(broker.server.readers, "run", run)
        assert len(positions(wire.fetch_one(topic, 0))) == 5

    def test_topic_deletion_during_a_disk_read_is_handled(self, broker, wire, topic, monkeypatch):
        fill(broker, wire, topic)
        broker.server.file_system.cold = True
        held = []
        run = broker.server.readers.run
        monkeypatch.setattr(broker.server.readers, "run", holding(broker, held))
        wire.send(FETCH, fetch_request(12, (topic, (0, 0))), 12)
        wait_until(lambda: held)
        broker._do(broker.server.catalogue.delete_topic(topic.id))
        again = create(broker, topic.name)
        with Wire(broker.address) as other:
            other.produce(again, batch(b"another log"))
        settle(broker, again)
        monkeypatch.setattr(broker.server.readers, "run", run)
        broker.call(lambda: release(run, held[0]))
        data = wire.receive().responses[0].partitions[0]
        assert values(data.records) == [b"another log"]


def holding(broker, held):
    """Return a replacement of ``DiskReaders.run`` that holds all work until ``release``."""

    def run(work):
        future = broker.server.loop.create_future()
        held.append((work, future))
        return future

    return run


def release(run, held):
    """Run what was held."""
    work, future = held
    run(work).add_done_callback(lambda _: future.done() or future.set_result(None))


def test_unsent_responses_keep_their_memory(tmp_path):
    """Reads use memory again; not while an answer still waits for its reader's socket."""
    with Broker(storage=tmp_path / "data") as broker:
        topic = create(broker, "t")
        with Wire(broker.address) as wire:
            for number in range(20):
                assert wire.produce(topic, batch(b"%04d" % number * 150_000)).error_code == 0
        settle(broker, topic)
        readers = [Wire(broker.address) for _ in range(6)]
        orders = [random.Random(SEED + n).sample(range(20), 8) for n in range(6)]
        for step in range(8):
            for reader, order in zip(readers, orders, strict=True):
                asked = (topic, (0, order[step]))
                request = fetch_request(12, asked, partition_max_bytes=700_000)
                reader.send(FETCH, request, 12)
        sleep(0.1)
        for reader, order in zip(readers, orders, strict=True):
            for number in order:
                data = reader.receive().responses[0].partitions[0]
                assert values(data.records) == [b"%04d" % number * 150_000]
            reader.socket.close()


def test_bytes_copied_into_a_response_are_limited(wire, broker, topic):
    """A simulated disk has no page cache to send from: all that comes is a copy."""
    values_of = {
        partition: [bytes([number]) * 700_000 for number in range(6)] for partition in range(3)
    }
    for partition, sent in values_of.items():
        for value in sent:
            wire.produce(topic, batch(value), partition)
        settle(broker, topic, partition)
    read = {partition: [] for partition in values_of}
    answers = 0
    while any(len(read[partition]) < 6 for partition in read):
        asked = [(partition, len(read[partition])) for partition in read]
        sizes = {"max_bytes": 50 << 20, "partition_max_bytes": 50 << 20}
        answer = wire.ask(FETCH, fetch_request(12, (topic, *asked), **sizes), 12)
        found = answer.responses[0].partitions
        assert 0 < sum(len(each.records) for each in found) <= COPIED_BYTES_MAX
        for each in found:
            read[each.partition_index] += values(each.records)
        answers += 1
    assert read == values_of
    assert answers <= 6


def test_a_batch_larger_than_an_answer_may_copy_is_answered(broker):
    broker.create_topic("large", 1, {"max.message.bytes": "6000000", "retention.ms": "-1"})
    topic = Named("large", broker.call(lambda: broker.server.catalogue.topics["large"].topic_id))
    with Wire(broker.address) as wire:
        value = b"v" * (COPIED_BYTES_MAX + 1)
        assert wire.produce(topic, batch(value)).error_code == 0
        settle(broker, topic)
        assert values(wire.fetch_one(topic, 0).records) == [value]


def test_records_keep_their_times(broker, wire, topic):
    wire.produce(topic, batch(b"a", b"b", times=[NOW_MS + 5, NOW_MS]))
    data = wire.fetch_one(topic, 0)
    view = memoryview(data.records)
    found = [record.timestamp for record in iterate_records(view, limit_bytes=EXPANDED_BYTES)]
    assert found == [NOW_MS + 5, NOW_MS]
