"""A member of a group on confluent-kafka, which is librdkafka."""

from __future__ import annotations

import os
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.history.model import ASSIGNED, LOST, REVOKED, Partition, Read
from tests.workload.drivers import MOST_POLLED, POLL_S
from tests.workload.progress import CommitRefused, CommitUnsure, Progress
from tests.workload.settings import FATAL_EXIT_CODE, Settings

REFUSALS = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.FENCED_MEMBER_EPOCH,
}


FATAL = {KafkaError._FATAL, KafkaError.UNRELEASED_INSTANCE_ID}


def _end_when_fatal(error: KafkaError) -> None:
    """End without a request to the broker, as an application that has to start again."""
    if error.fatal():
        os._exit(FATAL_EXIT_CODE)


def _configuration(settings: Settings) -> dict[str, Any]:
    configuration = {
        "bootstrap.servers": settings.servers,
        "client.id": settings.name,
        "group.id": settings.group,
        "group.protocol": settings.protocol,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "topic.metadata.refresh.interval.ms": 2000,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "error_cb": _end_when_fatal,
    }
    if settings.instance:
        configuration["group.instance.id"] = settings.instance
    if settings.protocol == "consumer":
        # The broker decides about times; librdkafka refuses the classic settings here.
        configuration["group.remote.assignor"] = settings.assignor
        configuration["debug"] = "cgrp"  # A member that stops its heartbeats must leave a trace.
    else:
        configuration["partition.assignment.strategy"] = settings.assignor
        configuration["session.timeout.ms"] = settings.session_ms
        configuration["heartbeat.interval.ms"] = settings.heartbeat_ms
    return configuration


class Member:
    """A member of a group, by both protocols, eager and cooperative."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self._progress = progress
        self._consumer = Consumer(_configuration(settings))
        self._consumer.subscribe(
            [settings.pattern] if settings.pattern else list(settings.topics),
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._lost,
        )

    def poll(self) -> list[Read]:
        messages = filter(_is_record, self._consumer.consume(MOST_POLLED, POLL_S))
        return [Read(m.topic(), m.partition(), m.offset(), m.value().decode()) for m in messages]

    def commit(self) -> None:
        with self._progress.commit() as (attempt, offsets):
            if offsets:
                self._send_commit(attempt, offsets)

    def close(self) -> None:
        self._consumer.close()

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._progress.moved(map(_place, partitions), ASSIGNED)

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.commit()
        self._progress.moved(map(_place, partitions), REVOKED)

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._progress.moved(map(_place, partitions), LOST)

    def _send_commit(self, attempt: str, offsets: dict[Partition, int]) -> None:
        asked = [TopicPartition(t, p, o, metadata=attempt) for (t, p), o in offsets.items()]
        try:
            answered = self._consumer.commit(offsets=asked, asynchronous=False)
        except KafkaException as error:
            raise _failed(error.args[0]) from error
        for each in answered:
            if each.error is not None:
                raise _failed(each.error) from KafkaException(each.error)


def _failed(error: KafkaError) -> Exception:
    return CommitRefused() if error.code() in REFUSALS else CommitUnsure()


def _is_record(message: Message) -> bool:
    # Other messages report, for example, a broker that is down for a moment. A fatal error that
    # occurred before the first poll is such a message, too.
    error = message.error()
    if error is not None and error.code() in FATAL:
        os._exit(FATAL_EXIT_CODE)
    return error is None


def _place(partition: TopicPartition) -> Partition:
    return partition.topic, partition.partition
