"""Damage that `verify` finds, exactly and leniently."""

from dataclasses import replace

import pytest

from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.producer_entry import CachedBatch
from barnabas.storage.repair.check import verify
from tests.storage.stores import NOW_MS, Host, batch, from_producer

SMALL = LogConfig(segment_bytes=2000, index_interval_bytes=100)


@pytest.fixture
def host():
    """Several segments with growing timestamps, and producers of all kinds."""
    host = Host(SMALL)
    host.boot()
    for number in range(40):
        host.append(batch(timestamp=NOW_MS + number))
    for sequence in range(8):
        host.append(from_producer(7, sequence, timestamp=NOW_MS + 100 + sequence))
    host.append(from_producer(8, 0, transactional=True, timestamp=NOW_MS + 200))
    assert len(host.log.segments) > 2
    assert verify(host.log) == []
    return host


@pytest.fixture
def log(host):
    return host.log


def both(log):
    """Return the exact and the lenient findings."""
    return verify(log), verify(log, exact=False)


def test_another_interval_is_no_damage(log):
    for segment in log.segments:
        segment.index_interval_bytes = 300
    exact, lenient = both(log)
    assert any("the offset index is not what a rebuild gives" in problem for problem in exact)
    assert lenient == []


@pytest.mark.parametrize("by", [-1, 1])
def test_wrong_entries_of_an_offset_index(log, by):
    offsets = log.segments[0].index.offsets
    offsets._offsets[1] += by
    exact, lenient = both(log)
    assert len(exact) == 1
    (problem,) = lenient
    assert "wrong entry in its offset index" in problem


def test_entries_that_point_elsewhere(log):
    log.segments[0].index.offsets._positions[1] += 1
    assert len(verify(log, exact=False)) == 1


def test_wrong_entries_of_a_time_index(log):
    log.segments[0].index.times._timestamps[1] -= 1
    (problem,) = verify(log, exact=False)
    assert "wrong entry in its time index" in problem


def test_only_so_many_entries_are_named(log):
    offsets = log.segments[0].index.offsets
    assert len(offsets) > 4
    for number in range(len(offsets)):
        offsets._positions[number] += 1
    assert len(verify(log, exact=False)) == 3


def test_a_forgotten_producer_is_no_damage(log):
    del log.producers._entries[7]
    exact, lenient = both(log)
    assert len(exact) == 1
    assert lenient == []


def test_kafka_remembers_one_batch(log):
    entry = log.producers.entry(7)
    del entry.batches[:-1]
    assert both(log)[1] == []
    assert len(both(log)[0]) == 1


def forget_an_open_transaction(log):
    del log.producers._entries[8]


def another_epoch(log):
    log.producers.entry(7).epoch = 3


def another_coordinator(log):
    log.producers.entry(7).coordinator_epoch = 3


def another_sequence(log):
    entry = log.producers.entry(7)
    entry.batches[-1] = entry.batches[-1]._replace(last_sequence=99)


def a_batch_too_many(log):
    log.producers.entry(8).batches.insert(0, CachedBatch(0, 0, 0, NOW_MS))


def another_transaction(log):
    log.producers.entry(8).transaction_first_offset -= 1


def a_stranger(log):
    log.producers._touch(99, 0, NOW_MS)


@pytest.mark.parametrize(
    "damage",
    [
        forget_an_open_transaction,
        another_epoch,
        another_coordinator,
        another_sequence,
        a_batch_too_many,
        another_transaction,
        a_stranger,
    ],
    ids=lambda damage: damage.__name__,
)
def test_producers_that_contradict_the_log(log, damage):
    damage(log)
    for exact in (True, False):
        assert any("the producer state is not what" in each for each in verify(log, exact=exact))


def test_a_batch_that_changed(host):
    log = host.log
    segment = log.segments[0]
    segment.file.pwritev([b"\xff"], 70)
    for exact in (True, False):
        assert any("the checksum does not match" in each for each in verify(log, exact=exact))


def test_intervals_changed_on_the_way():
    host = Host(SMALL)
    host.boot()
    host.append(*(batch(timestamp=NOW_MS + number) for number in range(30)))
    host.log.configure(replace(SMALL, index_interval_bytes=500))
    host.append(*(batch(timestamp=NOW_MS + number) for number in range(30, 60)))
    assert verify(host.log, exact=False) == []
