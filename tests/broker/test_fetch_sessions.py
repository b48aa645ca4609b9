"""Incremental fetch sessions (KIP-227) as a table of clients sees them; the wire is elsewhere."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from barnabas.broker.api.fetch_sessions import UNKNOWN_MOST, FetchSessions, served_first
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)

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


def plan(sessions, *asked, now_ms=0, by_id=False, principal="User:alice", **more):
    def exists(each):
        return not each.topic.startswith("none")

    return sessions.plan(
        request(*asked, **more), by_id=by_id, now_ms=now_ms, exists=exists, principal=principal
    )


def many(count, topic="a", first=0):
    return [(topic, index) for index in range(first, first + count)]


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


def test_partitions_with_records_come_last_in_the_next_fetch():
    sessions = FetchSessions(10)
    first = plan(sessions, ("a", 0), ("b", 0), ("c", 0))
    served_first(first.session, [first.asked[0], first.asked[2]])
    second = plan(sessions, session=(first.session_id, 1))
    assert [topic for topic, _, _ in asked_of(second)] == ["b", "a", "c"]
    third = plan(sessions, session=(first.session_id, 2), forget=[("b", 0)])
    served_first(third.session, second.asked)  # "b" no longer exists
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


def test_of_a_partition_named_twice_the_last_word_counts():
    sessions = FetchSessions(10)
    found = plan(sessions, ("a", 0, 1), ("b", 0), ("a", 0, 2))
    assert asked_of(found) == [("a", 0, 2), ("b", 0, 0)]
    assert sessions.partitions == 2


def test_all_sessions_together_have_a_limit_of_partitions():
    sessions = FetchSessions(10, partitions_max=10)
    first = plan(sessions, *many(6))
    assert first.session is not None
    assert sessions.partitions == 6
    second = plan(sessions, *many(5))
    assert second.session_id == 0
    assert len(asked_of(second)) == 5  # The request still gets a response.
    third = plan(sessions, *many(4))
    assert third.session is not None
    assert sessions.partitions == 10
    plan(sessions, session=(first.session_id, 1), forget=many(2))
    assert sessions.partitions == 8
    plan(sessions, session=(third.session_id, -1))
    assert (len(sessions), sessions.partitions) == (1, 4)
    plan(sessions, ("b", 1), session=(first.session_id, 0))
    assert (len(sessions), sessions.partitions) == (1, 1)


def test_a_session_that_grows_beyond_the_limit_ends():
    sessions = FetchSessions(10, partitions_max=10)
    first = plan(sessions, *many(6))
    other = plan(sessions, *many(4))
    code = refused(sessions, ("b", 0), session=(first.session_id, 1))
    assert code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.partitions == 4
    plan(sessions, session=(other.session_id, 1))
    assert plan(sessions, *many(7)).session_id == 0


def test_one_session_has_a_limit_of_its_own():
    sessions = FetchSessions(10, partitions_max=100, session_max=5)
    assert plan(sessions, *many(6)).session_id == 0
    session = plan(sessions, *many(5)).session_id
    code = refused(sessions, ("b", 0), session=(session, 1))
    assert code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_idle_session_is_evicted_if_another_needs_its_room():
    sessions = FetchSessions(10, partitions_max=10)
    idle = plan(sessions, *many(5)).session_id
    used = plan(sessions, *many(5)).session_id
    plan(sessions, session=(used, 1), now_ms=IDLE_MS)
    assert plan(sessions, *many(2), now_ms=IDLE_MS).session_id > 0
    assert refused(sessions, session=(idle, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    plan(sessions, session=(used, 2), now_ms=IDLE_MS)


def test_smaller_sessions_that_are_not_new_give_way_to_a_larger_one():
    sessions = FetchSessions(2)
    small = plan(sessions, *many(2)).session_id
    large = plan(sessions, *many(9)).session_id
    now_ms = IDLE_MS - 1
    plan(sessions, session=(small, 1), now_ms=now_ms)
    plan(sessions, session=(large, 1), now_ms=now_ms)
    assert plan(sessions, *many(5), now_ms=now_ms).session_id == 0  # Neither is old enough.
    now_ms = IDLE_MS
    assert plan(sessions, *many(2), now_ms=now_ms).session_id == 0  # As large is not larger.
    assert plan(sessions, *many(5), now_ms=now_ms).session_id > 0
    assert refused(sessions, session=(small, 2)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    plan(sessions, session=(large, 2), now_ms=now_ms)
    assert plan(sessions, *many(3), now_ms=now_ms).session_id == 0  # The new one is too new.


def test_sessions_are_not_evicted_if_the_room_does_not_suffice():
    sessions = FetchSessions(10, partitions_max=10)
    small = plan(sessions, *many(2)).session_id
    large = plan(sessions, *many(8)).session_id
    now_ms = IDLE_MS + 1
    plan(sessions, session=(small, 1), now_ms=now_ms - 1)
    plan(sessions, session=(large, 1), now_ms=now_ms - 1)
    assert plan(sessions, *many(7), now_ms=now_ms).session_id == 0
    plan(sessions, session=(small, 2), now_ms=now_ms)


def test_few_partitions_that_do_not_exist_are_remembered():
    sessions = FetchSessions(10)
    session = plan(sessions, *many(200), *many(UNKNOWN_MOST, "none")).session_id
    assert session > 0
    assert len(asked_of(plan(sessions, session=(session, 1)))) == 200 + UNKNOWN_MOST
    code = refused(sessions, ("none-more", 0), session=(session, 2))
    assert code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert plan(sessions, *many(200), *many(UNKNOWN_MOST + 1, "none")).session_id == 0
    assert plan(sessions, ("none" + "x" * 250, 0)).session_id == 0
    assert sessions.partitions == 0


def test_sessions_stay_within_fifty_megabytes():
    """At the default limit, with any content: the memory of one partition is measured."""
    limit = BrokerConfig().fetch_session_partitions_max
    count = 20_000
    gc.collect()
    tracemalloc.start()
    try:
        sessions = FetchSessions(1000, partitions_max=limit)
        for number in range(count // 100):
            asked = [(f"{'topic':x<60}{number}-{index}", index, 1 << 40) for index in range(100)]
            assert plan(sessions, *asked).session_id > 0
        del asked
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sessions.partitions == count
    print(f"{held / count:.0f} bytes for each partition")
    assert held / count * limit < 50_000_000


@pytest.mark.parametrize("epoch", [1, 2, 7])
def test_the_session_of_another_user_is_none(epoch):
    sessions = FetchSessions(10)
    session_id = plan(sessions, ("a", 0)).session_id
    more = {"session": (session_id, epoch), "forget": [("a", 0)], "principal": "User:bob"}
    assert refused(sessions, ("b", 0), **more) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert asked_of(plan(sessions, session=(session_id, 1))) == [("a", 0, 0)]


@pytest.mark.parametrize("epoch", [0, -1])
def test_session_of_another_user_cannot_be_closed(epoch):
    sessions = FetchSessions(10)
    session_id = plan(sessions, ("a", 0)).session_id
    # The result is that of an id that does not exist, so a client cannot find out existing ids.
    answers = [
        plan(sessions, ("b", 0), session=(each, epoch), principal="User:bob")
        for each in (session_id, session_id ^ 1)
    ]
    assert [asked_of(each) for each in answers] == [[("b", 0, 0)]] * 2
    assert asked_of(plan(sessions, session=(session_id, 1))) == [("a", 0, 0)]
