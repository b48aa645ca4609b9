"""Every rule of the checker finds the fault that it is there for, and nothing in a good history."""

from __future__ import annotations

import json

import pytest

from tests.groups import checker
from tests.groups.checker import Mark, Outage
from tests.groups.events import (
    ASSIGNED,
    COMMITTED,
    COMMITTING,
    LOST,
    READ,
    REFUSED,
    REVOKED,
    Event,
    Journal,
    Tail,
    read_console,
    read_journal,
    read_verifiable,
)
from tests.groups.observer import Commit, Seen, last_by_partition

PLACE = ("t", 0)
GROUP_PLACE = ("g", "t", 0)
ACKED = {("t", 0, offset): f"v{offset}" for offset in range(6)}


def assigned(at):
    return Event(at, ASSIGNED, partitions=(PLACE,))


def revoked(at):
    return Event(at, REVOKED, partitions=(PLACE,))


def lost(at):
    return Event(at, LOST, partitions=(PLACE,))


def read(at, *offsets, value="v{}"):
    return Event(at, READ, records=tuple(("t", 0, o, value.format(o)) for o in offsets))


def commit(at, offset, name="c", kind=COMMITTED):
    return Event(at, kind, offsets=(("t", 0, offset),), commit=name)


# a reads and commits, is killed with two records uncommitted; b goes on from what was committed.
GOOD = {
    "a": [assigned(1), read(2, 0, 1), commit(3, 2, "a#1"), read(4, 2, 3)],
    "b": [assigned(10), read(11, 2, 3, 4, 5), commit(12, 6, "b#1"), revoked(13)],
}
LOG = [Commit(GROUP_PLACE, 2, "a#1"), Commit(GROUP_PLACE, 6, "b#1")]
SEEN = [Seen(1, {}), Seen(5, {GROUP_PLACE: 2}), Seen(14, {GROUP_PLACE: 6})]


def test_nothing_is_wrong_with_a_good_history():
    assert checker.lost_records(GOOD, ACKED) == []
    assert checker.read_again(GOOD) == []
    assert checker.gaps(GOOD) == []
    assert checker.owned_twice(GOOD, {"a"}) == []
    assert checker.moves_back(SEEN, "g") == []
    assert checker.unseen_commits(GOOD, "g", SEEN) == []
    assert checker.log_disagrees(LOG, {GROUP_PLACE: 6}, "g") == []
    assert checker.commits_without_effect(GOOD, LOG) == []
    assert checker.refused_with_effect(GOOD, LOG, []) == []
    assert checker.changed({GROUP_PLACE: 6}, {GROUP_PLACE: 6}) == []
    assert checker.duplicates(GOOD) == 2


def test_a_record_that_nobody_read():
    journals = {"a": [read(1, 0, 1, 2)], "b": [read(2, 4, 5)]}
    assert checker.lost_records(journals, ACKED) == ["nobody read v3 at ('t', 0, 3)"]


@pytest.mark.parametrize("who", ["one", "both"])
def test_another_value_than_was_sent(who):
    other = read(2, 0, value="w{}")
    journals = {"a": [read(1, *range(6))], "b": [other]} if who == "both" else {"a": [other]}
    assert any("read w0" in each for each in checker.lost_records(journals, ACKED))


def test_a_committed_record_is_read_again():
    journals = {"a": GOOD["a"], "b": [assigned(10), read(11, 1, 2, 3)]}
    (found,) = checker.read_again(journals)
    assert "b was assigned ('t', 0) and began at 1, although a had committed 2" in found


def test_a_commit_after_the_assignment_does_not_count():
    journals = {"a": [commit(20, 2)], "b": [assigned(10), read(30, 0)]}
    assert checker.read_again(journals) == []


def test_a_tool_without_times_reads_a_committed_record_again():
    marks = [Mark({}, {}), Mark({PLACE: 3}, {"b": 0}), Mark({PLACE: 5}, {"b": 1})]
    journals = {"b": [read(-1, 3), read(-1, 1, 2)]}
    (found,) = checker.read_again_since(journals, marks)
    assert found == "b began ('t', 0) at 1, 3 had been committed"
    assert checker.read_again_since({"b": [read(-1, 0, 1, 2)]}, marks[:2]) == []


@pytest.mark.parametrize("offsets", [(0, 1, 3), (0, 1, 1), (0, 1, 0)])
def test_an_offset_left_out_or_repeated(offsets):
    assert checker.gaps({"a": [assigned(1), read(2, *offsets)]}) != []
    assert checker.gaps({"a": [assigned(1), read(2, *offsets[:2]), assigned(3), read(4, 1)]}) == []


def test_a_partition_with_two_owners():
    first = [assigned(1), revoked(10)]
    second = [assigned(5), revoked(20)]
    assert checker.owned_twice({"a": first, "b": second}, ()) != []
    assert checker.owned_twice({"a": first, "b": second}, {"a"}) == []
    assert checker.owned_twice({"a": [assigned(1), lost(10)], "b": second}, ()) == []
    assert checker.owned_twice({"a": first, "b": [assigned(11), revoked(20)]}, ()) == []


