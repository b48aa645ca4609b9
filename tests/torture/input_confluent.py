"""A member of the group on confluent-kafka."""

from __future__ import annotations

from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from tests.counterparts.logins import librdkafka_settings
from tests.history.model import COMMITTED, REBALANCE, SEEK, Partition, Read
from tests.torture.client import Client
from tests.torture.readers import taken
from tests.torture.settings import GROUP, LEFT, LIBRDKAFKA
from tests.torture.transformers import MOST_RECORDS, POLL_S, session_ms


class Input:
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
                "session.timeout.ms": session_ms(client),
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 50,
                **LIBRDKAFKA,
                **librdkafka_settings(client.settings.login),
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


def _place(partition: TopicPartition) -> Partition:
    return partition.topic, partition.partition
