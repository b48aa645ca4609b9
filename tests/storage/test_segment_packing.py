"""Logs whose records are packed into segments, while the store fails and leaders change (F12)."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.uploads import MemoryUploads
from barnabas.storage.errors import Corrupt
from barnabas.storage.log.config import COMPACT, LogConfig
from barnabas.storage.log.readable_log import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.storage.objects.blob_store import SegmentKey, claim_of
from barnabas.storage.replicated import segment_sidecar
from barnabas.storage.replicated.blob_garbage import delete_dead_objects
from barnabas.storage.replicated.log_index import Extent
from tests.storage.flushes import Stranger, assign
from tests.storage.leading import MANY, Broker, run
from tests.storage.packing import (
    LIMITS,
    FailingOnce,
    PackedLedger,
    Packing,
    check_segments,
    packed_extents,
    stored_batches,
)
from tests.storage.remote import Cold, RemoteBroker, keep_parts
from tests.storage.stores import batch, read_all
from tests.storage.test_remote_segments import CONFIG, History, assert_readable, assert_same


@pytest.fixture(scope="module", autouse=True)
def _small_blocks():
    """Give segments several blocks."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(segment_sidecar, "BLOCK_BYTES", 250)
        yield


STEPS_OF_A_PACK = 12
FATES = ("", "before", "after", "ghost")


class PackedHistory(History):
    """One log whose leaders pack it, with a store of objects that fails."""

    def __init__(self):
        super().__init__(PackedLedger())
        self.blobs = FailingOnce(self.index)
        self.packing = Packing(self.leader, self.blobs)
        self.dead = []

    def lead(self, leader):
        self.leader = leader
        self.kept_offset = 0
        self.packing = Packing(leader, self.blobs)

    def portion(self, number):
        found = self.packing.portions(self.kept_offset)
        return found[number % len(found)] if found else None

    def step(self, name, number, amount):
        portion = self.portion(number) if name.startswith("pack") else None
        if name == "pack all":
            self.packing.run_all(self.kept_offset)
        elif name == "pack fails" and portion:
            fates = [FATES[number % 4], FATES[amount % 4]]
            self.blobs.fates = fates
            is_packed = self.packing.run(portion)
            if portion.size_bytes >= LIMITS.object_bytes_min and any(fates):
                assert not is_packed
            self.blobs.fates = []
        elif name == "pack crashes" and portion:
            self.packing.run(portion, steps=amount % STEPS_OF_A_PACK)
            self.lead(self.take_over(self.cold if number % 2 else None))
        elif name == "pack moved" and portion:
            epoch = self.leader.log.leader_epoch
            stranger = Stranger(self.index).session
            at = amount % STEPS_OF_A_PACK
            self.packing.run(portion, at=at, meanwhile=lambda: assign(self.index, 1, stranger))
            if self.index.partition(1).leader_epoch != epoch:
                self.lead(self.take_over())
        elif name == "pack trimmed" and portion:
            self.packing.run(
                portion,
                at=amount % STEPS_OF_A_PACK,
                meanwhile=lambda: self.step("delete", number, amount),
            )
        elif name == "lost results":
            self.leader.way.lose_answers(number % 3)
        elif name == "ghosts":
            self.blobs.let_ghosts_arrive()
        elif name == "janitor":
            delete_dead_objects(self.index, self.blobs)
        elif name == "janitor sleeps":
            self.dead += self.index.dead_keys([*self.index.uploads])
        elif name == "janitor wakes":
            self.blobs.delete(self.dead)
            self.dead = []
        elif name == "old leader":
            self.lead(self.take_over(self.cold if number % 2 else None))
        else:
            super().step(name, number, amount)


