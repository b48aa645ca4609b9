"""kafka-python: transactions, readers, members of a group."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import kafka
from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import AuthorizationError, KafkaConnectionError, KafkaError, KafkaTimeoutError
from kafka.structs import OffsetAndMetadata

from tests.counterparts.logins import Login, kafka_python_settings
from tests.counterparts.mended_kafka_python import PatientClient
from tests.history.model import COMMITTED, REBALANCE, SEEK, Partition, Read, Write
from tests.workload.drivers import (
    MOST_INPUTS,
    POLL_S,
    Failed,
    Over,
    patience_s,
    session_ms,
)
from tests.workload.journal import Journal
from tests.workload.payload import value_of
from tests.workload.settings import GROUP, LEFT, PLACES, Settings

MOST_RECORDS = 500
RETRY_S = 0.1

Result = TypeVar("Result")


class Session:
    """kafka-python."""

    def __init__(self, servers: str, transactional_id: str, timeout_ms: int, login: Login) -> None:
        self._patience_s = patience_s(timeout_ms)
        self._producer = self._try(
            lambda: kafka.KafkaProducer(
                bootstrap_servers=servers,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                max_block_ms=self._patience_s * 1000,
                reconnect_backoff_ms=20,
                reconnect_backoff_max_ms=200,
                kafka_client=PatientClient,
                **kafka_python_settings(login),
            ),
            Over,
        )
        self._try(self._producer.init_transactions, Over)

    def begin(self) -> None:
        self._try(self._producer.begin_transaction, Over)

    def send(self, writes: Sequence[Write]) -> list[Write]:
        def send_all() -> list[Write]:
            sent = [
                self._producer.send(write.topic, write.value.encode(), partition=write.partition)
                for write in writes
            ]
            placed = [future.get(timeout=self._patience_s) for future in sent]
            return [w._replace(offset=p.offset) for w, p in zip(writes, placed, strict=True)]

        return self._try(send_all, Failed)

    def send_offsets(self, offsets: Mapping[Partition, int], group: Any) -> None:
        places = {
            kafka.TopicPartition(*place): OffsetAndMetadata(at, "", -1)
            for place, at in offsets.items()
        }
        # Refused offsets would be sent with those of the next transaction (3.0.12): a producer
        # with such offsets is not used again.
        self._try(lambda: self._producer.send_offsets_to_transaction(places, group), Over)

    def commit(self) -> None:
        self._try(self._producer.commit_transaction, Failed)

    def abort(self) -> None:
        self._try(self._producer.abort_transaction, Over)

    def close(self) -> None:
        # Unsent records are dropped, which it reports by an error.
        with contextlib.suppress(KafkaError):
            self._producer.close(timeout=0)

    @staticmethod
    def _try(operation: Callable[[], Result], failure: type[Exception]) -> Result:
        try:
            return operation()
        except KafkaError as error:
            raise failure(repr(error)) from error


class Reader:
    """A reader of all partitions."""

    def __init__(self, settings: Settings) -> None:
        places = [TopicPartition(*place) for place in PLACES]
        self._consumer = KafkaConsumer(
            bootstrap_servers=settings.servers,
            group_id=None,
            isolation_level=settings.isolation,
            auto_offset_reset="none",
            fetch_max_wait_ms=100,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            **kafka_python_settings(settings.login),
        )
        self._consumer.assign(places)
        for place in places:
            self._consumer.seek(place, 0)

    def poll(self) -> list[Read]:
        try:
            polled = self._consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=MOST_RECORDS)
        except (AuthorizationError, KafkaConnectionError, KafkaTimeoutError):
            # Other libraries return nothing while the broker is down or denies the request.
            time.sleep(POLL_S)
            return []
        return _reads(polled)

    def close(self) -> None:
        self._consumer.close()


def _reads(polled: Mapping[TopicPartition, Iterable[Any]]) -> list[Read]:
    records = (record for batch in polled.values() for record in batch)
    return [Read(r.topic, r.partition, r.offset, value_of(r.value)) for r in records]


class Input(ConsumerRebalanceListener):
    """A member of the group of transformers."""

    group = GROUP

    def __init__(self, settings: Settings, journal: Journal) -> None:
        self.was_moved = True
        self._journal = journal
        self._consumer = KafkaConsumer(
            bootstrap_servers=settings.servers,
            client_id=settings.name,
            group_id=GROUP,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=COMMITTED,
            partition_assignment_strategy=[RangePartitionAssignor],
            session_timeout_ms=session_ms(settings),
            heartbeat_interval_ms=500,
            fetch_max_wait_ms=50,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            **kafka_python_settings(settings.login),
        )
        self._consumer.subscribe([LEFT], listener=self)

    def poll(self) -> list[Read]:
        try:
            polled = self._consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=MOST_INPUTS)
        except KafkaError:
            time.sleep(RETRY_S)
            return []
        return _reads(polled)

    def metadata(self) -> Any:
        return self._consumer.group_metadata()

    def rewind(self) -> bool:
        try:
            places = sorted(self._consumer.assignment())
            offsets = {place: self._consumer.committed(place) or 0 for place in places}
            self._journal.moved(map(_place, places), SEEK)
            for place, offset in offsets.items():
                self._consumer.seek(place, offset)
        except (KafkaError, AssertionError):
            # The partition went away meanwhile.
            return False
        return True

    def close(self) -> None:
        self._consumer.close()

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.was_moved = True
        self._journal.moved(map(_place, assigned), REBALANCE)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.was_moved = True
        self._journal.moved(map(_place, revoked), REBALANCE)


def _place(partition: TopicPartition) -> Partition:
    return partition.topic, partition.partition
