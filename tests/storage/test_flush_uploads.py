"""Bodies of large flushes are uploaded ahead, several at once; commits follow in order."""

from collections import deque
from dataclasses import replace

import pytest

from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.errors import IndexClosed
from barnabas.storage.journal.committer import CommitterThreads
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.objects.blob_store import BlobStoreError, BlobThrottled, UploadKey
from barnabas.storage.replicated.blob_garbage import KEYS_AT_ONCE, delete_dead_objects
from barnabas.storage.replicated.flush_committer import FlushCommitter
from barnabas.storage.replicated.flush_uploads import Uploads, UploadSettings, UploadThreads
from barnabas.storage.replicated.log_index import Lane
from barnabas.storage.runtime.threads import new_event, new_lock, start_thread
from tests.storage.flushes import Stranger, assign, register
from tests.storage.journals import Waited, group_of
from tests.storage.scripted_blobs import FailingBlobs, Ledger
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

LARGE = 2_000
SETTINGS = UploadSettings(bytes_min=1_000, bytes_max=LARGE, most=4)


class Uploaded:
    """A committer whose uploads a test carries out."""

    def __init__(self, uploads=None, settings=SETTINGS):
        self.now_s = 0.0
        self.index = Ledger()
        self.attempts = []
        self.way = MemoryLogIndex(self.index, self.attempts.append)
        self.heard = Waited()
        self.session = register(self.index, 1)
        self.uploads = uploads or Uploads(settings, lambda: self.now_s)
        self.committer = FlushCommitter(
            self.way, self.heard, flush_bytes_max=LARGE, uploads=self.uploads
        )
        self.committer.begin_session(self.session)
        for partition_id in (1, 2):
            assign(self.index, partition_id, self.session)

    def commit(self, *groups):
        self.committer.commit(groups)

    def put(self, attempt):
        """Make the object of an attempt durable, and say so."""
        self.index.uploads.put(attempt.key, b"".join(attempt.upload.body))
        self.uploads.confirm(attempt)

    def started(self):
        """All attempts that are due."""
        found = []
        while (attempt := self.uploads.next_attempt()) is not None:
            found.append(attempt)
        return found

    @property
    def end(self):
        return self.index.rows[1].log_end_offset

    @property
    def numbers(self):
        return [flush.number for flush in self.attempts]


def large(base_offset, run=0):
    group = group_of(LARGE, base_offset=base_offset, epoch=0)
    group.run = run
    return group


def small(base_offset):
    return group_of(10, base_offset=base_offset, epoch=0)


def test_commits_follow_the_order_of_placement_f8():
    uploaded = Uploaded()
    uploaded.commit(large(0), large(1), large(2))
    first, second, third = uploaded.started()
    uploaded.put(third)
    uploaded.put(second)
    uploaded.commit()
    assert uploaded.attempts == [], "the first one is not durable"
    uploaded.put(first)
    uploaded.commit()
    assert uploaded.numbers == [0, 1, 2]
    assert [each.key for each in uploaded.attempts] == [first.key, second.key, third.key]
    assert uploaded.end == 3
    assert uploaded.heard.events == [("durable", 1)] * 3


def test_flush_names_no_object_before_it_is_durable_f6():
    uploaded = Uploaded()
    uploaded.commit(large(0))
    (attempt,) = uploaded.started()
    uploaded.commit()
    assert uploaded.attempts == []
    uploaded.put(attempt)
    uploaded.commit()
    assert [(each.key, each.payload) for each in uploaded.attempts] == [(attempt.key, None)]


def test_small_flush_with_nothing_before_it_leaves_at_once():
    uploaded = Uploaded()
    uploaded.commit(small(0))
    assert [(each.key, bool(each.payload)) for each in uploaded.attempts] == [(None, True)]
    assert uploaded.started() == []


def test_small_groups_behind_an_upload_are_one_flush():
    uploaded = Uploaded()
    uploaded.commit(large(0), small(1))
    uploaded.commit(CommitGroup(), small(2))
    assert uploaded.attempts == []
    uploaded.put(*uploaded.started())
    uploaded.commit()
    assert uploaded.numbers == [0, 1]
    assert uploaded.heard.events == [("durable", 1), ("durable", 3)]


