"""Groups become flushes of a log index: what goes into each, and the end when no answer comes."""

from random import Random

import pytest

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.journal.committer import CommitterThreads
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.replicated.flush_committer import FlushCommitter
from barnabas.storage.replicated.log_index import IndexMisused
from barnabas.storage.runtime.threads import start_thread
from tests.seeds import SEED
from tests.storage.flushes import Stranger, assign, durable_batches, register
from tests.storage.journals import Waited, group_of
from tests.storage.stores import batch
from tests.storage.test_refusals import Member


class Flushed:
    """A committer with a session that leads some partitions, and all flushes that it tries."""

    def __init__(self, *partition_ids, **more):
        self.index = MemoryIndex()
        self.attempts = []
        self.way = MemoryLogIndex(self.index, self.attempts.append)
        self.heard = Waited()
        self.session = register(self.index, 1)
        self.committer = FlushCommitter(self.way, self.heard, **more)
        self.committer.begin_session(self.session)
        for partition_id in partition_ids:
            assign(self.index, partition_id, self.session)

    def group(self, *sizes, partition_id=1, base_offset=0):
        return group_of(*sizes, partition_id=partition_id, base_offset=base_offset, epoch=0)


def test_flush_has_one_item_for_each_partition():
    """Sizes and order of the batches make no difference."""
    random = Random(SEED)
    member = Member(1, 2, 3)
    placed = {1: [], 2: [], 3: []}
    for _ in range(120):
        partition_id = random.choice((1, 2, 3))
        value = random.randbytes(random.choice((10, 10, 10, 5_000, 70_000)))
        sent = batch(value=value)
        log = member.store.get(partition_id)
        offset = log.append(sent, stable=True).base_offset
        assert offset == len(placed[partition_id])
        placed[partition_id].append(value)
        if random.random() < 0.1:
            member.store.journal.flush()
        if random.random() < 0.02:
            member.settle()
    member.settle()
    for partition_id, values in placed.items():
        found = durable_batches(member.index, partition_id)
        assert len(found) == len(values)
        for data, value in zip(found, values, strict=True):
            assert value in data
    flushes = len(member.index.rows[1].extents)
    assert 0 < flushes < len(placed[1]), "several batches of a partition are one extent"


def test_waiting_groups_are_merged_up_to_the_flush_limit():
    flushed = Flushed(1, flush_bytes_max=1_000)
    groups = [flushed.group(300, base_offset=number) for number in range(4)]
    groups.append(flushed.group(2_000, base_offset=4))
    groups.append(flushed.group(10, base_offset=5))
    flushed.committer.commit(groups)
    assert [len(flush.items) for flush in flushed.attempts] == [1, 1, 1, 1]
    assert [item.next_offset for flush in flushed.attempts for item in flush.items] == [2, 4, 5, 6]
    assert flushed.heard.events == [("durable", 2), ("durable", 2), ("durable", 1), ("durable", 1)]


def test_a_group_without_entries_asks_for_nothing_and_waits_for_those_before_it():
    flushed = Flushed(1)
    flushed.committer.commit([CommitGroup()])
    assert not flushed.attempts
    flushed.committer.commit([flushed.group(10), CommitGroup()])
    assert len(flushed.attempts) == 1
    assert flushed.heard.events == [("durable", 1), ("durable", 2)]


def test_nothing_of_a_run_is_flushed_once_it_was_refused():
    flushed = Flushed(1, 2, flush_bytes_max=1)
    assign(flushed.index, 1, Stranger(flushed.index).session)
    groups = [flushed.group(10), flushed.group(10, partition_id=2), CommitGroup()]
    flushed.committer.commit(groups)
    flushed.committer.commit([CommitGroup()])
    following = flushed.group(10, partition_id=2)
    following.run = 1
    flushed.committer.commit([CommitGroup(), following])
    assert flushed.heard.events == [("refused", 1, [1]), ("durable", 1)]
    assert [flush.number for flush in flushed.attempts] == [0, 0], "a number is not used up by it"
    assert flushed.index.rows[2].log_end_offset == 1