EVENTS = (
    ["plain", "data", "flush", "end"] * 3
    + ["keep", "within", "pack all"] * 2
    + ["pack fails", "pack crashes", "pack moved", "pack trimmed", "lost results", "ghosts"]
    + ["delete", "collect", "offload", "janitor", "janitor sleeps", "janitor wakes"]
)
STEPS = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.integers(0, 4), st.integers(0, 100)),
    min_size=10,
    max_size=60,
)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
@given(STEPS)
def test_packed_log_is_the_log_after_all_failures_f12(steps):
    history = PackedHistory()
    for step in steps:
        history.step(*step)
        check_segments(history.index)
        assert_readable(history.leader.log)
    history.leader.way.lose_answers(0)
    history.step("within", 0, 0)
    history.step("pack all", 0, 0)
    check_segments(history.index)
    whole = history.take_over()
    if whole.log.log_start_offset < history.index.rows[1].snapshot.next_offset:
        remote = history.take_over(Cold(history.index))
        assert_same(remote.log, whole.log, history.times)
    history.blobs.let_ghosts_arrive()
    delete_dead_objects(history.index, history.blobs)
    named = {claim_of(each.key).name for each in packed_extents(history.index)}
    of_live_session = {
        each for each in history.index.uploads if SegmentKey.parse(each).text not in named
    }
    assert of_live_session == set()


@pytest.fixture
def index():
    return PackedLedger()


@pytest.fixture
def leader(index):
    leader = Broker(index, CONFIG, 0)
    for _ in range(20):
        leader.append(batch(), batch())
    return leader


@pytest.fixture
def blobs(index):
    return FailingOnce(index)


def test_portions_become_segments(index, leader, blobs):
    end = keep_parts(leader)
    packing = Packing(leader, blobs)
    before = read_all(leader.log)
    portions = packing.portions(end)
    assert len(portions) > 2
    assert packing.run_all(end) == [True] * len(portions)
    assert [each[:2] for each in packed_extents(index)] == [each[:2] for each in portions]
    assert packing.portions(end) == []
    check_segments(index)
    remote = RemoteBroker(index, CONFIG, 1, Cold(index))
    assert read_all(remote.log) == before


def test_small_portion_of_many_extents_stays_in_a_row(index, leader, blobs):
    end = keep_parts(leader)
    packing = Packing(leader, blobs, LIMITS._replace(object_bytes_min=MANY**2))
    before = stored_batches(index)
    (first, *_) = packing.portions(end)
    assert packing.run(first)
    assert stored_batches(index) == before
    assert index.extent_sizes(1, 0, most=1)[0][:2] == (first.begin, first.end)
    assert packed_extents(index) == []


def test_nothing_behind_the_snapshot_is_packed_f4(index, leader, blobs):
    end = keep_parts(leader)
    leader.append(batch(), batch())
    packing = Packing(leader, blobs)
    assert packing.portions(end)[-1].end <= end
    assert packing.portions(0) == []


def test_log_start_within_the_first_extent_leaves_it(index, leader, blobs):
    leader.delete_records(1)
    end = keep_parts(leader)
    packing = Packing(leader, blobs)
    assert packing.portions(end)[0].begin == 2
    assert all(packing.run_all(end))
    assert index.extent_sizes(1, 0, most=1)[0].key is None


def test_wrong_bytes_on_the_leaders_disk_are_not_packed(index, leader, blobs):
    end = keep_parts(leader)
    leader.checkpoint()
    segment = leader.log.segments[0]
    segment.file.pwritev([b"\xff"], 80)
    packing = Packing(leader, blobs)
    assert packing.run(packing.portions(end)[0]) is False
    assert packed_extents(index) == []


def test_log_that_is_shorter_than_its_extents_is_not_packed(index, leader, blobs, monkeypatch):
    """The index would refuse it."""
    end = keep_parts(leader)
    packing = Packing(leader, blobs)
    (portion, *_) = packing.portions(end)
    monkeypatch.setattr(index, "replace_by_segment", lambda *_: pytest.fail("it was called"))
    assert packing.run(portion._replace(size_bytes=portion.size_bytes + 1)) is False