def test_placed_flushes_have_a_limit():
    uploaded = Uploaded()
    uploaded.commit(*map(large, range(9)))
    attempts = uploaded.started()
    assert len(attempts) == SETTINGS.most
    uploaded.put(attempts[1])
    uploaded.commit()
    assert uploaded.started() == [], "it is durable, and not committed"
    uploaded.put(attempts[0])
    uploaded.commit()
    assert uploaded.end == 2
    assert len(uploaded.started()) == 2


def test_refused_flush_keeps_its_number_and_gets_another_key_f7():
    uploaded = Uploaded()
    uploaded.commit(large(0), large(1))
    attempts = uploaded.started()
    for attempt in attempts:
        uploaded.put(attempt)
    assign(uploaded.index, 1, Stranger(uploaded.index).session)
    uploaded.commit()
    assert uploaded.heard.events == [("refused", 1, [1])]
    other = group_of(LARGE, partition_id=2, epoch=0)
    other.run = 1
    uploaded.commit(other)
    (again,) = uploaded.started()
    uploaded.put(again)
    uploaded.commit()
    assert uploaded.numbers == [0, 0]
    assert again.key not in {attempt.key for attempt in attempts}
    assert [UploadKey.parse(each.key).number for each in uploaded.attempts] == [0, 0]
    assert uploaded.index.rows[2].log_end_offset == 1
    assert {*uploaded.index.uploads} == {each.key for each in attempts}, "they are garbage"


def test_uploads_of_a_refused_run_are_not_repeated():
    uploaded = Uploaded()
    uploaded.commit(large(0), large(1))
    first, second = uploaded.started()
    uploaded.put(first)
    assign(uploaded.index, 1, Stranger(uploaded.index).session)
    uploaded.commit()
    uploaded.uploads.fail(second, BlobStoreError())
    uploaded.now_s += 60
    assert uploaded.started() == []


def test_lost_session_drops_uploads():
    uploaded = Uploaded()
    uploaded.commit(large(0), large(1))
    first, _ = uploaded.started()
    uploaded.put(first)
    uploaded.index.fence(uploaded.session)
    uploaded.commit()
    assert uploaded.heard.events == [("lost",)]
    assert uploaded.committer.session is None


def test_session_that_is_known_to_have_ended_waits_for_no_upload():
    uploaded = Uploaded()
    uploaded.commit(large(0))
    uploaded.committer.end_session(uploaded.session)
    uploaded.commit(CommitGroup())
    assert uploaded.heard.events == [("lost",)]
    assert uploaded.attempts == []
    assert uploaded.uploads.open_count == 0
    assert uploaded.started() == [], "the upload is not wanted any more"


def test_lost_result_of_a_commit_is_requested_with_the_same_key_f7():
    uploaded = Uploaded()
    uploaded.commit(large(0))
    uploaded.put(*uploaded.started())
    uploaded.way.lose_answers(2)
    uploaded.commit()
    assert len(uploaded.attempts) == 3
    assert len({each.key for each in uploaded.attempts}) == 1
    assert uploaded.end == 1


# --------------------------------------------------------------------------------------- attempts


def test_failed_attempt_is_repeated_with_another_key_after_a_pause_f7():
    uploaded = Uploaded()
    uploaded.uploads.hedges = False
    uploaded.commit(large(0))
    keys, pauses_s = [], []
    for _ in range(9):
        (attempt,) = uploaded.started()
        keys.append(attempt.key)
        uploaded.uploads.fail(attempt, BlobStoreError())
        begun_s = uploaded.now_s
        while attempt.upload.due_s > uploaded.now_s:
            assert uploaded.started() == []
            uploaded.now_s += 0.05
        pauses_s.append(uploaded.now_s - begun_s)
    assert len({*keys}) == len(keys)
    assert 0.1 <= pauses_s[0] <= 0.25
    assert 5 <= pauses_s[-1] <= 10.1


def test_late_attempt_gets_one_hedge_and_the_first_confirmed_key_holds_f7():
    uploaded = Uploaded()
    uploaded.commit(large(0))
    (late,) = uploaded.started()
    uploaded.now_s += 0.9
    assert uploaded.started() == []
    uploaded.now_s += 0.2
    (hedge,) = uploaded.started()
    uploaded.now_s += 60
    assert uploaded.started() == [], "not a third one"
    uploaded.put(hedge)
    uploaded.put(late)
    uploaded.commit()
    assert [each.key for each in uploaded.attempts] == [hedge.key]
    assert {*uploaded.index.uploads} == {late.key}
    assert uploaded.index.dead_keys([late.key, hedge.key]) == [late.key]