def test_a_member_that_was_told_it_is_none_holds_nothing_up():
    refusal = commit(4, 5, "a#1", REFUSED)._replace(error="code=UNKNOWN_MEMBER_ID,val=25")
    second = [assigned(5), revoked(20)]
    assert checker.owned_twice({"a": [assigned(1), refusal, revoked(10)], "b": second}, ()) == []
    other = refusal._replace(error="code=REBALANCE_IN_PROGRESS")
    assert checker.owned_twice({"a": [assigned(1), other, revoked(10)], "b": second}, ()) != []


@pytest.mark.parametrize("later", [{GROUP_PLACE: 1}, {}])
def test_a_committed_offset_goes_back_or_disappears(later):
    assert checker.moves_back([Seen(1, {GROUP_PLACE: 2}), Seen(2, later)], "g") != []
    assert checker.moves_back([Seen(1, {GROUP_PLACE: 2}), Seen(2, later)], "another") == []


def test_an_acknowledged_commit_is_not_told():
    journals = {"a": [commit(5, 2)]}
    assert checker.unseen_commits(journals, "g", [Seen(6, {GROUP_PLACE: 1})]) != []
    assert checker.unseen_commits(journals, "g", [Seen(4, {GROUP_PLACE: 1})]) == []


def test_the_log_goes_back_or_says_something_else():
    back = [Commit(GROUP_PLACE, 6, ""), Commit(GROUP_PLACE, 2, "")]
    assert checker.log_disagrees(back, {GROUP_PLACE: 2}, "g") != []
    assert checker.log_disagrees(LOG, {GROUP_PLACE: 5}, "g") != []
    assert checker.log_disagrees([*LOG, Commit(GROUP_PLACE, None, "")], {}, "g") == []
    assert last_by_partition([*LOG, Commit(GROUP_PLACE, None, "")]) == {}


def test_an_acknowledged_commit_is_not_in_the_log():
    assert checker.commits_without_effect(GOOD, LOG[:1]) == [
        "b#1 of ('t', 0, 6) was acknowledged and is not in the log"
    ]


def test_a_refused_commit_is_in_the_log():
    journals = {"a": [commit(5, 6, "b#1", COMMITTING), commit(7, 6, "b#1", REFUSED)]}
    assert checker.refused_with_effect(journals, LOG, []) != []
    assert checker.refused_with_effect(journals, LOG, [Outage(1, 4)]) != []
    # The first attempt may have reached a broker that was killed before it could answer.
    assert checker.refused_with_effect(journals, LOG, [Outage(6, 9)]) == []


def test_a_restart_changes_an_offset():
    assert checker.changed({GROUP_PLACE: 6}, {GROUP_PLACE: 5}) != []
    assert checker.changed({GROUP_PLACE: 6}, {}) != []
    assert checker.changed({}, {GROUP_PLACE: 6}) != []


def test_a_rebalance_while_nobody_was_to_notice():
    assert checker.rebalanced([revoked(5)], 1, 9) == ["revoked (('t', 0),)"]
    assert checker.rebalanced([revoked(5), Event(6, ASSIGNED)], 6, 9) == []


# ------------------------------------------------------------------ reading what was said


def test_a_journal_is_read_while_it_grows(tmp_path):
    path = tmp_path / "events"
    journal, tail = Journal(str(path)), Tail(path, read_journal)
    journal.note(ASSIGNED, [PLACE])
    assert [event.partitions for event in tail.events()] == [(PLACE,)]
    journal.note(READ, [("t", 0, 5, "v")])
    journal.note(COMMITTED, [("t", 0, 6)], "a#1")
    with path.open("a") as file:
        file.write("[1, half a li")
    _, second, third = tail.events()
    assert second.records == (("t", 0, 5, "v"),)
    assert (third.offsets, third.commit) == ((("t", 0, 6),), "a#1")


def test_the_verifiable_consumer_is_understood():
    place = {"topic": "t", "partition": 0}
    said = [
        {"timestamp": 7, "name": "partitions_assigned", "partitions": [place]},
        {"timestamp": 8, "name": "record_data", "value": "v", "offset": 3, **place},
        {"timestamp": 9, "name": "offsets_committed", "offsets": [place | {"offset": 4}]},
    ]
    said[2]["success"] = True
    lines = ["something else", *map(json.dumps, said)]
    first, second, third = (event for line in lines for event in read_verifiable(line))
    assert first == Event(7_000_000, ASSIGNED, partitions=(PLACE,))
    assert second.records == (("t", 0, 3, "v"),)
    assert third == Event(10_000_000, COMMITTED, offsets=(("t", 0, 4),))


def test_the_console_consumer_is_understood():
    (event,) = read_console("Partition:3\tOffset:17\tt\tvalue 1")
    assert event.records == (("t", 3, 17, "value 1"),)
    assert list(read_console("Processed a total of 5 messages")) == []
