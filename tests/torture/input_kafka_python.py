"""A member of the group on kafka-python."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError

from tests.counterparts.logins import kafka_python_settings
from tests.history.model import COMMITTED, REBALANCE, SEEK, Partition, Read
from tests.torture.client import Client
from tests.torture.settings import GROUP, LEFT
from tests.torture.transformers import MOST_RECORDS, POLL_S, RETRY_S, session_ms


class Input(ConsumerRebalanceListener):
    """kafka-python."""

    def __init__(self, client: Client) -> None:
        self.was_moved = True
        self._client = client
        self._consumer = KafkaConsumer(
            bootstrap_servers=client.settings.servers,
            client_id=client.settings.name,
            group_id=GROUP,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=COMMITTED,
            partition_assignment_strategy=[RangePartitionAssignor],
            session_timeout_ms=session_ms(client),
            heartbeat_interval_ms=500,
            fetch_max_wait_ms=50,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            **kafka_python_settings(client.settings.login),
        )
        self._consumer.subscribe([LEFT], listener=self)

    def poll(self) -> list[Read]:
        try:
            polled = self._consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=MOST_RECORDS)
        except KafkaError:
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
        except (KafkaError, AssertionError):
            # The partition went away meanwhile.
            return False
        return True

    def close(self) -> None:
        self._consumer.close()

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.was_moved = True
        self._client.journal.moved(map(_place, assigned), REBALANCE)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.was_moved = True
        self._client.journal.moved(map(_place, revoked), REBALANCE)


def _place(partition: TopicPartition) -> Partition:
    return partition.topic, partition.partition