def test_store_with_other_bytes_is_not_replaced(index, leader, blobs):
    """The store's copy was compacted meanwhile, for example."""
    end = keep_parts(leader)
    packing = Packing(leader, blobs)
    (portion, *_) = packing.portions(end)
    extents = index.extents(1, portion.begin, most=portion.extents)
    joined = Extent(portion.begin, portion.end, extents[-1].leader_epoch, extents[-1].data)

    def compact():
        assert leader.way.replace_extents(leader.session, 1, leader.log.leader_epoch, [joined])

    walk = packing.begin(portion)
    while not index.uploads.list("seg/", "", MANY):
        walk.send(None)
    compact()
    before = stored_batches(index)
    assert run(walk) is False
    assert stored_batches(index) == before


def test_store_with_other_bytes_is_not_replaced_by_a_row(index, leader, blobs):
    end = keep_parts(leader)
    packing = Packing(leader, blobs, LIMITS._replace(object_bytes_min=MANY**2))
    (portion, *_) = packing.portions(end)
    extents = index.extents(1, portion.begin, most=portion.extents)
    joined = Extent(portion.begin, portion.end, extents[-1].leader_epoch, extents[-1].data)
    assert leader.way.replace_extents(leader.session, 1, leader.log.leader_epoch, [joined])
    before = stored_batches(index)
    assert packing.run(portion) is False
    assert stored_batches(index) == before


def test_log_that_is_compacted_while_its_segment_is_put_is_not_packed(index, leader, blobs):
    """Compaction has joined an extent of the portion with one before it, so no range fits."""
    end = keep_parts(leader)
    packing = Packing(leader, blobs)
    first, second, *_ = packing.portions(end)
    walk = packing.begin(second)
    while not index.uploads.list("seg/", "", MANY):
        walk.send(None)
    leader.log.config = replace(CONFIG, cleanup_policy=frozenset((COMPACT,)))
    data = index.extents(1, first.begin, most=1)[0].data
    joined = Extent(first.begin, second.end, leader.log.leader_epoch, data)
    assert leader.way.replace_extents(leader.session, 1, leader.log.leader_epoch, [joined])
    before = stored_batches(index)
    assert run(walk) is False
    assert stored_batches(index) == before


def test_compacted_log_is_not_packed(index, blobs):
    config = LogConfig(segment_bytes=500, cleanup_policy=frozenset((COMPACT,)))
    leader = Broker(index, config, 0)
    leader.append(*[batch() for _ in range(20)])
    end = leader.keep_snapshot()
    packing = Packing(leader, blobs)
    assert packing.run_all(end) == [False]
    assert packed_extents(index) == []


def test_log_with_gaps_is_neither_packed_nor_suspected(index, blobs):
    config = LogConfig(segment_bytes=500, cleanup_policy=frozenset((COMPACT,)))
    leader = Broker(index, config, 0)
    leader.append(*[batch() for _ in range(20)])
    assert leader.compact()
    assert leader.walk()
    leader.log.configure(LogConfig(segment_bytes=500))
    suspected = []
    leader.store.callbacks.on_suspected = lambda *named: suspected.append(named)
    assert not any(Packing(leader, blobs).run_all(leader.keep_snapshot()))
    assert packed_extents(index) == []
    assert not suspected
    successor = Broker(index, LogConfig(segment_bytes=500), 1)
    successor.store.callbacks.on_suspected = leader.store.callbacks.on_suspected
    assert not any(Packing(successor, blobs).run_all(successor.keep_snapshot()))
    assert not suspected


def test_segments_go_with_retention_and_so_do_their_sidecars(index, leader, blobs):
    end = keep_parts(leader)
    packing = Packing(leader, blobs)
    packing.run_all(end)
    (first, *rest) = packed_extents(index)
    leader.delete_records(first.next_offset + 1)
    index.collect_garbage(MANY)
    assert packed_extents(index) == rest
    assert delete_dead_objects(index, blobs) == 1, "the sidecar"
    check_segments(index)
    leader.delete_records(end)
    index.collect_garbage(MANY)
    assert delete_dead_objects(index, blobs) == len(rest)
    assert [*index.uploads] == []