def test_uploads_and_hedges_are_counted():
    uploaded = Uploaded()
    uploaded.commit(large(0), large(1))
    first, failed = uploaded.started()
    assert uploaded.uploads.open_count == 2
    uploaded.uploads.fail(failed, BlobStoreError())
    uploaded.now_s += 1.5
    hedge, again = sorted(uploaded.started(), key=lambda each: each.upload.number)
    assert (uploaded.uploads.open_count, uploaded.uploads.hedged) == (2, 1)
    for attempt in (first, hedge, again):
        uploaded.put(attempt)
    assert (uploaded.uploads.open_count, uploaded.uploads.hedged) == (0, 1)


def test_hedge_waits_for_three_times_the_usual_duration():
    uploaded = Uploaded()
    for number in range(50):
        uploaded.commit(large(number))
        (attempt,) = uploaded.started()
        uploaded.now_s += 2.0
        for hedge in uploaded.started():
            assert number == 0, hedge
        uploaded.put(attempt)
        uploaded.commit()
    uploaded.commit(large(50))
    uploaded.started()
    uploaded.now_s += 5.9
    assert uploaded.started() == []
    uploaded.now_s += 0.2
    assert len(uploaded.started()) == 1


def test_throttling_halves_uploads_at_once_and_they_recover(caplog):
    settings = replace(SETTINGS, most=8)
    uploaded = Uploaded(settings=settings)
    uploaded.commit(*map(large, range(8)))
    burst = uploaded.started()
    assert len(burst) == 8
    for attempt in burst:
        uploaded.uploads.fail(attempt, BlobThrottled("503"))
    assert uploaded.uploads.at_once == 4, "one burst counts once"
    uploaded.now_s += 0.3
    second = uploaded.started()
    assert len(second) == 4
    uploaded.now_s += 5
    assert uploaded.started() == [], "no hedge while the store throttles"
    uploaded.uploads.fail(second[0], BlobThrottled("503"))
    assert uploaded.uploads.at_once == 2
    for attempt in second[1:]:
        uploaded.put(attempt)
    uploaded.now_s += 2.0
    assert len(uploaded.started()) == 2
    (line,) = caplog.messages
    assert line == "object store throttles, fewer uploads at once uploads=4 error=503"
    for seconds, at_once in ((7.9, 2), (0.2, 3), (10, 4), (40, 8), (100, 8)):
        uploaded.now_s += seconds
        assert uploaded.uploads.at_once == at_once


def test_throttled_store_gets_fewer_and_larger_flushes():
    uploaded = Uploaded(settings=replace(SETTINGS, bytes_max=2 * LARGE))
    uploaded.commit(large(0))
    (attempt,) = uploaded.started()
    for _ in range(2):
        uploaded.uploads.fail(attempt, BlobThrottled("503"))
        uploaded.now_s += 1
        (attempt,) = uploaded.started()
    assert uploaded.uploads.at_once == 1
    uploaded.commit(*(group_of(900, base_offset=each, epoch=0) for each in range(1, 8)))
    assert uploaded.uploads.open_count == 1
    for end in (1, 5, 8):
        uploaded.put(attempt)
        uploaded.commit()
        assert uploaded.end == end
        attempt = next(iter(uploaded.started()), None)
    assert attempt is None
    assert len(uploaded.attempts) == 3


def test_store_that_repeats_its_calls_gets_no_hedge():
    uploaded = Uploaded()
    uploaded.uploads.hedges = False
    uploaded.commit(large(0))
    uploaded.started()
    uploaded.now_s += 3600
    assert uploaded.started() == []


def test_object_without_a_name_is_kept_until_its_flush_f10():
    uploaded = Uploaded()
    blobs = MemoryBlobStore(uploaded.index.uploads)
    uploaded.commit(large(0))
    (attempt,) = uploaded.started()
    uploaded.put(attempt)
    assert delete_dead_objects(uploaded.index, blobs) == 0
    uploaded.commit()
    assert uploaded.end == 1


