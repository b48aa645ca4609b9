"""What a broker holds that goes to a cluster, or comes from one, and whether all of it is there."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata

from barnabas.storage.metastore.contents import Contents
from barnabas.storage.metastore.interface import AclRow, QuotaRow, ScramRow
from barnabas.storage.metastore.sqlite import FILE_NAME, SqliteMetaStore
from barnabas.testing import Broker
from tests.broker.data_plane import Named, Wire
from tests.broker.raw_producer import RawProducer

CLUSTER_ID = "b3V0c2lkZS1hLWNsdXN0ZQ"
SETTINGS = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}
ORDERS, CUT, COMPACTED, DELETED = "orders", "cut", "compacted", "deleted"
EMPTIED = "emptied"
PARTITIONS = {ORDERS: 2, CUT: 1, COMPACTED: 1, EMPTIED: 1}
"""Of each topic that is there in the end."""
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
    """See that what was brought is what is there, but for tombstones, and when it changed."""
    assert there.image.topics
    assert there.image.acls
    assert replace(brought, image=replace(brought.image, deleted=())) == replace(
        there, image=replace(there.image, deleted=())
    )


class Carried:
    """Writes to a broker; ``check`` finds it all at another one, and goes on with it."""

    def __init__(self, broker: Broker) -> None:
        configs = {COMPACTED: {"cleanup.policy": "compact"}, ORDERS: {"retention.ms": "-1"}}
        for name, partitions in ((DELETED, 2), *PARTITIONS.items()):
            broker.create_topic(name, partitions, configs.get(name))
        servers = broker.bootstrap_servers
        with contextlib.closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
            admin.delete_topics([DELETED])
            self._write(servers)
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
        self.note(broker)

    def note(self, broker: Broker) -> None:
        """Take note of the records that are there."""
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

    def _read(self, broker: Broker, isolation: str = "read_uncommitted") -> dict[str, object]:
        return {name: broker.records(name, isolation).result for name in PARTITIONS}

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
            fenced_epoch = self.open.epoch
            self.open.init()
            assert self.open.epoch > fenced_epoch
        committed = {each.value for each in broker.records(ORDERS, "read_committed").result}
        assert {b"open-0", b"open-1", b"next", b"committed"} <= committed
        assert committed.isdisjoint({b"classic-0", b"classic-1", b"aborted"})
