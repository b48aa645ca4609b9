"""A leader that appends, compacts and deletes at random, and others that take over from the store.

What is loaded is what compaction could have left: the committed state and its aborted records are
the same, and so is what is known of producers and epochs. Run one seed again with
``SEED=<seed>``.
"""

from dataclasses import replace
from random import Random

import pytest

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.protocol.records import Record, encode_batch, iterate_batches
from barnabas.storage.compaction.cleaner import ENTRY_BYTES
from barnabas.storage.log.config import DELETE
from barnabas.storage.repair.check import verify
from barnabas.storage.replicated.offloading import facts_of, leaving_of, offload
from barnabas.storage.replicated.remote_segment import RemoteSegment
from barnabas.storage.replicated.stored_compaction import StoredCompaction
from tests.seeds import SEED
from tests.storage.cleaning import COMPACTED
from tests.storage.flushes import register, snapshot_of
from tests.storage.leading import MANY, Broker, Now, committed, producers_of, run, stored_bytes
from tests.storage.remote import Cold, HeadersBroker
from tests.storage.stores import batch
from tests.storage.test_cleaner_random import KEYS, Reader

SMALL_BYTES = 250
"""Two batches."""
STEPS = 250


# ------------------------------------------------------------------------------ at random


class Workload:
    """Plain, idempotent and transactional producers on few keys."""

    def __init__(self, random, config):
        self.random = random
        self.config = config
        self.index = MemoryIndex()
        self.lives = 0
        self.broker = Broker(self.index, config, 0)
        self.number = 0
        self.sequences = {}
        self.open = {}
        """The values of each open transaction, by producer."""
        self.aborted = set()
        self.slow = Reader()
        self.shrunk = 0
        self.cold = Cold(self.index)
        self.compacted_elsewhere = 0
        """Number of passes over segments that only the store had."""

    def run(self):
        """Run all steps; AssertionError if a takeover finds a difference."""
        for _ in range(STEPS):
            self.step()

    def step(self):
        self.broker.now_ms += self.random.choice((0, 1, 20, 300))
        actions = {
            self.append: 14,
            self.transactional: 10,
            self.marker: 8,
            self.compact: 4,
            self.walk: 4,
            self.read_slowly: 6,
            self.delete_records: 2,
            self.snapshot: 1,
            self.collect: 2,
            self.pack: 2,
            self.offload: 3,
            self.take_over: 2,
        }
        self.random.choices(list(actions), list(actions.values()))[0]()

    def _batch(self, producer_id, *, transactional=False):
        records = []
        for at in range(self.random.choice((1, 1, 2, 6))):
            self.number += 1
            value = b"%d " % self.number * self.random.choice((1, 10, 30))
            is_tombstone = self.random.random() < 0.15
            key = self.random.choice(KEYS)
            records.append(Record(at, self.broker.now_ms, key, None if is_tombstone else value, ()))
            if transactional:
                self.open.setdefault(producer_id, []).append(value)
        fields = {}
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + len(records)
            fields = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": sequence,
                "transactional": transactional,
            }
        return memoryview(bytearray(encode_batch(records, **fields)))

    def append(self):
        self.broker.append(
            *(
                self._batch(self.random.choice((-1, -1, 100, 101, 300 + len(self.sequences))))
                for _ in range(self.random.randint(1, 4))
            )
        )

    def transactional(self):
        producer_id = self.random.choice((200, 201, 202))
        self.broker.append(self._batch(producer_id, transactional=True))

    def marker(self):
        if self.open:
            producer_id = self.random.choice(sorted(self.open))
            values = self.open.pop(producer_id)
            is_commit = self.random.random() < 0.6
            self.broker.marker(producer_id, commit=is_commit)
            if not is_commit:
                self.aborted.update(values)

    def compact(self):
        remote = [each for each in self.broker.log.segments if isinstance(each, RemoteSegment)]
        self.broker.compact(map_bytes=self.random.choice((600, 1 << 20)))
        left = {each for each in self.broker.log.segments if isinstance(each, RemoteSegment)}
        self.compacted_elsewhere += not left.issuperset(remote)

    def walk(self):
        before = stored_bytes(self.index)

        def meanwhile():
            if not self.random.randrange(20):
                self.random.choice((self.append, self.compact, self.collect, self.pack))()

        self.broker.walk(self.random.choice((None, None, 3, 9)), meanwhile)
        self.shrunk += before > stored_bytes(self.index)

    def read_slowly(self):
        log = self.broker.log
        self.slow.position = max(self.slow.position, log.log_start_offset)
        self.slow.read(log, self.random.choice((1, 300, 3000)))

    def delete_records(self):
        log = self.broker.log
        if DELETE in self.config.cleanup_policy:
            start, end = log.log_start_offset, log.last_stable_offset
            self.broker.delete_records(self.random.randint(start, (3 * start + end) // 4))

    def snapshot(self):
        self.broker.keep_snapshot()

    def collect(self):
        self.index.collect_garbage(self.random.choice((1, 3, MANY)))

    def pack(self):
        self.index.pack_extents(self.random.choice((1, 3, MANY)), MANY, 0)

    def offload(self):
        """Take segments off the disk of the leader."""
        log = self.broker.log
        for each in [*leaving_of(log, self.broker.keep_snapshot())]:
            if self.random.random() < 0.7:
                assert offload(each, facts_of(each), self.cold.store)
        self.broker.checkpoint()

    def take_over(self):
        """Another broker has to find all that matters of what the leader has."""
        former = self.broker
        self.lives += 1
        life = (self.index, self.config, self.lives)
        if self.random.random() < 0.5:
            self.broker = Broker(*life, former.now_ms)
            assert verify(self.broker.log) == []
        else:
            self.broker = HeadersBroker(*life, self.cold, now_ms=former.now_ms)
        self.compare(self.broker.log, former.log)
        former.store.abandon()

    def compare(self, loaded, live):
        """Check that a takeover keeps the meaning of the log."""
        bounds = ("log_start_offset", "high_watermark", "last_stable_offset", "next_offset")
        for bound in bounds:
            assert getattr(loaded, bound) == getattr(live, bound)
        assert producers_of(loaded) == producers_of(live)
        for epoch in range(live.leader_epoch + 1):
            _, end = live.end_offset_for_epoch(epoch)
            ends = {end, max(end, live.log_start_offset)}
            assert loaded.end_offset_for_epoch(epoch)[1] in ends
        for _ in range(3):
            start = self.random.randint(live.log_start_offset, live.next_offset)
            self._compare_from(start, loaded, live)
        self._compare_from(live.log_start_offset, loaded, live)

    def _compare_from(self, start, loaded, live):
        """Compare the logs, where records that the leader has removed may still exist.

        To consumers that is the same in the end.
        """
        found, wanted = committed(loaded, start), committed(live, start)
        assert known(found.state) == known(wanted.state)
        assert is_subsequence(wanted.values, found.values)
        assert not self.aborted & set(found.values)


def known(state):
    """The keys with a value: a tombstone may be there still, or not."""
    return {key: value for key, value in state.items() if value is not None}


def is_subsequence(some, all_of_them):
    """Whether ``some`` come in this order among ``all_of_them``, tombstones apart."""
    left = iter(all_of_them)
    return all(each in left for each in some if each is not None)


@pytest.mark.parametrize(
    "policy",
    [COMPACTED.cleanup_policy, COMPACTED.cleanup_policy | {DELETE}],
    ids=["compact", "both"],
)
@pytest.mark.parametrize("number", range(3))
def test_takeover_finds_the_latest_values_after_compaction(policy, number):
    seed = SEED + number
    print("seed", seed)
    workload = Workload(Random(seed), replace(COMPACTED, cleanup_policy=policy))
    workload.run()
    assert workload.shrunk, "nothing was compacted in the store"
    assert workload.compacted_elsewhere, "no pass has read the store"
    workload.take_over()
    while workload.open:
        workload.marker()
    while workload.broker.walk() is False:
        pass
    workload.take_over()
    # A reader that was slow, over all of these leaders, knows no value that was overtaken.
    log, slow = workload.broker.log, workload.slow
    latest = known(committed(log, log.log_start_offset).state)
    slow.position = max(slow.position, log.log_start_offset)
    while slow.read(log, 300):
        pass
    if DELETE not in policy:
        assert {key: slow.state.get(key) for key in latest} == latest
    workload.broker.store.close()


# -------------------------------------------------------------------------------- one by one


def put(broker, *pairs):
    """Append each key with its value, in a flush of its own."""
    for key, value in pairs:
        broker.append(batch(key=key, value=value, timestamp=broker.now_ms))


def deleted_here(index, *, map_bytes=1 << 20):
    """A broker whose store has a key and its tombstone, and that has neither any more."""
    broker = Broker(index, COMPACTED, 0)
    put(broker, (b"a", b"1"), *[(b"b", b"%d" % at) for at in range(3)], (b"c", b"1"), (b"d", b"1"))
    put(broker, (b"a", None))
    for number in range(20):
        put(broker, (b"e%d" % number, b"1" * 40), (b"d", b"2" * 40))
    assert broker.compact(map_bytes=map_bytes)
    return broker


def forget_tombstones(broker):
    for _ in range(2):
        broker.now_ms += 2000
        assert broker.compact()


def found_by_the_next(index, life=1):
    log = Broker(index, COMPACTED, life).log
    assert verify(log) == []
    return known(committed(log, 0).state)


def comes_back_after(index, steps):
    """Return whether a deleted key returns if the leader ends after ``steps`` steps."""
    broker = deleted_here(index)
    forget_tombstones(broker)
    assert b"a" not in committed(broker.log, 0).state
    broker.walk(steps, portion_bytes=SMALL_BYTES)
    return b"a" in found_by_the_next(index)


def test_deleted_keys_stay_deleted_wherever_a_walk_ends():
    sizes = set()
    for steps in range(40):
        index = MemoryIndex()
        assert not comes_back_after(index, steps)
        sizes.add(stored_bytes(index))
    assert len(sizes) > 3, "it ended at no portion"


class ReplacesTheLastFirst(MemoryIndex):
    """Behaves as if the first portion were still to come."""

    def replace_extents(self, session, partition_id, epoch, extents, **how):
        if extents[0].base_offset == 0:
            return True
        return super().replace_extents(session, partition_id, epoch, extents, **how)


def test_portions_in_another_order_would_have_it_come_back():
    assert any(comes_back_after(ReplacesTheLastFirst(), steps) for steps in range(40))


class Heedless(StoredCompaction):
    """A compaction that ignores swaps of segments."""

    @property
    def _swaps(self):
        return self._log.cleaning.swaps

    @_swaps.setter
    def _swaps(self, _swaps):
        """Ignore the value."""


@pytest.mark.parametrize("kind", [StoredCompaction, Heedless])
def test_a_walk_ends_when_segments_are_swapped(kind):
    index = MemoryIndex()
    broker = deleted_here(index, map_bytes=3 * ENTRY_BYTES)
    assert b"1" in committed(broker.log, 0).values[:1], "its map was too small"
    replaced = stored_bytes(index)
    swaps = []

    def swap_once():
        if stored_bytes(index) < replaced and not swaps:
            forget_tombstones(broker)
            swaps.append(broker.log.cleaning.swaps)

    got_through = broker.walk(None, swap_once, kind=kind, portion_bytes=SMALL_BYTES)
    assert swaps, "nothing was replaced"
    assert got_through == (kind is Heedless)
    assert (b"a" in found_by_the_next(index)) == (kind is Heedless)


def test_a_walk_ends_when_what_it_has_read_becomes_garbage():
    """Retention, and the collector of another broker, do not know of the walk."""
    ended = []
    for step in range(12):
        index = MemoryIndex()
        broker = deleted_here(index)
        steps = iter(range(100))

        def collect_at(step=step, steps=steps, broker=broker, index=index):
            if next(steps) == step:
                broker.delete_records(broker.log.next_offset // 2)
                index.collect_garbage(MANY)

        ended.append(not broker.walk(None, collect_at, portion_bytes=SMALL_BYTES))
        assert verify(Broker(index, COMPACTED, 1).log) == []
    assert any(ended)


def test_a_walk_over_what_is_the_same_replaces_nothing(monkeypatch):
    index = MemoryIndex()
    broker = deleted_here(index)
    assert broker.walk()
    monkeypatch.setattr(index, "replace_extents", pytest.fail)
    assert broker.walk()


def test_many_small_extents_become_few():
    index = MemoryIndex()
    broker = deleted_here(index)
    before = len(index.extents(1, 0, most=MANY))
    assert broker.walk(portion_bytes=1 << 20)
    assert len(index.extents(1, 0, most=MANY)) < before / 3
    assert found_by_the_next(index) == known(committed(broker.log, 0).state)


def test_extents_that_take_the_place_of_others_have_one_epoch_each():
    index = MemoryIndex()
    broker = deleted_here(index)
    for life in (1, 2):
        broker = Broker(index, COMPACTED, life)
        put(broker, *[(b"e", b"%d" % at * 40) for at in range(40)])
    assert broker.compact()
    assert broker.walk(portion_bytes=1 << 20)
    extents = index.extents(1, 0, most=MANY)
    assert [each.leader_epoch for each in extents] == sorted(each.leader_epoch for each in extents)
    for extent in extents:
        for _, header in iterate_batches(memoryview(extent.data)):
            assert header.partition_leader_epoch == extent.leader_epoch
            assert extent.base_offset <= header.base_offset < header.next_offset
            assert header.next_offset <= extent.next_offset
    assert Broker(index, COMPACTED, 3).log.leader_epochs == broker.log.leader_epochs


def test_former_leader_replaces_no_extents():
    index = MemoryIndex()
    broker = deleted_here(index)
    snapshot_offset = broker.keep_snapshot()
    register(index, 1, 1)
    before = index.extents(1, 0, most=MANY)
    walk = StoredCompaction(broker.log, broker.way, broker.session, Now)
    assert run(walk.run(snapshot_offset)) is False
    assert index.extents(1, 0, most=MANY) == before


def test_nothing_behind_the_snapshot_is_replaced():
    index = MemoryIndex()
    broker = deleted_here(index)
    snapshot_offset = broker.keep_snapshot()
    put(broker, *[(b"d", b"%d" % at * 40) for at in range(40)])
    assert broker.compact()
    walk = StoredCompaction(broker.log, broker.way, broker.session, Now)
    assert run(walk.run(snapshot_offset)) is False, "it is not through"
    assert walk.bytes_after < walk.bytes_before
    assert snapshot_of(index, 1).next_offset == snapshot_offset


def test_damage_of_what_is_read_here_does_not_come_into_the_store():
    index = MemoryIndex()
    broker = deleted_here(index)
    before = index.extents(1, 0, most=MANY)
    suspected = []
    broker.store.callbacks.on_suspected = lambda *found: suspected.append(found)
    files = broker.store.file_system
    segment = broker.log.segments[0]
    path = files.join(segment.directory.path, segment.log_name)
    last = len(files.read_file(path)) - 1
    files.open(path).pwritev([bytes([files.read_file(path)[last] ^ 1])], last)
    assert broker.walk(portion_bytes=1 << 20) is False
    ((log, base_offset, error),) = suspected
    assert (log, base_offset, str(error)) == (
        broker.log,
        segment.base_offset,
        "the checksum does not match",
    )
    assert index.extents(1, 0, most=MANY) == before
    assert verify(Broker(index, COMPACTED, 1).log) == []