def test_a_session_that_was_found_to_have_ended_is_lost_without_a_flush():
    flushed = Flushed(1)
    flushed.committer.end_session(flushed.session)
    flushed.committer.commit([CommitGroup()])
    assert flushed.heard.events == [("lost",)]
    again = register(flushed.index, 1, life=1)
    flushed.committer.begin_session(again)
    assign(flushed.index, 1, again)
    flushed.committer.end_session(flushed.session)
    group = group_of(10, epoch=1)
    group.run = 1
    flushed.committer.commit([group])
    assert flushed.heard.events == [("lost",), ("durable", 1)], "the former one had ended"


def test_an_answer_that_is_lost_is_asked_for_again():
    flushed = Flushed(1)
    flushed.way.lose_answers(3)
    flushed.committer.commit([flushed.group(10, 10)])
    assert len(flushed.attempts) == 4
    assert len({id(flush) for flush in flushed.attempts}) == 1
    assert len(durable_batches(flushed.index, 1)) == 2


def test_a_log_of_two_epochs_is_refused_before_anybody_is_asked():
    """The log was gained again while an append of the older epoch waited, which is now invalid."""
    flushed = Flushed(1, 2)
    assign(flushed.index, 1, flushed.session)
    older = flushed.group(10)
    newer = group_of(10, epoch=1)
    flushed.committer.commit([flushed.group(10, partition_id=2), older, newer])
    assert flushed.heard.events == [("refused", 3, [1])]
    assert not flushed.attempts
    newer.run = 1
    flushed.committer.commit([newer])
    assert flushed.heard.events[1:] == [("durable", 1)]


# ---------------------------------------------------------------------------------------- threads


def running(flushed):
    return CommitterThreads(flushed.committer, flushed.heard)


def test_the_loop_never_commits():
    flushed = Flushed(1)
    threads = running(flushed)
    assert not threads.commit_inline(flushed.group(10), pytest.fail)
    threads.stop()
    assert flushed.heard.events == []


def test_groups_submitted_during_a_flush_go_into_the_next():
    flushed = Flushed(1)
    flushed.way.cut()
    threads = running(flushed)
    for number in range(20):
        threads.submit(flushed.group(10, base_offset=number))
    flushed.way.mend()
    threads.stop()
    assert flushed.index.rows[1].log_end_offset == 20
    assert len(flushed.attempts) <= 2
    assert sum(count for what, count in flushed.heard.events if what == "durable") == 20
    assert sum(count for what, count in flushed.heard.events if what == "written") == 20


def test_the_end_waits_for_an_index_that_comes_back():
    flushed = Flushed(1, patience_seconds=3600)
    flushed.way.cut()
    threads = running(flushed)
    threads.submit(flushed.group(10))
    stopping = start_thread("stopping", threads.stop)
    flushed.way.mend()
    flushed.heard.wait_for("written", 1)
    stopping.join()


def test_stop_abandons_groups_if_the_index_is_unreachable():
    flushed = Flushed(1, patience_seconds=0)
    threads = running(flushed)
    threads.submit(flushed.group(10))
    flushed.heard.wait_for("durable", 1)
    flushed.way.cut()
    for number in range(1, 4):
        threads.submit(flushed.group(10, base_offset=number))
    threads.stop()
    assert flushed.heard.events == [("durable", 1), ("written", 1)]
    assert flushed.index.rows[1].log_end_offset == 1


def test_misused_index_is_a_failure():
    flushed = Flushed(1)
    failures = []
    flushed.heard.failed = failures.append
    threads = running(flushed)
    threads.submit(flushed.group(10, base_offset=7))
    threads.stop()
    assert [type(error) for error in failures] == [IndexMisused]
    assert flushed.heard.events == []


def test_group_of_a_later_run_is_a_bug():
    flushed = Flushed(1)
    group = CommitGroup(run=1)
    with pytest.raises(AssertionError, match="a run ended unnoticed"):
        flushed.committer.commit([group])
