"""Data of a broker that is imported into a cluster, or exported, and checks that it is complete."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.opening.opened_directory import opened, scratch_directory
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.log.leader_epochs import epochs_from
from barnabas.storage.metastore.contents import Contents
from barnabas.storage.metastore.interface import AclRow, QuotaRow, ScramRow
from barnabas.storage.metastore.sqlite import FILE_NAME, SqliteMetaStore
from barnabas.storage.replicated.log_index import LogIndex
from barnabas.storage.replicated.log_reading import read_log
from barnabas.testing import Broker, ReceivedRecord
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.broker.held_markers import Markers
from tests.broker.raw_producer import RawProducer
from tests.storage.leading import producers_of
from tests.waiting import wait_until

CLUSTER_ID = "b3V0c2lkZS1hLWNsdXN0ZQ"
SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.two.phase.commit.enable": "true",
    "log.cleaner.dedupe.buffer.size": str(1 << 20),
}
ORDERS, CUT, COMPACTED, DELETED = "orders", "cut", "compacted", "deleted"
EMPTIED, SEQUENCE = "emptied", "sequence"
DECIDED, PREPARED = "decided", "prepared"
PARTITIONS = {
    ORDERS: 2,
    CUT: 1,
    COMPACTED: 1,
    EMPTIED: 1,
    SEQUENCE: 1,
    DECIDED: 2,
    PREPARED: 1,
}
"""Number of records in each topic at the end."""
GROWING = {DECIDED}
"""Topics of decided transactions, which the next coordinator completes."""
INTERNAL = {"__consumer_offsets": 4, "__transaction_state": 4}
GROUP = "readers"
CUT_OFFSET = 7


def make_store(directory: Path) -> None:
    """Make the metadata of a broker that has had more to do than a test can wait for."""
    directory.mkdir()
    path = str(directory / FILE_NAME)
    with contextlib.closing(SqliteMetaStore.open(path, node_id=1, new_cluster_id=CLUSTER_ID)) as it:
        for _ in range(5):
            it.begin_boot()
        it.change_acls([AclRow(2, ORDERS, 3, "User:ann", "*", 3, 3)], [])
        it.change_scram_credentials(
            [ScramRow("ann", "SCRAM-SHA-256", b"\x00salt", b"stored\xff", b"server", 4096)], []
        )
        it.change_quotas([QuotaRow('[["user","ann"]]', "producer_byte_rate", 1048576.0)], [])
        it.set_group_configs(GROUP, {"consumer.session.timeout.ms": "46000"})
        it.set_broker_configs("", {"log.retention.ms": "86400000"})
        it.keep_secret("cookies", b"\x00\x01\xfe\xff")
        it.raise_producer_ids(12_345)


def contents_of(directory: Path) -> Contents:
    """All metadata in a directory that no broker uses."""
    path = str(directory / FILE_NAME)
    with contextlib.closing(SqliteMetaStore.open(path, node_id=1, new_cluster_id="")) as store:
        return store.contents()


def same_metadata(brought: Contents, there: Contents) -> None:
    """Check that the metadata is equal, except tombstones and times of changes."""
    assert there.image.topics
    assert there.image.acls
    assert replace(brought, image=replace(brought.image, deleted=())) == replace(
        there, image=replace(there.image, deleted=())
    )


class Inspected(NamedTuple):
    """Content of a log, byte for byte."""

    log_start_offset: int
    next_offset: int
    batches: Sequence[bytes]
    """Batches that reach beyond the log's start."""
    producers: object
    leader_epochs: Sequence[tuple[int, int]]
    """Leader epochs of the remaining batches: the start of the first deleted one is unknown."""


def inspect_directory(directory: Path) -> dict[int, Inspected]:
    """Every log in a directory that no broker uses, by the id of its partition."""
    config = load_config().config
    with scratch_directory() as scratch, opened(str(directory), scratch, config) as found:
        return {
            log.partition_id: Inspected(
                log.log_start_offset,
                log.next_offset,
                [
                    bytes(batch)
                    for segment in log.segments
                    for _, header, batch in segment.scan_checked(0)
                    if header.next_offset > log.log_start_offset
                ],
                producers_of(log),
                [
                    (epoch, start)
                    for epoch, start in epochs_from(log.leader_epochs, log.log_start_offset)
                    if start < log.next_offset
                ],
            )
            for log in found.store.logs.values()
        }


