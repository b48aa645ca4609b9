"""Uploads, commits and deletes of objects in every order, over a store that fails in every way.

Hypothesis decides what happens next. The ledger fails on what breaks F6 to F10. The log has each
acknowledged batch once, in the order of placement. The objects are in the index, or in an object
store.
"""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.protocol.records import iterate_batches
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.objects.blob_store import BlobStoreError, BlobThrottled
from barnabas.storage.replicated.blob_garbage import (
    delete_dead_objects,
    delete_dereferenced_objects,
)
from barnabas.storage.replicated.flush_committer import FlushCommitter
from barnabas.storage.replicated.flush_uploads import Uploads, UploadSettings
from barnabas.storage.replicated.log_index import LogSnapshot
from barnabas.storage.replicated.wal_object import read_footer
from tests.storage.flushes import Stranger, assign, register
from tests.storage.journals import group_of
from tests.storage.scripted_blobs import Ledger
from tests.storage.scripted_objects import LAGS_MOST, live_keys_of, open_scripted

SIZES = (10, 600, 1_500)
PARTITIONS = (1, 2)


class AtOnce:
    """Reads of objects by their caller."""

    def __init__(self, objects):
        self.objects = objects

    def bodies(self, extents, within_s=None):
        return [each if each.place is None else self._body(each) for each in extents]

    def _body(self, extent):
        key, position, length, size = extent.place
        assert len(self.objects.get_range(key, 0, 10**9)) == size.size_bytes
        footer = self.objects.get_range(key, size.footer_at, size.size_bytes - size.footer_at)
        assert any(item.position == position for item in read_footer(footer))
        return extent._replace(data=self.objects.get_range(key, position, length), place=None)


