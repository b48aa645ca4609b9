"""Incremental fetch sessions (KIP-227) as a table of clients sees them; the wire is elsewhere."""

from __future__ import annotations

import pytest

from broker.fetch_sessions import FetchSessions, served_first
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

IDLE_MS = 120_000


def request(*asked, session=(0, 0), forget=()):
    """``asked`` and ``forget``: pairs of topic and partition; three to give an offset."""
    return FetchRequest(
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(topic, partitions=[FetchPartition(index, fetch_offset=sum(offset))])
            for topic, index, *offset in asked
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic, partitions=[index]) for topic, index in forget
        ],
    )


def plan(sessions, *asked, now_ms=0, by_id=False, **more):
    return sessions.plan(request(*asked, **more), by_id=by_id, now_ms=now_ms)


def asked_of(plan):
    return [(each.topic, each.request.partition, each.request.fetch_offset) for each in plan.asked]


def refused(sessions, *asked, by_id=False, **more):
    with pytest.raises(KafkaError) as caught:
        plan(sessions, *asked, by_id=by_id, **more)
    return caught.value.code


def test_a_fetch_outside_any_session():
    sessions = FetchSessions(10)
    found = plan(sessions, ("a", 0), session=(0, -1))
    assert (found.session_id, found.incremental, asked_of(found)) == (0, False, [("a", 0, 0)])
    assert len(sessions) == 0


def test_a_session_remembers_what_was_asked():
    sessions = FetchSessions(10)
    first = plan(sessions, ("a", 0), ("a", 1, 5))
    assert first.session_id > 0
    assert not first.incremental
    name = first.session_id
    second = plan(sessions, session=(name, 1))
    assert second.incremental
    assert asked_of(second) == [("a", 0, 0), ("a", 1, 5)]
    third = plan(sessions, ("a", 0, 7), ("b", 0), session=(name, 2), forget=[("a", 1)])
    assert asked_of(third) == [("a", 0, 7), ("b", 0, 0)]
    assert third.session_id == name


def test_epochs_count_requests_and_a_wrong_one_changes_nothing():
    sessions = FetchSessions(10)
    name = plan(sessions, ("a", 0)).session_id
    for epoch in (2, 3, 2**31 - 1):
        code = refused(sessions, ("b", 0), session=(name, epoch))
        assert code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert asked_of(plan(sessions, session=(name, 1))) == [("a", 0, 0)]
    # A retry of a request that was counted: its answer was lost.
    assert refused(sessions, session=(name, 1)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert asked_of(plan(sessions, session=(name, 2))) == [("a", 0, 0)]


def test_epochs_go_round_without_the_two_that_mean_something():
    sessions = FetchSessions(10)
    first = plan(sessions, ("a", 0))
    first.session.epoch = 2**31 - 1
    plan(sessions, session=(first.session_id, 2**31 - 1))
    assert first.session.epoch == 1
    plan(sessions, session=(first.session_id, 1))


def test_no_such_session():
    sessions = FetchSessions(10)
    assert refused(sessions, session=(5, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert refused(sessions, session=(0, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_and_ids_do_not_mix():
    sessions = FetchSessions(10)
    name = plan(sessions, ("a", 0)).session_id
    code = refused(sessions, session=(name, 1), by_id=True)
    assert code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    code = refused(sessions, session=(name, 4), by_id=True)
    assert code == ErrorCode.INVALID_FETCH_SESSION_EPOCH  # looked at first, as by Apache Kafka
    plan(sessions, session=(name, 1))


def test_closing_and_starting_over_end_a_session():
    sessions = FetchSessions(10)
    name = plan(sessions, ("a", 0)).session_id
    closed = plan(sessions, ("a", 0), session=(name, -1))
    assert (closed.session_id, len(sessions)) == (0, 0)
    first = plan(sessions, ("a", 0)).session_id
    second = plan(sessions, ("a", 0), session=(first, 0)).session_id
    assert second not in {0, first}
    assert len(sessions) == 1
    assert refused(sessions, session=(first, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_nothing_left_to_fetch_ends_a_session():
    sessions = FetchSessions(10)
    name = plan(sessions, ("a", 0)).session_id
    last = plan(sessions, session=(name, 1), forget=[("a", 0)])
    assert (last.session_id, last.incremental, last.asked) == (0, False, [])
    assert len(sessions) == 0


def test_forgetting_wins_over_asking():
    sessions = FetchSessions(10)
    name = plan(sessions, ("a", 0), ("b", 0)).session_id
    found = plan(sessions, ("a", 0, 9), session=(name, 1), forget=[("a", 0), ("c", 5)])
    assert asked_of(found) == [("b", 0, 0)]


def test_who_got_records_comes_last_next_time():
    sessions = FetchSessions(10)
    first = plan(sessions, ("a", 0), ("b", 0), ("c", 0))
    served_first(first.session, [first.asked[0], first.asked[2]])
    second = plan(sessions, session=(first.session_id, 1))
    assert [topic for topic, _, _ in asked_of(second)] == ["b", "a", "c"]
    third = plan(sessions, session=(first.session_id, 2), forget=[("b", 0)])
    served_first(third.session, second.asked)  # "b" is gone meanwhile
    assert [topic for topic, _, _ in asked_of(third)] == ["a", "c"]


def test_slots_are_limited_and_the_longest_idle_gives_way():
    sessions = FetchSessions(3)
    names = [plan(sessions, ("a", 0), now_ms=now).session_id for now in (0, 1, 2)]
    assert plan(sessions, ("a", 0), now_ms=IDLE_MS - 1).session_id == 0
    plan(sessions, session=(names[0], 1), now_ms=IDLE_MS - 1)
    assert plan(sessions, ("a", 0), now_ms=IDLE_MS).session_id == 0  # the oldest was used
    new = plan(sessions, ("a", 0), now_ms=IDLE_MS + 1).session_id
    assert new > 0
    assert len(sessions) == 3
    assert refused(sessions, session=(names[1], 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    for name, epoch in ((names[0], 2), (names[2], 1), (new, 1)):
        plan(sessions, session=(name, epoch), now_ms=IDLE_MS + 1)


def test_no_slots_no_sessions():
    sessions = FetchSessions(0)
    found = plan(sessions, ("a", 0))
    assert (found.session_id, asked_of(found)) == (0, [("a", 0, 0)])


def test_a_closed_session_makes_room():
    sessions = FetchSessions(1)
    name = plan(sessions, ("a", 0)).session_id
    assert plan(sessions, ("a", 0)).session_id == 0
    assert plan(sessions, ("a", 0), session=(name, 0)).session_id > 0


def test_ids_do_not_repeat():
    sessions = FetchSessions(2000)
    names = {plan(sessions, ("a", 0)).session_id for _ in range(2000)}
    assert len(names) == 2000
    assert all(0 < name < 2**31 for name in names)
