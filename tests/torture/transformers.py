"""Members of a group that consume, transform, produce, and commit their offsets in transactions."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from typing import Any, Protocol

import kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from kafka.errors import KafkaError as KafkaPythonError

from tests.history.model import COMMITTED, REBALANCE, SEEK, Partition, Read, Write
from tests.torture.client import Client
from tests.torture.readers import taken
from tests.torture.settings import GROUP, LEFT, OUT, PARTITIONS
from tests.torture.writers import Transactions

SESSION_MS = 6000
MOST_RECORDS = 40
POLL_S = 0.2
RETRY_S = 0.1
ABORTS, DAWDLES = 0.1, 0.05


class Input(Protocol):
    """A member of the group that says what it was given and who it is."""

    was_moved: bool
    """Whether partitions came or went since somebody last looked."""

    def __init__(self, client: Client) -> None: ...

    def poll(self) -> list[Read]: ...

    def metadata(self) -> Any:
        """Return what fences a member that is none any more (KIP-447)."""

    def rewind(self) -> bool:
        """Go to what is committed; False when that cannot be known now."""

    def close(self) -> None: ...


class Confluent:
    """confluent-kafka."""

    def __init__(self, client: Client) -> None:
        self.was_moved = True
        self._client = client
        self._consumer = Consumer(
            {
                "bootstrap.servers": client.settings.servers,
                "client.id": client.settings.name,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "isolation.level": COMMITTED,
                "partition.assignment.strategy": "range",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "error_cb": lambda _error: None,
                "log_level": 0,
            }
        )
        self._consumer.subscribe(
            [LEFT], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def poll(self) -> list[Read]:
        polled = map(taken, self._consumer.consume(MOST_RECORDS, POLL_S))
        return [each for each in polled if each is not None]

    def metadata(self) -> Any:
        return self._consumer.consumer_group_metadata()

    def rewind(self) -> bool:
        try:
            places = self._consumer.assignment()
            if not places:
                return True
            found = self._consumer.committed(places, 5)
            if any(each.error for each in found):
                return False
            self._client.journal.moved([(each.topic, each.partition) for each in found], SEEK)
            for each in found:
                offset = each.offset if each.offset >= 0 else OFFSET_BEGINNING
                self._consumer.seek(TopicPartition(each.topic, each.partition, offset))
        except KafkaException:
            return False
        return True

    def close(self) -> None:
        self._consumer.close()

    def _assigned(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        self.was_moved = True
        self._client.journal.moved(map(_place, places), REBALANCE)

    def _revoked(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        self.was_moved = True
        self._client.journal.moved(map(_place, places), REBALANCE)


class KafkaPython(kafka.ConsumerRebalanceListener):
    """kafka-python."""

    def __init__(self, client: Client) -> None:
        self.was_moved = True
        self._client = client
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=client.settings.servers,
            client_id=client.settings.name,
            group_id=GROUP,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=COMMITTED,
            partition_assignment_strategy=[
                kafka.coordinator.assignors.range.RangePartitionAssignor
            ],
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=500,
            fetch_max_wait_ms=50,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
        )
        self._consumer.subscribe([LEFT], listener=self)

    def poll(self) -> list[Read]:
        try:
            polled = self._consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=MOST_RECORDS)
        except KafkaPythonError:
            time.sleep(RETRY_S)
            return []
        records = (record for batch in polled.values() for record in batch)
        return [Read(r.topic, r.partition, r.offset, r.value.decode()) for r in records]

    def metadata(self) -> Any:
        return self._consumer.group_metadata()

    def rewind(self) -> bool:
        try:
            places = sorted(self._consumer.assignment())
            offsets = {place: self._consumer.committed(place) or 0 for place in places}
            self._client.journal.moved(map(_place, places), SEEK)
            for place, offset in offsets.items():
                self._consumer.seek(place, offset)
        except (KafkaPythonError, AssertionError):
            # The partition went away meanwhile.
            return False
        return True

    def close(self) -> None:
        self._consumer.close()

    def on_partitions_assigned(self, assigned: Iterable[kafka.TopicPartition]) -> None:
        self.was_moved = True
        self._client.journal.moved(map(_place, assigned), REBALANCE)

    def on_partitions_revoked(self, revoked: Iterable[kafka.TopicPartition]) -> None:
        self.was_moved = True
        self._client.journal.moved(map(_place, revoked), REBALANCE)


_INPUTS: dict[str, type[Input]] = {"confluent": Confluent, "kafka_python": KafkaPython}


def transform(client: Client) -> None:
    """Read `left`, write one record to `out` for each, until told to stop."""
    chance = random.Random(client.settings.seed)
    transactions = Transactions(client)
    while not transactions.ready():
        if client.stopping:
            return
    source = _INPUTS[client.settings.library](client)
    while not client.stopping:
        # Who it was before it was given anything: a member that is none any more is then fenced,
        # whatever its library has learnt meanwhile. What came while partitions moved may be from
        # before; it is left, and read again.
        group = source.metadata()
        source.was_moved = False
        reads = source.poll()
        done = not source.was_moved
        if done and reads:
            done = _transformed(transactions, chance, reads, group)
        while not done and not client.stopping:
            # A new session ends what the one before left open; then is committed what is committed.
            done = transactions.ready() and _rewound(client, source)
    with client.watched():
        source.close()
    transactions.end_session()


def _transformed(
    transactions: Transactions, chance: random.Random, reads: list[Read], group: Any
) -> bool:
    outputs = [
        Write(OUT, chance.randrange(PARTITIONS), transactions.value(), source=read.value)
        for read in reads
    ]
    offsets = {read.place: read.offset + 1 for read in reads}
    pause_s = chance.uniform(0.05, 0.5) if chance.random() < DAWDLES else 0.0
    aborts = chance.random() < ABORTS
    return transactions.run([outputs], pause_s, reads, offsets, group, aborts=aborts)


def _rewound(client: Client, source: Input) -> bool:
    with client.watched():
        if source.rewind():
            return True
    time.sleep(RETRY_S)
    return False


def _place(partition: Any) -> Partition:
    return partition.topic, partition.partition
