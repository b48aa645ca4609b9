"""Committed offsets of groups, by OffsetFetch and from ``__consumer_offsets``."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from barnabas.protocol.api import prefix
from barnabas.protocol.messages.offset_commit_record import OFFSET_COMMIT_RECORD
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.storage.runtime.clock import counter_ns
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.history.model import LOOK, NOT_KNOWN, LoggedCommit, OffsetCommit, Operation
from tests.requests import fetch_offsets_request

INTERVAL_S = 0.1
OFFSETS_TOPIC = "__consumer_offsets"
READ_S = 60
Place = tuple[str, str, int]
"""Group, topic, partition."""


def committed(broker: BrokerProcess, groups: Sequence[str]) -> dict[Place, int]:
    """Return all committed offsets of the groups."""
    with WireClient(broker) as client:
        return _ask(client, groups)


def look(broker: BrokerProcess, groups: Sequence[str]) -> Operation:
    """Return all committed offsets of the groups, as an operation."""
    with WireClient(broker) as client:
        return _look(client, groups)


def _look(client: WireClient, groups: Sequence[str]) -> Operation:
    asked_ns = counter_ns()
    commits = as_commits(_ask(client, groups))
    return Operation(
        LOOK,
        "observer",
        invoked_ns=asked_ns,
        completed_ns=counter_ns(),
        commits=commits,
        groups=tuple(groups),
    )


def as_commits(offsets: Mapping[Place, int]) -> tuple[OffsetCommit, ...]:
    """Return committed offsets as a history has them."""
    return tuple(OffsetCommit(*place, offset) for place, offset in sorted(offsets.items()))


def _ask(client: WireClient, groups: Sequence[str]) -> dict[Place, int]:
    response = client.ask(OFFSET_FETCH, fetch_offsets_request(*groups), 9)
    errors = {group.group_id: group.error_code for group in response.groups if group.error_code}
    if errors:
        raise ConnectionError(f"OffsetFetch answered {errors}")
    return {
        (group.group_id, topic.name, partition.partition_index): partition.committed_offset
        for group in response.groups
        for topic in group.topics
        for partition in topic.partitions
    }


class Observer:
    """A thread that queries the broker repeatedly, and later again if it does not respond."""

    def __init__(self, broker: BrokerProcess, groups: Sequence[str]) -> None:
        self.seen: list[Operation] = []
        self._broker = broker
        self._groups = list(groups)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observer")

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL_S):
            try:
                with WireClient(self._broker) as client:
                    while not self._stopping.wait(INTERVAL_S):
                        self._look(client)
            except OSError:
                # The broker is down, or has not loaded its groups: no answer is no evidence.
                continue

    def _look(self, client: WireClient) -> None:
        found = _look(client, self._groups)
        # Of equal results the first and the last are kept: what is read after the end of the first
        # may be no less, and the last may be no less than what was read before it.
        if [each.commits for each in self.seen[-2:]] == [found.commits] * 2:
            self.seen.pop()
        self.seen.append(found)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        still_looks = self._thread.is_alive()
        self._stopping.set()
        self._thread.join()
        assert still_looks or error, "the observer failed; its own error is above"


def log_ends(servers: str) -> dict[int, int]:
    """Return the end offsets of the partitions of __consumer_offsets that are not empty."""
    consumer = _reader(servers)
    try:
        topics = consumer.list_topics(OFFSETS_TOPIC, READ_S).topics
        ends = {}
        for number in topics[OFFSETS_TOPIC].partitions:
            place = TopicPartition(OFFSETS_TOPIC, number)
            low, high = consumer.get_watermark_offsets(place, timeout=READ_S)
            if high > low:
                ends[number] = high
        return ends
    finally:
        consumer.close()


def commits_in_log(servers: str, since: Mapping[int, int] | None = None) -> list[LoggedCommit]:
    """Return everything about offsets in __consumer_offsets, in the order of each partition.

    `since` are earlier `log_ends`, for a reader that knows the records before them.
    """
    left = log_ends(servers)
    begins = {number: (since or {}).get(number, OFFSET_BEGINNING) for number in left}
    consumer = _reader(servers)
    try:
        consumer.assign([TopicPartition(OFFSETS_TOPIC, *place) for place in begins.items()])
        return _read_to_the_end(consumer, left)
    finally:
        consumer.close()


def _reader(servers: str) -> Consumer:
    settings: dict[str, str | int | float | bool | None] = {
        "bootstrap.servers": servers,
        "group.id": "reader-of-offsets",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 50,
        "enable.partition.eof": True,
    }
    return Consumer(settings)


def _read_to_the_end(consumer: Consumer, ends: dict[int, int]) -> list[LoggedCommit]:
    unfinished = set(ends)
    found: list[LoggedCommit] = []
    deadline = time.monotonic() + READ_S
    while unfinished:
        assert time.monotonic() < deadline, f"{OFFSETS_TOPIC} not read to its end: {unfinished}"
        for message in consumer.consume(1000, 0.2):
            error = message.error()
            if error is None:
                found.extend(_decoded(message.key(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
            else:
                raise KafkaException(error)
    return found


def _decoded(key: bytes, value: bytes | None) -> list[LoggedCommit]:
    # Version 0 of the key was made by brokers before 0.9, version 1 is what there is; 2 and more
    # are the groups themselves.
    if prefix(key) != OFFSET_COMMIT_RECORD.key_type:
        return []
    place = OFFSET_COMMIT_RECORD.decode_key(key)
    name: Place = (place.group, place.topic, place.partition)
    if value is None:
        return [LoggedCommit(*name, NOT_KNOWN)]
    commit = OFFSET_COMMIT_RECORD.decode_value(value)
    # librdkafka's Python binding sends the zero byte at the end of the C string, too.
    return [LoggedCommit(*name, commit.offset, commit.metadata.rstrip("\0"))]
