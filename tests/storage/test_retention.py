"""Retention never takes what is not stable yet, nor anything after it (K5)."""

from random import Random

import pytest

from barnabas.protocol.records import read_header
from barnabas.storage.compaction.retention import apply_retention
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.readable_log import READ_COMMITTED
from barnabas.storage.log.transaction_marker import TransactionMarker
from tests.storage.stores import Host, batch, from_producer, read_all

SIZE = len(batch())
ENOUGH_MS = 10_000
BY_TIME = {"retention_ms": 1000}
BY_SIZE = {"retention_bytes": SIZE, "retention_ms": -1}
BY_NOTHING_LEFT = {"retention_bytes": 0, "retention_ms": 0}
WAYS = [BY_TIME, BY_SIZE, BY_NOTHING_LEFT]


def booted(way, per_segment=2):
    host = Host(LogConfig(segment_bytes=per_segment * SIZE, **way))
    host.boot()
    return host


def retain(host):
    host.now_ms += ENOUGH_MS
    apply_retention(host.log, host.store.journal, host.now_ms)
    host.step()
    return host.log.log_start_offset


@pytest.mark.parametrize("way", WAYS)
def test_the_segment_with_the_first_unstable_record_stays(way):
    host = booted(way)
    host.append(*(batch() for _ in range(3)))
    host.append(from_producer(7, 0, transactional=True))  # offset 3, in the segment of 2 and 3
    host.append(*(batch() for _ in range(8)))
    for _ in range(3):
        assert retain(host) == 2
    assert host.log.segments[0].base_offset == 2
    host.marker(7, commit=False)
    assert retain(host) > 3


@pytest.mark.parametrize("way", WAYS)
def test_an_open_transaction_at_the_very_start_keeps_everything(way):
    host = booted(way)
    host.append(from_producer(7, 0, transactional=True))
    host.append(*(batch() for _ in range(8)))
    assert retain(host) == 0
    assert len(host.log.segments) > 3
    host.marker(7, commit=True)
    assert retain(host) >= 8


@pytest.mark.parametrize("way", WAYS)
def test_a_segment_that_ends_where_the_transaction_begins_may_go(way):
    host = booted(way)
    host.append(*(batch() for _ in range(4)))
    host.append(from_producer(7, 0, transactional=True))  # offset 4 begins a segment
    host.append(*(batch() for _ in range(4)))
    assert retain(host) == 4
    assert host.log.last_stable_offset == 4


def test_retention_keeps_batches_that_are_not_durable():
    host = booted(BY_TIME)
    host.append(*(batch() for _ in range(4)))
    host.log.append(batch())
    host.log.append(batch())
    host.log.append(batch())
    host.now_ms += ENOUGH_MS
    apply_retention(host.log, host.store.journal, host.now_ms)
    assert host.log.journaled_start_offset == 4
    host.step()
    assert host.log.log_start_offset == 4


@pytest.mark.parametrize("decided", [False, True])
def test_a_transaction_whose_marker_is_not_durable_is_not_stable(decided):
    host = booted(BY_TIME)
    host.append(from_producer(7, 0, transactional=True))
    host.append(*(batch() for _ in range(3)))
    if decided:
        host.log.append_marker(TransactionMarker(7, 0, coordinator_epoch=1, commit=True))
    host.now_ms += ENOUGH_MS
    assert apply_retention(host.log, host.store.journal, host.now_ms) is None


@pytest.mark.parametrize("way", WAYS)
def test_deleted_records_may_reach_into_a_transaction_and_retention_stops_there(way):
    """DeleteRecords is bounded by the high watermark: an operator asked for it."""
    host = booted(way)
    host.append(*(batch() for _ in range(2)))
    host.append(*(from_producer(7, number, transactional=True) for number in range(6)))
    host.append(*(batch() for _ in range(4)))
    host.log.delete_records(5)
    host.step()
    assert host.log.last_stable_offset == 5
    assert host.log.segments[0].base_offset == 4
    assert retain(host) == 5
    assert host.log.producers.has_open_transaction(7)
    host.marker(7, commit=True)
    ((first, _), *_) = read_all(host.log, 5, READ_COMMITTED)
    assert first.base_offset == 5
    assert retain(host) > 7


@pytest.mark.parametrize("seed", range(8))
def test_random_transactions_keep_their_beginnings(seed):
    """Each step keeps all records from the first undecided one on, and readers agree."""
    chosen = Random(seed)
    host = booted(chosen.choice(WAYS), per_segment=chosen.randrange(1, 5))
    open_since: dict[int, int] = {}
    sequences = [0] * 4
    for _ in range(150):
        producer = chosen.randrange(4)
        action = chosen.random()
        if action < 0.4:
            (offset,) = host.append(
                from_producer(producer, sequences[producer], transactional=True)
            )
            open_since.setdefault(producer, offset)
            sequences[producer] += 1
        elif action < 0.6 and producer in open_since:
            host.marker(producer, commit=chosen.random() < 0.5)
            del open_since[producer]
        elif action < 0.8:
            host.append(batch(timestamp=host.now_ms))
        else:
            retain(host)
            if chosen.random() < 0.2:
                host.shut_down() if chosen.random() < 0.5 else host.kill()
                host.boot()
        log = host.log
        first = min(open_since.values(), default=log.next_offset)
        assert log.log_start_offset <= first
        assert log.segments[0].base_offset <= first
        found = [read_header(data).base_offset for _, data in read_all(log)]
        assert [offset for offset in found if offset >= first] == list(
            range(first, log.next_offset)
        )
