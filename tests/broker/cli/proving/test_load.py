"""Writer of a run's inputs, against a broker that fails at its requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.proving.load import Writer
from barnabas.broker.cli.records.record_text import NewRecord
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.testing import Broker, ErrorCode
from tests.waiting import wait_until

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
RECORDS = 40


def record(number: int) -> NewRecord:
    return NewRecord(f"k-{number}".encode(), f"v-{number}".encode(), ())


@contextmanager
def writing(broker: Broker, topic: str, limit: int | None = None) -> Iterator[Writer]:
    """Write inputs to a new topic; the writer stops with the block."""
    broker.create_topic(topic, 3)
    cluster = Cluster([broker.address], 10.0)
    writer = Writer(cluster, topic, record, name=topic, rate=500, seed=3, limit=limit)
    writer.start()
    yield writer
    writer.stop()


def values(broker: Broker, topic: str, isolation: str = COMMITTED) -> list[str]:
    return sorted(each.value.decode() for each in broker.records(topic, isolation).result)


def test_writer_commits_most_inputs_and_aborts_some(shared_broker):
    with writing(shared_broker, "inputs") as writer:
        wait_until(lambda: writer.numbers > 400, lambda: f"{writer.numbers} inputs")
    written = values(shared_broker, "inputs", UNCOMMITTED)
    committed = values(shared_broker, "inputs")
    assert written == sorted(f"v-{number}" for number in range(writer.numbers))
    assert 0.6 * len(written) < len(committed) < len(written)


def test_writer_begins_a_new_session_after_a_rejected_batch(shared_broker):
    with (
        writing(shared_broker, "rejected", RECORDS),
        shared_broker.intercept(PRODUCE, fail=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2) as caught,
    ):
        wait_until(lambda: len(values(shared_broker, "rejected")) == RECORDS, lambda: "too few")
    assert caught.count == 2
    assert values(shared_broker, "rejected") == sorted(f"v-{n}" for n in range(RECORDS))