class Uploading:
    """One broker's committer, its store of objects, other leaders, and a janitor that is late."""

    def __init__(self, *, in_object_store):
        self.now_s = 0.0
        self.index = Ledger()
        self.in_object_store = in_object_store
        if in_object_store:
            self.objects, open_blobs = open_scripted(self.index, 0, failures=0)
            self.index.uploads.objects = self.objects
            self.blobs = open_blobs()
        else:
            self.objects = self.index.uploads
            self.blobs = MemoryBlobStore(self.index.uploads)
        self.way = MemoryLogIndex(self.index, objects=AtOnce(self.objects))
        window_s = 0.5 if in_object_store else 0.0
        settings = UploadSettings(500, 2_000, 3, in_object_store, window_s)
        self.uploads = Uploads(settings, lambda: self.now_s)
        self.committer = FlushCommitter(self.way, self, flush_bytes_max=2_000, uploads=self.uploads)
        self.lives = count()
        self.run_number = 0
        self.placed = []
        """Commit groups of this run that are not durable: a partition and an offset each."""
        self.durable_offsets = {each: [] for each in PARTITIONS}
        self.ends = {}
        self.attempts = []
        self.ghosts = []
        """Keys and bodies of failed attempts that may still arrive."""
        self.dead = []
        """Keys that the index has reported as dead, and that no janitor has deleted yet."""
        self.begin_session()

    # -- the listener ------------------------------------------------------------------------------

    def durable(self, groups):
        done, self.placed = self.placed[:groups], self.placed[groups:]
        for partition_id, offset in done:
            if partition_id is not None:
                self.durable_offsets[partition_id].append(offset)

    def refused(self, groups, partition_ids):
        assert {*partition_ids} <= {each for each, _ in self.placed[:groups]}
        self.forget()

    def lost(self):
        self.forget()
        self.begin_session()

    def forget(self):
        self.placed.clear()
        self.run_number += 1
        self.load()

    def begin_session(self):
        self.session = register(self.index, 1, next(self.lives))
        self.committer.begin_session(self.session)
        for partition_id in PARTITIONS:
            assign(self.index, partition_id, self.session)
        self.load()

    def load(self):
        """Continue at the durable ends of the partitions."""
        states = {each: self.index.partition(each) for each in PARTITIONS}
        self.ends = {each: state.log_end_offset for each, state in states.items()}
        self.epochs = {each: state.leader_epoch for each, state in states.items()}

    # -- what happens ------------------------------------------------------------------------------

    def place(self, number):
        partition_id = PARTITIONS[number % 2]
        offset = self.ends[partition_id]
        epoch = self.epochs[partition_id]
        size = SIZES[number % 3]
        group = group_of(size, partition_id=partition_id, base_offset=offset, epoch=epoch)
        self.ends[partition_id] += 1
        self.submit(group, partition_id, offset)

    def place_nothing(self, _number):
        self.submit(CommitGroup(), None, 0)

    def submit(self, group, partition_id, offset):
        group.run = self.run_number
        self.placed.append((partition_id, offset))
        self.committer.commit([group])

    def start_attempts(self, _number):
        while (attempt := self.uploads.next_attempt()) is not None:
            self.attempts.append(attempt)

    def wait(self, number):
        self.now_s += 0.2 * 2**number
        self.start_attempts(number)

    def confirm(self, number):
        if self.attempts:
            attempt = self.attempts.pop(number % len(self.attempts))
            self.objects.put(attempt.key, body_of(attempt))
            self.uploads.confirm(attempt)

    def commit(self, _number):
        self.committer.commit([])

    def fail(self, number):
        """Report an attempt as failed, which takes effect now, later, or never."""
        if self.attempts:
            attempt = self.attempts.pop(number % len(self.attempts))
            if number % 3 == 1:
                self.objects.put(attempt.key, body_of(attempt))
            elif number % 3:
                self.ghosts.append((attempt.key, body_of(attempt)))
            throttled = BlobThrottled if number % 5 == 0 else BlobStoreError
            self.uploads.fail(attempt, throttled())

    def ghost_arrives(self, number):
        if self.ghosts:
            self.objects.put(*self.ghosts.pop(number % len(self.ghosts)))

    def lose_results_of_commits(self, number):
        self.way.lose_answers(number % 4)

    def another_broker_leads(self, number):
        """Move a partition to another broker and back; nothing is written there."""
        partition_id = PARTITIONS[number % 2]
        assign(self.index, partition_id, Stranger(self.index).session)
        if assign(self.index, partition_id, self.session) is not None and not self.placed:
            self.load()

    def session_ends(self, number):
        self.index.fence(self.session)
        if number % 2:
            self.committer.end_session(self.session)

    def janitor_looks_at_all(self, number):
        delete_dead_objects(self.index, self.blobs, 1 + number)

    def janitor_falls_asleep(self, _number):
        self.dead += self.index.dead_keys([*self.objects])

    def janitor_wakes(self, _number):
        self.blobs.delete(self.dead)
        self.dead.clear()

    def records_are_deleted(self, number):
        """Delete the first records of a log, and what they have in the store."""
        partition_id = PARTITIONS[number % 2]
        row = self.index.rows[partition_id]
        if row.leader_session != self.session or not row.log_end_offset:
            return
        row.log_start_offset = max(row.log_start_offset, row.log_end_offset - number % 3)
        row.snapshot = LogSnapshot(row.log_end_offset, b"", b"")
        self.index.collect_garbage(1 + number)

    def dereferenced_objects_are_deleted(self, number):
        delete_dereferenced_objects(self.index, self.blobs, 0, 1 + number)

    # -- what holds --------------------------------------------------------------------------------

    def check(self):
        self.log_has_what_was_acknowledged_once_in_order()
        self.objects_of_flushes_to_come_exist()

    def log_has_what_was_acknowledged_once_in_order(self):
        for partition_id in PARTITIONS:
            row = self.index.rows[partition_id]
            offsets = [
                header.base_offset
                for extent in self.way.bodies(row.extents)
                for _, header in iterate_batches(memoryview(extent.data))
            ]
            begin = row.extents[0].base_offset if row.extents else row.log_end_offset
            assert begin <= row.needless_offset
            assert offsets == [*range(begin, row.log_end_offset)]
            assert self.durable_offsets[partition_id] == [*range(row.log_end_offset)]

    def objects_of_flushes_to_come_exist(self):
        uploads = [each.upload for each in self.committer._placed if each.upload is not None]
        keys = {each.key for each in uploads} - {None}
        assert keys - {*self.index.dead_keys([*keys])} <= {*self.objects}

    def end(self):
        """Check that a store without failures gets all, and that all garbage is deleted."""
        self.way.lose_answers(0)
        for _ in range(40):
            self.now_s += 20
            self.start_attempts(0)
            while self.attempts:
                self.confirm(0)
            self.committer.commit([])
            self.check()
        assert not self.placed, "all that was placed is durable, or was refused"
        while self.ghosts:
            self.ghost_arrives(0)
        self.index.fence(self.session)
        for _ in range(LAGS_MOST + 2):
            delete_dead_objects(self.index, self.blobs)
        delete_dereferenced_objects(self.index, self.blobs, 0)
        assert {*self.objects} == live_keys_of(self.index)


