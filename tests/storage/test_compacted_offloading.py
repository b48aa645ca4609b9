"""Compacted logs whose segments leave the disk, and passes that read them from the store."""

import errno
from dataclasses import replace

import pytest

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.storage.errors import Corrupt, StoreSilent
from barnabas.storage.replicated import header_loading
from barnabas.storage.replicated.cold_store import ColdStore
from barnabas.storage.replicated.offloading import (
    facts_of,
    leaving_of,
    local_of,
    offload,
    unfollowed_bytes,
)
from barnabas.storage.replicated.remote_segment import RemoteSegment
from tests.storage.cleaning import COMPACTED
from tests.storage.leading import Broker, committed
from tests.storage.remote import Cold, HeadersBroker
from tests.storage.stores import batch, read_all

KEYS = 12
DELETE_RETENTION_MS = 1000


@pytest.fixture
def leader():
    """A leader whose keys have two values each, the second ones in later segments."""
    leader = Broker(MemoryIndex(), COMPACTED, 0)
    for number in range(2 * KEYS):
        put(leader, b"k%d" % (number % KEYS), b"%d" % number + bytes(100))
    leader.roll()
    return leader


@pytest.fixture
def cold(leader):
    made = Cold(leader.index)
    yield made
    made.store.close()


def put(leader, key, value):
    leader.append(batch(key=key, value=value, timestamp=leader.now_ms))


def leave(leader, cold):
    """Take segments off the disk; return their number."""
    leaving = [*leaving_of(leader.log, leader.keep_snapshot())]
    left = sum(offload(each, facts_of(each), cold.store) for each in leaving)
    leader.checkpoint()
    return left


def remote(log):
    return [each for each in log.segments if isinstance(each, RemoteSegment)]


def latest():
    return {b"k%d" % at: b"%d" % (KEYS + at) + bytes(100) for at in range(KEYS)}


def test_pass_reads_segments_that_only_the_store_has(leader, cold):
    log, before = leader.log, leader.log.size_bytes
    assert leave(leader, cold) > 2
    assert log.local_segments == [log.active]
    assert leader.compact()
    assert log.size_bytes < 0.7 * before
    assert committed(log, 0).state == latest()
    assert leader.walk()
    assert leave(leader, cold)
    assert log.local_segments == [log.active]
    assert committed(log, 0).state == latest()
    assert committed(HeadersBroker(leader.index, COMPACTED, 1, cold).log, 0).state == latest()


def test_cleaned_segment_stays_until_the_store_has_followed(leader, cold):
    log = leader.log
    leader.compact()
    cleaned = [each for each in log.local_segments if each.differs_from_store]
    stuck_bytes = sum(each.size_bytes for each in cleaned)
    assert local_of(log, log.next_offset).stuck_bytes == unfollowed_bytes([log]) == stuck_bytes
    leave(leader, cold)
    assert log.local_segments == [*cleaned, log.active]
    assert leader.walk(2) is False
    assert leave(leader, cold) == 0
    assert leader.walk()
    assert unfollowed_bytes([log]) == 0
    assert leave(leader, cold) == len(cleaned)


def test_segments_that_a_pass_has_yet_to_read_stay(leader, cold):
    log = leader.log
    second, third = log.segments[1:3]
    log.cleaning.unread = range(second.base_offset, third.end_offset)
    leave(leader, cold)
    assert [each for each in log.local_segments if each is not log.active] == [second, third]


def test_log_that_its_coordinator_has_not_read_stays(leader, cold):
    leader.log.cleaning.awaits_replay = True
    assert leave(leader, cold) == 0
    leader.log.cleaning.awaits_replay = False
    assert leave(leader, cold) > 0


def test_delete_horizon_reaches_the_store():
    leader = Broker(MemoryIndex(), COMPACTED, 0)
    cold = Cold(leader.index)
    put(leader, b"a", b"1")
    put(leader, b"b", None)
    put(leader, b"c", b"1")
    leader.roll()
    sizes = []
    for _ in range(2):  # The first pass sets the horizon, which changes no size.
        assert leader.compact()
        assert leader.walk()
        assert leave(leader, cold)
        sizes.append(leader.log.size_bytes)
        leader.now_ms += 2 * DELETE_RETENTION_MS
    assert sizes[1] < sizes[0], "the tombstone is still there"
    cold.store.close()


def test_extent_with_gaps_is_read_by_a_segment_without_any(leader, cold, monkeypatch):
    monkeypatch.setattr(header_loading, "SEGMENT_BYTES", 300)
    leader.compact()
    assert leader.walk(portion_bytes=1 << 20)
    (extent,) = leader.index.rows[1].extents
    loaded = HeadersBroker(leader.index, COMPACTED, 1, cold).log
    begins = [each.base_offset for each in remote(loaded)]
    assert len(begins) > 2
    assert extent.base_offset == begins[0]
    for begin in reversed(begins):
        assert committed(loaded, begin).values


def test_silent_store_ends_a_pass_without_a_trace(leader, cold, monkeypatch):
    log, before = leader.log, read_all(leader.log)
    leave(leader, cold)

    def silent(*_args, **_how):
        raise OSError(errno.ETIMEDOUT, "the store does not respond")

    segments = [*log.segments]
    with monkeypatch.context() as patched:
        patched.setattr(ColdStore, "read", silent)
        with pytest.raises(StoreSilent):
            leader.compact()
    assert log.segments == segments
    assert read_all(log) == before


def test_records_that_the_store_lacks_end_a_pass(leader, cold):
    leave(leader, cold)
    first = remote(leader.log)[0]
    row = leader.index.rows[1]
    row.extents = [each for each in row.extents if each.base_offset >= first.end_offset]
    with pytest.raises(Corrupt):
        leader.compact()


def test_pass_starts_at_the_log_start_where_the_store_has_deleted(leader, cold):
    leader.log.configure(replace(COMPACTED, cleanup_policy=COMPACTED.cleanup_policy | {"delete"}))
    leave(leader, cold)
    start = leader.log.segments[1].base_offset + 1
    leader.delete_records(start)
    leader.keep_snapshot()
    assert leader.index.collect_garbage(100)
    assert leader.compact()
    state = committed(leader.log, start).state
    assert {key: state.get(key) for key in latest()} == latest()
