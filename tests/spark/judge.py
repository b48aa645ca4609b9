"""Is every result there once, is nothing open, do the group's offsets say what the checkpoint says?

Asked over the wire and with librdkafka, of any broker.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.interop.administration import admin, create
from tests.interop.transactional import COMMITTED, committed_offset, read_with_confluent
from tests.spark.job import Job, expected_value
from tests.waiting import wait_until

PARTITIONS = 2
PATIENCE_S = 120
LOOK_S = 0.05
OPEN_STATES = ["Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"]
MOVING = {
    confluent_kafka.KafkaError.NOT_LEADER_FOR_PARTITION,
    confluent_kafka.KafkaError.LEADER_NOT_AVAILABLE,
}
"""Errors of a partition that another broker of the cluster is about to lead."""


class Found(NamedTuple):
    """The contents of a topic, compared with the expected records."""

    expected: int
    duplicates: int
    losses: int
    strangers: int
    """The number of values that no query should have written."""

    @property
    def is_exact(self) -> bool:
        return not (self.duplicates or self.losses or self.strangers)


def feed(job: Job, numbers: range) -> None:
    """Put numbers into the input topic in a fixed way; create the topics if they do not exist."""
    known = admin(job.servers).list_topics(timeout=PATIENCE_S).topics
    for topic in (job.input, job.output):
        if topic not in known:
            create(job.servers, topic, partitions=PARTITIONS)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": job.servers, "enable.idempotence": True}
    )
    for number in numbers:
        place = number % PARTITIONS
        producer.produce(job.input, b"%d" % number, b"key-%d" % (number % 10), partition=place)
        if number % 10_000 == 0:
            producer.flush(PATIENCE_S)
    assert producer.flush(PATIENCE_S) == 0


def judge(brokers: Sequence[BrokerProcess], job: Job, records: int) -> None:
    """Demand all that the crash tables promise, once the query has ended."""
    until(lambda: open_anywhere(brokers, f"spark.{job.name}"), [], "open transactions")
    places = [(job.output, partition) for partition in range(PARTITIONS)]
    ends = log_ends(job.servers, places, IsolationLevel.READ_UNCOMMITTED)
    until(lambda: log_ends(job.servers, places, IsolationLevel.READ_COMMITTED), ends, "LSO")
    found = results(job, records)
    assert found.is_exact, found
    # Nothing stays behind where the stock sink is at home.
    read_to = offsets_of_checkpoint(job)
    inputs = [(job.input, partition) for partition in range(PARTITIONS)]
    assert read_to == log_ends(job.servers, inputs, IsolationLevel.READ_UNCOMMITTED)
    for (topic, partition), offset in read_to.items():
        assert committed_offset(job.servers, job.group, topic, partition) == offset


def results(job: Job, records: int) -> Found:
    """Compare what a reader of committed records sees with what it should see."""
    seen = read_with_confluent(job.servers, job.output, PARTITIONS, COMMITTED)
    counted = Counter(value for values in seen.values() for value in values)
    expected = {expected_value(number) for number in range(job.results_of(records))}
    return Found(
        len(expected),
        duplicates=sum(count - 1 for count in counted.values()),
        losses=len(expected - counted.keys()),
        strangers=len(counted.keys() - expected),
    )


def until(look: Callable[[], object], wanted: object, what: str) -> None:
    """Wait until something is as it should be: markers follow a decision."""
    seen: list[object] = []

    def is_so() -> bool:
        seen[:] = [look()]
        return seen == [wanted]

    wait_until(is_so, lambda: (what, *seen, wanted), seconds=PATIENCE_S, pause_s=LOOK_S)


def open_anywhere(brokers: Sequence[BrokerProcess], prefix: str) -> list[tuple[str, str]]:
    """Return the open transactions of a sink, of all coordinators."""
    return [found for broker in brokers for found in open_transactions(broker, prefix)]


def open_transactions(broker: BrokerProcess, prefix: str) -> list[tuple[str, str]]:
    """Return the transactions of a sink that have not ended, or that this is not known yet."""
    with WireClient(broker) as client:
        answer = client.ask(LIST_TRANSACTIONS, ListTransactionsRequest(OPEN_STATES), 0)
    code = ErrorCode(answer.error_code)
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return [("any", code.name)]  # It has just become their coordinator.
    assert code == ErrorCode.NONE, code
    return [
        (each.transactional_id, each.transaction_state)
        for each in answer.transaction_states
        if each.transactional_id.startswith(prefix)
    ]


def log_ends(
    servers: str, places: Iterable[tuple[str, int]], isolation: IsolationLevel
) -> dict[tuple[str, int], int]:
    """Return the ends of partitions for consumers of an isolation level."""
    client = admin(servers)
    wanted = {TopicPartition(*place): OffsetSpec.latest() for place in places}
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answers = client.list_offsets(wanted, isolation_level=isolation, request_timeout=60)
        try:
            return {
                (place.topic, place.partition): future.result(PATIENCE_S).offset
                for place, future in answers.items()
            }
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() not in MOVING or time.monotonic() > deadline:
                raise
            time.sleep(LOOK_S)


def offsets_of_checkpoint(job: Job) -> dict[tuple[str, int], int]:
    """Return the end offsets of the last batch that Spark considers done."""
    checkpoint = Path(job.checkpoint)
    last = max(int(each.name) for each in (checkpoint / "commits").iterdir() if each.name.isdigit())
    _version, _metadata, *sources = (checkpoint / "offsets" / str(last)).read_text().splitlines()
    ends = [
        {
            (topic, int(partition)): offset
            for topic, offsets in json.loads(source).items()
            for partition, offset in offsets.items()
        }
        for source in sources
    ]
    assert all(each == ends[0] for each in ends), "sources of one topic that end differently"
    return ends[0]