def body_of(attempt):
    return b"".join(attempt.upload.body)


EVENTS = {
    Uploading.place: 8,
    Uploading.place_nothing: 1,
    Uploading.start_attempts: 4,
    Uploading.wait: 2,
    Uploading.confirm: 6,
    Uploading.commit: 4,
    Uploading.fail: 3,
    Uploading.ghost_arrives: 1,
    Uploading.lose_results_of_commits: 1,
    Uploading.another_broker_leads: 1,
    Uploading.session_ends: 1,
    Uploading.janitor_looks_at_all: 2,
    Uploading.janitor_falls_asleep: 1,
    Uploading.janitor_wakes: 1,
    Uploading.records_are_deleted: 1,
    Uploading.dereferenced_objects_are_deleted: 1,
}
"""Weights of the events."""
WEIGHED = [event for event, weight in EVENTS.items() for _ in range(weight)]


@pytest.mark.parametrize("in_object_store", [False, True], ids=["index", "object store"])
@settings(max_examples=200, deadline=None)
@given(
    events=st.lists(
        st.tuples(st.sampled_from(WEIGHED), st.integers(0, 8)), min_size=30, max_size=80
    )
)
def test_uploads_keep_their_rules_under_all_failures_of_the_store(in_object_store, events):
    uploading = Uploading(in_object_store=in_object_store)
    for event, number in events:
        event(uploading, number)
        uploading.check()
    uploading.end()


def deleted_in_object_store():
    """Return a committer one of whose objects has no records any more."""
    uploading = Uploading(in_object_store=True)
    uploading.place(1)
    uploading.start_attempts(0)
    uploading.confirm(0)
    uploading.commit(0)
    assert [*uploading.objects]
    uploading.records_are_deleted(3)
    uploading.index.collect_garbage(10)
    assert not live_keys_of(uploading.index)
    return uploading


def test_dereferenced_object_is_not_garbage_f6():
    """A restored index may have its records: it waits for the delay."""
    uploading = deleted_in_object_store()
    for _ in range(LAGS_MOST + 2):
        delete_dead_objects(uploading.index, uploading.blobs)
    assert [*uploading.objects]
    assert delete_dereferenced_objects(uploading.index, uploading.blobs, 60_000) == 0
    assert delete_dereferenced_objects(uploading.index, uploading.blobs, 0) == 1
    assert not [*uploading.objects]


def test_dereferenced_keys_stay_while_no_object_store_deletes_them_f9():
    uploading = deleted_in_object_store()
    index, in_rows = uploading.index, MemoryBlobStore(uploading.index.uploads)
    assert delete_dereferenced_objects(index, in_rows, 0) == 0
    assert [*index.dereferenced_keys(9, 0)] == [*uploading.objects]