SIDECARS = {
    "missing": lambda _: None,
    "header": lambda data: b"?" + data[1:],
    "blocks": lambda data: data[:90] + bytes([data[90] ^ 1]) + data[91:],
    "of another segment": lambda data: data,
    "cut off": lambda data: data[:40],
    "empty": lambda _: b"",
}


@pytest.mark.parametrize("damage", SIDECARS)
@pytest.mark.parametrize("read_bytes", [4 * 1024 * 1024, 100])
def test_segment_without_a_usable_sidecar_is_read_by_its_batches(
    index, leader, blobs, damage, read_bytes, monkeypatch, caplog
):
    monkeypatch.setattr(segment_sidecar, "READ_BYTES", read_bytes)
    before = read_all(leader.log)
    Packing(leader, blobs).run_all(keep_parts(leader))
    (first, second, *_) = packed_extents(index)
    key = SegmentKey.parse(first.key).sidecar
    other = SegmentKey.parse(second.key).sidecar
    of = other if damage == "of another segment" else key
    data = SIDECARS[damage](index.uploads.get_range(of, 0, MANY**2))
    index.uploads.delete([key])
    if data is not None:
        MemoryUploads.put(index.uploads, key, data)
    cold = Cold(index)
    assert read_all(RemoteBroker(index, CONFIG, 1, cold).log) == before
    words = f"sidecar unusable, segment was read instead key={first.key} error="
    assert caplog.messages
    assert [each for each in caplog.messages if not each.startswith(words)] == []
    cold.store.close()


@pytest.mark.parametrize("cut", [1, 70])
def test_segment_that_is_damaged_beside_its_sidecar_is_damage(index, leader, blobs, cut):
    Packing(leader, blobs).run_all(keep_parts(leader))
    (first, *_) = packed_extents(index)
    body = index.uploads.get_range(first.key, 0, MANY**2)
    index.uploads.delete([SegmentKey.parse(first.key).sidecar])
    index.uploads._segments[first.key] = body[:-cut]
    cold = Cold(index)
    with pytest.raises(Corrupt, match="is cut off"):
        read_all(RemoteBroker(index, CONFIG, 1, cold).log)
    cold.store.close()


def test_reader_continues_while_extents_are_packed(index, leader, blobs):
    end = keep_parts(leader)
    cold = Cold(index)
    remote = RemoteBroker(index, CONFIG, 1, cold)
    before = read_all(remote.log)
    for segment in remote.log.segments[:-1]:
        for number in range(len(segment._file._stretches)):
            cold.cache.forget(segment._file._key(number, segment._file._stretches))
    packing = Packing(remote, blobs)
    assert all(packing.run_all(end))
    assert read_all(remote.log) == before
    cold.cache.close()
    assert read_all(remote.log) == before


@pytest.mark.parametrize("isolation", [READ_UNCOMMITTED, READ_COMMITTED])
def test_successor_packs_what_its_predecessor_left(index, leader, blobs, isolation):
    keep_parts(leader)
    before = read_all(leader.log, 0, isolation)
    successor = RemoteBroker(index, CONFIG, 1, Cold(index))
    end = keep_parts(successor)
    packing = Packing(successor, blobs)
    assert all(packing.run_all(end))
    assert packing.portions(end) == []
    whole = Broker(index, CONFIG, 2)
    assert read_all(whole.log, 0, isolation) == before


def test_keys_of_another_form_are_nobodys():
    key = SegmentKey(26, 7, 3, 31)
    assert key.text == "seg/1a/00000000000000000007-3-000000000000001f.log"
    assert SegmentKey.parse(key.text) == SegmentKey.parse(key.sidecar) == key
    assert claim_of(key.sidecar) == (3, 2, 31, key.text)
    for wrong in ("seg/1a/7-3-1f.log", "seg/1a/x.log", key.text + "x", "wal/1/0-1", "seg/"):
        assert claim_of(wrong) is None
    assert MemoryIndex().dead_keys(["seg/1a/x.log"]) == []
