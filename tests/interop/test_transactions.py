"""Transactions with three client libraries: commit, abort, fence, timeout, offsets, readers.

All of them speak the protocol's first generation (`transaction.version` 0 and 1); Apache Kafka's
own client, which speaks the second, is in test_transaction_tools.py.
"""

from __future__ import annotations

import pytest

from tests.interop.administration import create
from tests.interop.transactional import (
    COMMITTED,
    PRODUCERS,
    READERS,
    UNCOMMITTED,
    Rejected,
    committed,
    committed_offset,
    read_with_confluent,
)

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
PARTITIONS = 3
SHORT_MS = (1000, 5000, 30_000)
"""Timeouts of an abandoned transaction, in turn: a busy machine needs longer to open it."""
FENCED = {
    "confluent-kafka": {"_FENCED"},
    "kafka-python": {"ProducerFencedError"},
    "aiokafka": {"ProducerFenced"},
}
"""The errors by which libraries report that another producer has the transactional id."""
FENCED_IN_A_SEND = FENCED | {
    "kafka-python": {"InvalidProducerEpochError"},
    # Or only what became of the record, where the fatal error itself is lost (see its `send`): the
    # broker's own word if it was on its way already.
    "confluent-kafka": FENCED["confluent-kafka"]
    | {"_FATAL", "_PURGE_QUEUE", "_PURGE_INFLIGHT", "INVALID_PRODUCER_EPOCH"},
}


@pytest.fixture(params=PRODUCERS)
def library(request):
    return request.param


@pytest.fixture
def servers(transactional_broker):
    return transactional_broker.bootstrap_servers


@pytest.fixture
def outputs(servers, topic):
    """The test's topic."""
    create(servers, topic, partitions=PARTITIONS)
    return topic


@pytest.fixture
def producer(library, servers, topic):
    """Make producers with the test's transactional id, or another one."""
    made = []

    def make(transactional_id: str = topic, timeout_ms: int = 600_000):
        made.append(PRODUCERS[library](servers, transactional_id, timeout_ms))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_producer_commits_aborts_and_continues(producer, servers, outputs):
    ours = producer()
    ours.begin()
    ours.send(outputs, 0, b"a", b"b")
    ours.send(outputs, 1, b"c")
    ours.send(outputs, 2, b"d")
    # Acknowledged, and yet to be decided.
    assert read_with_confluent(servers, outputs, PARTITIONS, COMMITTED) == {}
    ours.commit()
    ours.begin()
    ours.send(outputs, 0, b"not e")
    ours.send(outputs, 2, b"not f")
    ours.abort()
    ours.begin()
    ours.send(outputs, 0, b"g")
    ours.commit()
    expected = {0: [b"a", b"b", b"g"], 1: [b"c"], 2: [b"d"]}
    assert committed(servers, outputs, PARTITIONS, expected) == expected
    # Aborted records stay in their place for a `read_uncommitted` consumer.
    everything = {0: [b"a", b"b", b"not e", b"g"], 1: [b"c"], 2: [b"d", b"not f"]}
    assert read_with_confluent(servers, outputs, PARTITIONS, UNCOMMITTED) == everything


def test_a_transaction_may_be_empty(producer, servers, outputs):
    ours = producer()
    ours.begin()
    ours.commit()
    ours.begin()
    ours.abort()
    ours.begin()
    ours.send(outputs, 0, b"a")
    ours.commit()
    assert committed(servers, outputs, PARTITIONS, {0: [b"a"]}) == {0: [b"a"]}


@pytest.mark.parametrize("attempt", ["commit", "send"])
def test_a_second_producer_with_the_same_id_ends_the_first(
    producer, servers, outputs, library, attempt
):
    first = producer()
    first.begin()
    first.send(outputs, 0, b"before")
    first.commit()
    first.begin()
    first.send(outputs, 0, b"open")
    second = producer()
    arguments = (outputs, 0, b"late") if attempt == "send" else ()
    with pytest.raises(Rejected) as refused:
        getattr(first, attempt)(*arguments)
    assert str(refused.value) in (FENCED_IN_A_SEND if attempt == "send" else FENCED)[library]
    with pytest.raises((Rejected, AssertionError)):
        first.abort()
    second.begin()
    second.send(outputs, 0, b"after")
    second.commit()
    wanted = {0: [b"before", b"after"]}
    assert committed(servers, outputs, PARTITIONS, wanted) == wanted
    everything = {0: [b"before", b"open", b"after"]}
    assert read_with_confluent(servers, outputs, PARTITIONS, UNCOMMITTED) == everything


