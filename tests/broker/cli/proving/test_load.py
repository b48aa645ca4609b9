"""Writer of a run's inputs, against a broker that fails at its requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.proving.load import Writer
from barnabas.broker.cli.records.record_text import NewRecord
from barnabas.protocol.messages.end_txn import END_TXN
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.testing import Broker, ErrorCode
from tests.waiting import wait_until

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
RECORDS = 40


def record(number: int) -> NewRecord:
    return NewRecord(f"k-{number}".encode(), f"v-{number}".encode(), ())


@contextmanager
def writing(broker: Broker, topic: str, limit: int | None = None) -> Iterator[Writer]:
    """Write inputs to a topic; the writer stops with the block."""
    cluster = Cluster([broker.address], 10.0)
    writer = Writer(cluster, topic, record, name=topic, rate=500, seed=3, limit=limit)
    writer.start()
    yield writer
    writer.stop()


def values(broker: Broker, topic: str, isolation: str = COMMITTED) -> list[str]:
    return sorted(each.value.decode() for each in broker.records(topic, isolation).result)


def test_writer_commits_most_inputs_and_aborts_some(shared_broker):
    shared_broker.create_topic("inputs", 3)
    with writing(shared_broker, "inputs") as writer:
        wait_until(lambda: writer.numbers > 400, lambda: f"{writer.numbers} inputs")
    written = values(shared_broker, "inputs", UNCOMMITTED)
    committed = values(shared_broker, "inputs")
    assert written == sorted(f"v-{number}" for number in range(writer.numbers))
    assert 0.6 * len(written) < len(committed) < len(written)


def test_writer_begins_a_new_session_after_a_rejected_batch(shared_broker):
    shared_broker.create_topic("rejected", 3)
    with (
        writing(shared_broker, "rejected", RECORDS),
        shared_broker.intercept(PRODUCE, fail=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2) as caught,
    ):
        wait_until(lambda: len(values(shared_broker, "rejected")) == RECORDS, lambda: "too few")
    assert caught.count == 2
    assert values(shared_broker, "rejected") == sorted(f"v-{n}" for n in range(RECORDS))


@pytest.mark.parametrize(
    ("fault", "times"),
    [
        ({"lose_answer": True}, 2),
        ({"drop": True}, 2),
        ({"fail": ErrorCode.COORDINATOR_NOT_AVAILABLE}, 3),
        ({"fail": ErrorCode.INVALID_PRODUCER_EPOCH}, 2),
    ],
    ids=["response lost", "request lost", "rejected", "aborted"],
)
def test_each_replayed_record_is_committed_once_though_its_end_fails(shared_broker, fault, times):
    topic = f"{'-'.join(fault)}-{times}"
    shared_broker.create_topic(topic, 3)
    with (
        shared_broker.intercept(END_TXN, times=times, **fault) as caught,
        writing(shared_broker, topic, RECORDS) as writer,
    ):
        wait_until(lambda: writer.numbers == RECORDS, lambda: f"{writer.numbers} records")
    assert caught.count == times
    assert values(shared_broker, topic) == sorted(f"v-{n}" for n in range(RECORDS))


def test_writer_counts_the_records_that_it_has_not_written(shared_broker):
    shared_broker.create_topic("long", 3)
    with writing(shared_broker, "long", 1_000_000) as writer:
        assert writer.left == 1_000_000
        wait_until(lambda: writer.numbers, lambda: "no record")
    assert writer.left == 1_000_000 - writer.numbers
    assert len(values(shared_broker, "long")) == writer.numbers


def test_writer_reports_that_its_last_transaction_does_not_end(own_broker):
    own_broker.create_topic("stuck", 1)
    with (
        own_broker.intercept(END_TXN, fail=ErrorCode.COORDINATOR_NOT_AVAILABLE) as caught,
        pytest.raises(CommandError, match="the last inputs were not written in 60 s"),
        writing(own_broker, "stuck") as writer,
    ):
        wait_until(lambda: caught.count, lambda: f"{writer.numbers} inputs")