def see_that_the_store_has(index: LogIndex, inspected: Mapping[int, Inspected]) -> None:
    """See that these logs are in the store of a cluster, and nothing is missing of them."""
    for partition_id, there in inspected.items():
        state = index.partition(partition_id)
        assert state is not None
        found = read_log(index, partition_id)
        assert (state.log_start_offset, state.log_end_offset) == there[:2]
        assert [bytes(each) for each in found.batches] == there.batches


class Carried:
    """Writes to a broker; ``check`` finds all data at another one, and continues with it.

    While ``markers`` are stopped, transactions are decided without markers, until a test resumes
    them.
    """

    def __init__(self, broker: Broker, markers: Markers) -> None:
        compacting = {
            "cleanup.policy": "compact",
            "segment.ms": "1000",
            "min.cleanable.dirty.ratio": "0.01",
        }
        configs = {COMPACTED: compacting, ORDERS: {"retention.ms": "-1"}}
        for name, partitions in ((DELETED, 2), *PARTITIONS.items()):
            broker.create_topic(name, partitions, configs.get(name))
        servers = broker.bootstrap_servers
        self._write(servers)
        self._compact(broker)
        with contextlib.closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
            admin.delete_topics([DELETED])
            with Wire(broker.address) as wire:
                self.emptied = RawProducer(wire, "emptied")
                self.emptied.begin(Named(EMPTIED), b"gone")
                self.emptied.end()
            ends = {TopicPartition(CUT, 0): CUT_OFFSET, TopicPartition(EMPTIED, 0): 2}
            admin.delete_records(ends)
        with contextlib.closing(
            KafkaConsumer(bootstrap_servers=servers, group_id=GROUP, enable_auto_commit=False)
        ) as consumer:
            place = TopicPartition(ORDERS, 1)
            consumer.assign([place])
            consumer.commit({place: OffsetAndMetadata(3, "noted", -1)})
        with Wire(broker.address) as wire:
            self.orders = Named(ORDERS)
            self.done = RawProducer(wire, "done")
            self.done.begin(self.orders, b"committed")
            self.done.end()
            self.dropped = RawProducer(wire, "dropped")
            self.dropped.begin(self.orders, b"aborted")
            self.dropped.end(commit=False)
            self.classic = RawProducer(wire, "classic", 11)
            self.classic.begin(self.orders, b"classic-0", b"classic-1")
            self.open = RawProducer(wire, "open")
            self.open_offset = self.open.begin(self.orders, b"open-0", partition=1)
            self._begin_sequence(wire)
            self._prepare(wire)
            markers.stop()
            self._decide(wire)
        self.note(broker)

    def _compact(self, broker: Broker) -> None:
        """Write records that compaction leaves with gaps, a tombstone, and markers of
        transactions.
        """
        with Wire(broker.address) as wire:
            topic = Named(COMPACTED)
            for number, commit in enumerate((True, False, True)):
                producer = RawProducer(wire, "compacting")
                producer.begin(topic, b"in-%d" % number, b"also-in-%d" % number)
                producer.end(commit=commit)
        now_ms = int(time.time() * 1000)
        with contextlib.closing(KafkaProducer(bootstrap_servers=broker.bootstrap_servers)) as late:
            for number, key in enumerate([b"key-0", b"key-1", b"gone", b"gone", b"last"]):
                value = None if number == 3 else b"late-%d" % number
                late.send(COMPACTED, value, key, timestamp_ms=now_ms + 2000 * number).get(60)

        def found() -> list[ReceivedRecord]:
            return broker.records(COMPACTED).result

        def is_compacted() -> bool:
            broker.clock.advance(seconds=5)
            return [each.value for each in found() if each.key == b"gone"] == [None]

        wait_until(is_compacted, lambda: f"{found()}")
        broker.restart()  # A crash before the next checkpoint would restore the old segments.
        assert is_compacted()
        offsets = [each.offset for each in found()]
        assert len(offsets) < offsets[-1] - offsets[0] + 1, "there are gaps"

    def _begin_sequence(self, wire: Wire) -> None:
        """Write as an idempotent producer, which has no name."""
        answer = wire.ask(INIT_PRODUCER_ID, InitProducerIdRequest(None, 60_000), 4)
        assert answer.error_code == 0
        self._idempotent = {
            "producer_id": answer.producer_id,
            "producer_epoch": answer.producer_epoch,
        }
        self._sent = 0
        for _ in range(7):  # More than the sequences that are remembered.
            assert self._send_next(wire) == self._sent - 1

    def _send_next(self, wire: Wire, *, sequence: int | None = None) -> int:
        """Send the next batch, or one of them again; answers its offset."""
        if sequence is None:
            sequence = self._sent
            self._sent += 1
        data = batch(b"%d" % sequence, base_sequence=sequence, **self._idempotent)
        request = produce_request(12, Named(SEQUENCE), (0, data))
        (found,) = wire.ask(PRODUCE, request, 12).responses[0].partition_responses
        assert found.error_code == 0, ErrorCode(found.error_code)
        offset: int = found.base_offset
        return offset

    def _prepare(self, wire: Wire) -> None:
        """Prepare a transaction that an external coordinator decides on (KIP-939)."""
        self.prepared = self._two_phase(wire)
        self.prepared.begin(Named(PREPARED), b"prepared-0", b"prepared-1")

    def _two_phase(self, wire: Wire) -> RawProducer:
        producer = RawProducer(wire, "two-phase")
        request = InitProducerIdRequest("two-phase", 0, enable2_pc=True)
        answer = wire.ask(INIT_PRODUCER_ID, request, 6)
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch
        return producer

    def _decide(self, wire: Wire) -> None:
        """Write durable decisions without their markers."""
        for name, commit, version in (
            ("to-commit", True, 12),
            ("to-abort", False, 12),
            ("to-commit-classic", True, 11),
        ):
            producer = RawProducer(wire, name, version)
            for partition in range(2):
                producer.begin(
                    Named(DECIDED), b"%s-%d" % (name.encode(), partition), partition=partition
                )
            producer.end(commit=commit)

    def note(self, broker: Broker) -> None:
        """Record the existing records."""
        self.records = self._read(broker)
        self.committed = self._read(broker, "read_committed")

    def _write(self, servers: str) -> None:
        with contextlib.closing(KafkaProducer(bootstrap_servers=servers)) as producer:
            for number in range(20):
                value = b"%d" % number
                producer.send(ORDERS, value, partition=number % 2, headers=[("n", value)])
                producer.send(CUT, value, timestamp_ms=1_700_000_000_000 + number)
                producer.send(COMPACTED, value, key=b"key-%d" % (number % 3))
            producer.flush(60)

    def _read(self, broker: Broker, isolation: str = "read_uncommitted") -> list[object]:
        places = [
            (name, at)
            for name, partitions in PARTITIONS.items()
            for at in range(partitions)
            if name not in GROWING
        ]
        return read_with_librdkafka(broker, places, isolation)

    def check(self, broker: Broker) -> None:
        """Find everything at a broker that leads it all, and leave it as it was."""
        self.check_records(broker)
        with contextlib.closing(
            KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=GROUP)
        ) as consumer:
            cut = TopicPartition(CUT, 0)
            assert consumer.beginning_offsets([cut]) == {cut: CUT_OFFSET}
            assert consumer.end_offsets([cut]) == {cut: 20}
            emptied = TopicPartition(EMPTIED, 0)
            for offsets in (consumer.beginning_offsets, consumer.end_offsets):
                assert offsets([emptied]) == {emptied: 2}
            found = consumer.committed(TopicPartition(ORDERS, 1), metadata=True)
            assert (found.offset, found.metadata) == (3, "noted")
        with Wire(broker.address) as wire:
            self.open.wire = wire
            again = self.open.send(self.orders, b"open-0", partition=1, sequence=0)
            assert (again.error_code, again.base_offset) == (0, self.open_offset)
            gap = self.open.send(self.orders, b"far", partition=1, sequence=90)
            assert gap.error_code == 45, "the sequence is not known any more"
            for sequence in range(self._sent - 5, self._sent):
                assert self._send_next(wire, sequence=sequence) == sequence, "a duplicate"

    def check_decided(self, broker: Broker) -> None:
        """Check that decisions without markers were completed."""
        expected = {
            b"%s-%d" % (name, at) for name in (b"to-commit", b"to-commit-classic") for at in (0, 1)
        }

        def committed() -> set[bytes | None]:
            return {each.value for each in broker.records(DECIDED, "read_committed").result}

        wait_until(lambda: committed() == expected, lambda: str(committed()))
        assert len(broker.records(DECIDED).result) == 6

    def check_records(self, broker: Broker) -> None:
        """Find those that were noted."""
        assert self._read(broker) == self.records
        assert self._read(broker, "read_committed") == self.committed

    def go_on(self, broker: Broker) -> None:
        """End what is open, and begin the next transactions."""
        with Wire(broker.address) as wire:
            for each in (self.open, self.classic, self.done):
                each.wire = wire
            self.open.send(self.orders, b"open-1", partition=1)
            self.open.end()
            self.classic.end(commit=False)
            self.done.begin(self.orders, b"next")
            self.done.end()
            assert RawProducer(wire, "new").producer_id >= 12_345
            self._end_prepared(wire)
            assert self._send_next(wire) == self._sent - 1
            assert self._send_next(wire, sequence=self._sent - 1) == self._sent - 1
            fenced_epoch = self.open.epoch
            self.open.init()
            assert self.open.epoch > fenced_epoch
        committed = {each.value for each in broker.records(ORDERS, "read_committed").result}
        assert {b"open-0", b"open-1", b"next", b"committed"} <= committed
        assert committed.isdisjoint({b"classic-0", b"classic-1", b"aborted"})
        prepared = [each.value for each in broker.records(PREPARED, "read_committed").result]
        assert prepared == [b"prepared-0", b"prepared-1"]

    def _end_prepared(self, wire: Wire) -> None:
        """Check the prepared transaction, and commit it."""
        request = InitProducerIdRequest("two-phase", 0, enable2_pc=True, keep_prepared_txn=True)
        answer = wire.ask(INIT_PRODUCER_ID, request, 6)
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        ongoing = answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch
        assert ongoing == (self.prepared.producer_id, self.prepared.epoch)
        self.prepared.wire = wire
        self.prepared.producer_id, self.prepared.epoch = answer.producer_id, answer.producer_epoch
        self.prepared.end()


def read_with_librdkafka(
    broker: Broker, places: Sequence[tuple[str, int]], isolation: str
) -> list[object]:
    """Return all that a consumer is given of partitions, in order, checksums looked at."""
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "unused",
        "enable.auto.commit": False,
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "check.crcs": True,
        "fetch.wait.max.ms": 10,
    }
    found: list[tuple[object, ...]] = []
    consumer = confluent_kafka.Consumer(settings)
    try:
        beginning = confluent_kafka.OFFSET_BEGINNING
        consumer.assign([confluent_kafka.TopicPartition(*each, beginning) for each in places])
        ended: set[tuple[str, int]] = set()
        while len(ended) < len(places):
            message = consumer.poll(60)
            assert message is not None, f"nothing comes, ends of {ended}"
            error = message.error()
            place = message.topic(), message.partition()
            if error is None:
                header = message.offset(), message.leader_epoch(), message.timestamp()
                found.append((*place, *header, message.key(), message.value(), message.headers()))
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended.add(place)
            else:
                assert error.retriable(), error
    finally:
        consumer.close()
    return sorted(found, key=lambda each: each[:3])