def test_an_abandoned_transaction_is_aborted_when_its_time_is_up(
    producer, servers, outputs, topic, library
):
    abandoned = open_shortly(producer, outputs, f"group-of-{topic}")
    other = producer(f"another-{topic}")
    other.begin()
    other.send(outputs, 0, b"behind it")
    other.commit()
    # The record that is committed waits for what lies before it.
    wanted = {0: [b"behind it"]}
    assert committed(servers, outputs, PARTITIONS, wanted) == wanted
    assert committed_offset(servers, f"group-of-{topic}", outputs, 1) < 0
    with pytest.raises(Rejected) as refused:
        abandoned.commit()
    assert str(refused.value) in FENCED[library]
    # A producer that restarts under its id continues.
    again = producer()
    again.begin()
    again.send(outputs, 0, b"again")
    again.commit()
    wanted = {0: [b"behind it", b"again"]}
    assert committed(servers, outputs, PARTITIONS, wanted) == wanted


def open_shortly(producer, outputs, group):
    """Open a transaction that ends by itself soon, but not before it is complete."""
    for timeout_ms in SHORT_MS:
        abandoned = producer(timeout_ms=timeout_ms)
        abandoned.begin()
        try:
            abandoned.send(outputs, 0, b"open")
            abandoned.send_offsets({(outputs, 1): 5}, group)
        except Rejected:
            continue
        return abandoned
    pytest.fail("there is no time for two requests")


def test_offsets_are_committed_with_the_records_or_not_at_all(producer, servers, outputs, topic):
    group = f"group-of-{topic}"
    ours = producer()
    ours.begin()
    ours.send(outputs, 0, b"a")
    ours.send_offsets({(outputs, 1): 3, (outputs, 2): 7}, group)
    ours.commit()
    assert [committed_offset(servers, group, outputs, each) for each in (1, 2)] == [3, 7]
    ours.begin()
    ours.send(outputs, 0, b"not b")
    ours.send_offsets({(outputs, 1): 30}, group)
    ours.abort()
    assert [committed_offset(servers, group, outputs, each) for each in (1, 2)] == [3, 7]
    # Offsets alone make a transaction, too.
    ours.begin()
    ours.send_offsets({(outputs, 1): 4}, group)
    ours.commit()
    assert committed_offset(servers, group, outputs, 1) == 4
    assert committed(servers, outputs, PARTITIONS, {0: [b"a"]}) == {0: [b"a"]}


def test_every_reader_sees_the_same(servers, outputs, topic):
    """Read overlapping transactions of all libraries with every library's consumer."""
    producers = {name: kind(servers, f"{name}-{topic}") for name, kind in PRODUCERS.items()}
    for turn in range(4):
        for name, each in producers.items():
            each.begin()
            each.send(outputs, turn % PARTITIONS, f"{name} {turn}".encode())
        for number, each in enumerate(producers.values()):
            (each.commit if (turn + number) % 2 else each.abort)()
    everything = {
        partition: [
            f"{name} {turn}".encode()
            for turn in range(4)
            if turn % PARTITIONS == partition
            for name in PRODUCERS
        ]
        for partition in range(PARTITIONS)
    }
    names = list(PRODUCERS)
    expected = {
        partition: [
            value
            for value in values
            if (int(value.split()[1]) + names.index(value.split()[0].decode())) % 2
        ]
        for partition, values in everything.items()
    }
    assert committed(servers, outputs, PARTITIONS, expected) == expected
    for read in READERS.values():
        assert read(servers, outputs, PARTITIONS, COMMITTED) == expected
        assert read(servers, outputs, PARTITIONS, UNCOMMITTED) == everything
    # One transaction that stays open hides what lies behind it, and only there.
    first, second, *_ = producers.values()
    first.begin()
    first.send(outputs, 1, b"open")
    second.begin()
    second.send(outputs, 1, b"hidden")
    second.send(outputs, 2, b"shown")
    second.commit()
    expected[2].append(b"shown")
    assert committed(servers, outputs, PARTITIONS, expected) == expected
    for read in READERS.values():
        assert read(servers, outputs, PARTITIONS, COMMITTED) == expected
        assert read(servers, outputs, PARTITIONS, UNCOMMITTED)[1][-2:] == [b"open", b"hidden"]
    first.commit()
    expected[1] += [b"open", b"hidden"]
    assert committed(servers, outputs, PARTITIONS, expected) == expected
    for each in producers.values():
        each.close()
