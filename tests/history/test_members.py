"""Doctored histories of groups of consumers, each flagged with its anomaly and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.history import anomalies as a
from tests.history.checker import check
from tests.history.model import (
    ASSIGNED,
    COMMIT,
    END,
    FAILED,
    HARMED,
    LOGGED,
    LOOK,
    LOST,
    MOVED,
    NOT_KNOWN,
    OK,
    OUTAGE,
    POLL,
    REVOKED,
    SEND,
    UNDISTURBED,
    UNKNOWN,
    LoggedCommit,
    OffsetCommit,
    Operation,
    PartitionEnd,
    Read,
    Write,
    load,
    save,
)

PLACE = ("t", 0)
REFUSED_AS_STRANGER = "code=UNKNOWN_MEMBER_ID,val=25"


def sent(count=6):
    writes = tuple(Write(*PLACE, f"v{offset}", offset) for offset in range(count))
    return Operation(SEND, "load", writes=writes)


def moved(name, at, reason):
    return Operation(MOVED, name, invoked_ns=at, moved=(PLACE,), reason=reason, group="g")


def read(name, at, *offsets, value="v{}"):
    reads = tuple(Read(*PLACE, offset, value.format(offset)) for offset in offsets)
    return Operation(POLL, name, invoked_ns=at, completed_ns=at, reads=reads, group="g")


def commit(name, at, offset, attempt="", outcome=OK, *, until=None, reason=""):
    return Operation(
        COMMIT,
        name,
        outcome,
        at,
        completed_ns=at if until is None else until,
        commits=(OffsetCommit("g", *PLACE, offset),),
        metadata=attempt,
        reason=reason,
    )


def look(at, offset=None):
    commits = () if offset is None else (OffsetCommit("g", *PLACE, offset),)
    found = Operation(LOOK, "observer", invoked_ns=at, completed_ns=at, commits=commits)
    return replace(found, groups=("g",))


def logged(*records, finally_at=6):
    found = tuple(LoggedCommit("g", *PLACE, offset, name) for offset, name in records)
    commits = () if finally_at is None else (OffsetCommit("g", *PLACE, finally_at),)
    return Operation(LOGGED, "log", invoked_ns=90, commits=commits, groups=("g",), logged=found)


def end(at, offset=6):
    commits = (OffsetCommit("g", *PLACE, offset),)
    ends = (PartitionEnd(*PLACE, 6, 6),)
    return Operation(END, "end", invoked_ns=at, completed_ns=at, commits=commits, ends=ends)


def time(name, kind, begin, finish):
    return Operation(kind, name, invoked_ns=begin, completed_ns=finish)


A, B = "a", "b"
# a reads and commits, and is killed with two records uncommitted; b begins at what was committed.
FIRST = [moved(A, 1, ASSIGNED), read(A, 2, 0, 1), commit(A, 3, 2, "a#1"), read(A, 4, 2, 3)]
KILLED = time(A, HARMED, 5, 5)
SECOND = [moved(B, 10, ASSIGNED), read(B, 11, 2, 3, 4, 5), commit(B, 12, 6, "b#1")]
LOOKS = [look(1), look(5, 2), look(14, 6)]
LOG = logged((2, "a#1"), (6, "b#1"))
GOOD = [sent(), *FIRST, KILLED, *SECOND, moved(B, 13, REVOKED), *LOOKS, LOG, end(80), end(95)]


def found(*history):
    return check([*history]).anomalies


def test_nothing_is_wrong_with_a_good_history():
    assert found(*GOOD) == set()


def test_a_history_of_groups_is_saved_and_read_again(tmp_path):
    path = tmp_path / "history.jsonl"
    save(GOOD, path)
    assert load(path) == GOOD


def test_a_record_that_no_member_read():
    history = [sent(), moved(A, 1, ASSIGNED), read(A, 2, 0, 1, 2), moved(B, 5, ASSIGNED)]
    assert found(*history, read(B, 6, 4, 5), end(9)) == {a.PASSED_OVER, a.LOST_WRITE}
    # Another group has read it.
    other = replace(read("x", 6, 0, 1, 2, 3, 4, 5), group="h")
    assert found(*history, read(B, 6, 4, 5), other, end(9)) == {a.PASSED_OVER}


def test_a_value_that_was_not_sent():
    history = [sent(), read(A, 1, 1, 2, 3, 4, 5), read(B, 2, 0, value="w{}"), read("c", 3, 0)]
    assert found(*history) == {a.INCONSISTENT_OFFSETS, a.UNWRITTEN_READ}


@pytest.mark.parametrize("known", [commit(A, 3, 2), look(3, 2)])
def test_a_member_begins_before_what_was_committed(known):
    again = [moved(B, 10, ASSIGNED), read(B, 11, 1, 2, 3)]
    assert found(sent(), known, *again) == {a.READ_AGAIN}
    later = replace(known, invoked_ns=12, completed_ns=12)
    assert found(sent(), *again, later) == set()


@pytest.mark.parametrize(
    ("offsets", "anomaly"),
    [
        ((0, 1, 3), a.INTERNAL_POLL_SKIP),
        ((0, 1, 1), a.INTERNAL_NONMONOTONIC_POLL),
        ((0, 1, 0), a.INTERNAL_NONMONOTONIC_POLL),
    ],
)
def test_a_member_leaves_a_record_out_or_reads_it_again(offsets, anomaly):
    rest = read(B, 9, 0, 1, 2, 3, 4, 5)
    wrong = found(sent(), moved(A, 1, ASSIGNED), read(A, 2, *offsets), rest)
    assert wrong - {a.CONSUMED_TWICE} in ({anomaly}, {anomaly, a.INCOMPATIBLE_ORDER})
    moves = [read(A, 2, *offsets[:2]), moved(A, 3, ASSIGNED), read(A, 4, 1)]
    assert found(sent(), moved(A, 1, ASSIGNED), *moves, rest) == set()


def test_a_partition_with_two_owners():
    one = [moved(A, 1, ASSIGNED), moved(A, 10, REVOKED)]
    other = [moved(B, 5, ASSIGNED), moved(B, 20, REVOKED)]
    assert found(*one, *other) == {a.OWNED_TWICE}
    assert found(*one, *other, KILLED) == set()
    assert found(moved(A, 1, ASSIGNED), moved(A, 10, LOST), *other) == set()
    assert found(*one, moved(B, 11, ASSIGNED), moved(B, 20, REVOKED)) == set()


def test_a_member_whose_commit_says_that_it_is_none_owns_nothing():
    refused = commit(A, 4, 5, "a#1", FAILED, reason=REFUSED_AS_STRANGER)
    other = [moved(B, 5, ASSIGNED), moved(B, 20, REVOKED)]
    history = [moved(A, 1, ASSIGNED), moved(A, 10, REVOKED), *other]
    assert found(*history, refused) == set()
    rebalanced = replace(refused, reason="code=REBALANCE_IN_PROGRESS")
    assert found(*history, rebalanced) == {a.OWNED_TWICE}


def test_a_rebalance_while_a_member_must_not_notice_anything():
    assert found(moved(A, 5, REVOKED), time(A, UNDISTURBED, 1, 9)) == {a.DISTURBED}
    assert found(moved(A, 5, REVOKED), time(A, UNDISTURBED, 6, 9)) == set()
    assert found(moved(A, 5, REVOKED), time(B, UNDISTURBED, 1, 9)) == set()


@pytest.mark.parametrize("later", [1, None])
def test_a_committed_offset_goes_back_or_disappears(later):
    assert found(look(1, 2), look(2, later)) == {a.OFFSET_WENT_BACK}
    assert found(look(1, 2), replace(look(2), groups=("h",))) == set()
    assert found(replace(look(1, 2), completed_ns=3), look(2, later)) == set(), "both at once"


def test_an_acknowledged_commit_is_not_returned():
    assert found(commit(A, 5, 2), look(6, 1)) == {a.COMMIT_UNSEEN}
    assert found(commit(A, 5, 2), look(4, 1)) == set()
    assert found(commit(A, 5, 2, outcome=UNKNOWN, until=NOT_KNOWN), look(6, 1)) == set()


def test_the_log_of_offsets_goes_back_or_differs():
    assert found(logged((6, ""), (2, ""), finally_at=2)) == {a.LOG_WENT_BACK}
    assert found(logged((2, ""), (6, ""), finally_at=5)) == {a.LOG_DIFFERS}
    assert found(logged((2, ""), (NOT_KNOWN, ""), finally_at=None)) == set()


def test_an_acknowledged_commit_is_not_in_the_log():
    commits = [commit(A, 3, 2, "a#1"), commit(B, 12, 6, "b#1")]
    assert found(*commits, logged((2, "a#1"), finally_at=2)) == {a.COMMIT_NOT_LOGGED}


def test_a_refused_commit_is_in_the_log():
    history = [commit(B, 5, 6, "b#1", FAILED, until=7), logged((6, "b#1"))]
    assert found(*history) == {a.REFUSED_COMMIT_LOGGED}
    assert found(*history, time("broker", OUTAGE, 1, 4)) == {a.REFUSED_COMMIT_LOGGED}
    # The first request may have reached a broker that was killed before its response.
    assert found(*history, time("broker", OUTAGE, 6, 9)) == set()


def test_a_restart_changes_an_offset():
    assert found(end(1), end(2, 5)) == {a.OFFSETS_CHANGED}
    assert found(end(1), commit(A, 3, 7), end(4, 7)) == set()
