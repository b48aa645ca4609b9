"""Uploads, commits and deletes of objects in every order, over a store that fails in every way.

Hypothesis decides what happens next. The ledger fails on what breaks F6 to F10. The log has each
acknowledged batch once, in the order of placement.
"""

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.protocol.records import iterate_batches
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.replicated.blob_garbage import delete_dead_objects
from barnabas.storage.replicated.flush_committer import FlushCommitter
from barnabas.storage.replicated.flush_uploads import Uploads, UploadSettings
from tests.storage.flushes import Stranger, assign, register
from tests.storage.journals import group_of
from tests.storage.scripted_blobs import Ledger

SIZES = st.sampled_from([10, 600, 1_500])
PARTITIONS = (1, 2)
NUMBERS = st.integers(0, 99)


class Uploading(RuleBasedStateMachine):
    """One broker's committer, its store of objects, other leaders, and a janitor that is late."""

    def __init__(self):
        super().__init__()
        self.now_s = 0.0
        self.index = Ledger()
        self.blobs = MemoryBlobStore(self.index.uploads)
        self.way = MemoryLogIndex(self.index)
        self.uploads = Uploads(UploadSettings(bytes_min=500, most=3), lambda: self.now_s)
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

    @rule(partition_id=st.sampled_from(PARTITIONS), size=SIZES)
    def place(self, partition_id, size):
        offset = self.ends[partition_id]
        epoch = self.epochs[partition_id]
        group = group_of(size, partition_id=partition_id, base_offset=offset, epoch=epoch)
        self.ends[partition_id] += 1
        self.submit(group, partition_id, offset)

    @rule()
    def place_nothing(self):
        self.submit(CommitGroup(), None, 0)

    def submit(self, group, partition_id, offset):
        group.run = self.run_number
        self.placed.append((partition_id, offset))
        self.committer.commit([group])

    @rule()
    def go_on(self):
        self.committer.commit([])

    @rule(seconds=st.sampled_from([0.2, 2.0, 20.0]))
    def wait(self, seconds):
        self.now_s += seconds

    @rule()
    def start_attempts(self):
        while (attempt := self.uploads.next_attempt()) is not None:
            self.attempts.append(attempt)

    @precondition(lambda self: self.attempts)
    @rule(number=NUMBERS, commits=st.booleans())
    def confirm(self, number, commits):
        attempt = self.take(self.attempts, number)
        self.index.uploads.put(attempt.key, body_of(attempt))
        self.uploads.confirm(attempt)
        if commits:
            self.committer.commit([])

    @precondition(lambda self: self.attempts)
    @rule(number=NUMBERS, takes_effect=st.sampled_from(["never", "now", "later"]))
    def fail(self, number, takes_effect):
        attempt = self.take(self.attempts, number)
        if takes_effect == "now":
            self.index.uploads.put(attempt.key, body_of(attempt))
        elif takes_effect == "later":
            self.ghosts.append((attempt.key, body_of(attempt)))
        self.uploads.fail(attempt)

    @precondition(lambda self: self.ghosts)
    @rule(number=NUMBERS)
    def ghost_arrives(self, number):
        self.index.uploads.put(*self.take(self.ghosts, number))

    @rule(results=st.integers(1, 3))
    def lose_results_of_commits(self, results):
        self.way.lose_answers(results)

    @rule(partition_id=st.sampled_from(PARTITIONS))
    def another_broker_leads(self, partition_id):
        """Move a partition to another broker and back; nothing is written there."""
        assign(self.index, partition_id, Stranger(self.index).session)
        if assign(self.index, partition_id, self.session) is not None and not self.placed:
            self.load()

    @rule()
    def session_ends(self):
        self.index.fence(self.session)

    @rule()
    def session_is_known_to_have_ended(self):
        self.index.fence(self.session)
        self.committer.end_session(self.session)

    @rule(most=st.integers(1, 5))
    def janitor_looks_at_all(self, most):
        delete_dead_objects(self.index, self.blobs, most)

    @rule()
    def janitor_falls_asleep(self):
        self.dead += self.index.dead_keys([*self.index.uploads])

    @rule()
    def janitor_wakes(self):
        self.blobs.delete(self.dead)
        self.dead.clear()

    @staticmethod
    def take(found, number):
        return found.pop(number % len(found))

    # -- what holds --------------------------------------------------------------------------------

    @invariant()
    def log_has_what_was_acknowledged_once_in_order(self):
        for partition_id in PARTITIONS:
            row = self.index.rows[partition_id]
            offsets = [
                header.base_offset
                for extent in row.extents
                for _, header in iterate_batches(memoryview(extent.data))
            ]
            assert offsets == [*range(row.log_end_offset)]
            assert self.durable_offsets[partition_id] == offsets

    def teardown(self):
        """A store that is well again has all, and garbage goes."""
        self.way.lose_answers(0)
        for _ in range(40):
            self.now_s += 20
            self.start_attempts()
            while self.attempts:
                self.confirm(0, commits=True)
            self.committer.commit([])
        assert not self.placed, "all that was placed is durable, or was refused"
        while self.ghosts:
            self.ghost_arrives(0)
        self.index.fence(self.session)
        delete_dead_objects(self.index, self.blobs)
        assert [*self.index.uploads] == []


def body_of(attempt):
    return b"".join(attempt.upload.body)


test_uploads_keep_their_rules_under_all_failures_of_the_store = Uploading.TestCase
test_uploads_keep_their_rules_under_all_failures_of_the_store.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None
)