def test_dead_objects_of_all_pages_are_deleted():
    uploaded = Uploaded()
    blobs = MemoryBlobStore(uploaded.index.uploads)
    ended = register(uploaded.index, 2)
    for number in range(10):
        for session in (ended, uploaded.session):
            blobs.put(UploadKey(session, 0, number, 1).text, [b"body"])
    uploaded.index.fence(ended)
    assert delete_dead_objects(uploaded.index, blobs, 3) == 10
    assert {UploadKey.parse(each).session for each in uploaded.index.uploads} == {uploaded.session}


@pytest.mark.parametrize(
    "key", ["", "wal/1/0-0-1", "seg/1/0-0000000000000000-1", "wal/x/0-0000000000000000-1"]
)
def test_other_keys_are_no_uploads(key):
    assert UploadKey.parse(key) is None


def test_key_of_an_upload_is_parsed():
    parts = UploadKey(7, Lane.INLINE, 300, 31)
    assert parts.text == "wal/7/0-000000000000012c-1f"
    assert UploadKey.parse(parts.text) == parts


# ---------------------------------------------------------------------------------------- threads


class Threaded(Uploaded):
    """A committer with all of its threads; ``on_put`` is called before each upload."""

    def __init__(self, on_put=lambda _key: None, settings=SETTINGS):
        self.failures = []
        uploads = UploadThreads(
            lambda: FailingBlobs(self.index, on_put), self.failures.append, settings
        )
        super().__init__(uploads)
        self.threads = CommitterThreads(self.committer, self.heard)

    def submit(self, *groups):
        for group in groups:
            self.threads.submit(group)


def test_uploads_run_at_once():
    barrier, lock, puts = new_event(), new_lock(), []

    def on_put(key):
        with lock:
            puts.append(key)
            if len(puts) == SETTINGS.most:
                barrier.set()
        assert barrier.wait(60)

    threaded = Threaded(on_put)
    threaded.submit(*map(large, range(10)))
    threaded.threads.stop()
    assert threaded.end == 10
    assert threaded.failures == []
    assert threaded.numbers == sorted(threaded.numbers)
    assert [*threaded.index.uploads] == []


def test_failures_of_the_store_are_survived():
    lock, puts = new_lock(), []

    def on_put(key):
        with lock:
            puts.append(key)
            if len(puts) % 2:
                raise BlobStoreError(key)

    threaded = Threaded(on_put)
    threaded.submit(*map(large, range(4)), small(4))
    threaded.threads.stop()
    assert threaded.end == 5
    assert threaded.failures == []


def test_stop_abandons_uploads_of_an_unavailable_store():
    entered, released = new_event(), new_event()

    def on_put(_key):
        entered.set()
        released.wait(60)
        raise IndexClosed

    threaded = Threaded(on_put)
    threaded.committer.patience_seconds = 0
    threaded.submit(large(0))
    assert entered.wait(60)
    threaded.threads.stop()
    released.set()
    assert threaded.heard.events == []
    assert threaded.failures == []


def test_error_that_is_not_of_the_store_is_a_failure():
    error = OSError("no file")

    def on_put(_key):
        raise error

    threaded = Threaded(on_put)
    threaded.committer.patience_seconds = 0
    threaded.submit(large(0))
    wait_until(lambda: threaded.failures == [error])
    threaded.threads.stop()
    assert threaded.heard.events == []


def test_uploads_in_memory_wait_for_the_link():
    index = Ledger()
    way = MemoryBlobStore(index.uploads)
    way.cut()
    putting = start_thread("putting", lambda: way.put("wal/1/0-0000000000000000-1", [b"ab", b"c"]))
    assert [*index.uploads] == []
    way.mend()
    putting.join()
    assert way.get_range("wal/1/0-0000000000000000-1", 1, 9) == b"bc"


def test_take_gives_a_flush_the_number_behind_all_placed_ones():
    uploaded = Uploaded()
    uploaded.commit(large(0), large(1))
    pending = uploaded.committer.take(deque([small(2)]))
    assert pending.flush.number == 2


@pytest.mark.parametrize(("is_object_store", "most"), [(True, KEYS_AT_ONCE), (False, 64)])
def test_listings_are_as_long_as_the_store_allows(is_object_store, most):
    uploaded = Uploaded()
    blobs = MemoryBlobStore(uploaded.index.uploads)
    blobs.is_object_store = is_object_store
    listed = []
    blobs.list = lambda prefix, _after, most: listed.append((prefix, most)) or []
    assert delete_dead_objects(uploaded.index, blobs) == 0
    assert listed == [("seg/", most), ("wal/", most)]
