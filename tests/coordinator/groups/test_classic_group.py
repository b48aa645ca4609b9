"""Corners of classic groups that the table of states and commands does not show."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from barnabas.coordinator.decision import Now, Record, Timer
from barnabas.coordinator.groups.classic import ClassicGroup, join, join_new_group
from barnabas.coordinator.groups.classic.records import group_of, subscribed_topics
from barnabas.coordinator.groups.classic.states import State
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.group import Identity
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.group_metadata_record import (
    GROUP_METADATA_RECORD,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from tests.coordinator.groups.classic_run import GROUP, SUBSCRIPTION, Run

JOIN = Timer(GROUP, "join")
ALL_TOPICS = None


def joined(run: Run, names: str, **options: object) -> None:
    """Join members to an empty group and start a generation."""
    for name in names:
        run.do(run.join(version=3, new_id=name, **options))
    while run.group.state is State.PREPARING_REBALANCE:
        run.expire(JOIN)


def assigned(run: Run, names: str) -> None:
    for name in reversed(names):
        assignments = {each: each.encode() for each in names}
        run.do(run.sync(name, run.group.generation, assignments=assignments))


def record_of(version: int, **member: object) -> Record:
    value = GroupMetadataValue(
        "consumer", 7, "range", "m", -1, [MemberMetadata("m", session_timeout=5, **member)]
    )
    key = GroupMetadataKey(GROUP)
    written = Record(GROUP_METADATA_RECORD, key, value, version).encode()[1]
    return Record(GROUP_METADATA_RECORD, key, GROUP_METADATA_RECORD.decode_value(written))


# ------------------------------------------------------------------------------------------ records


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_records_of_every_version_are_read(version):
    group = group_of(record_of(version, rebalance_timeout=60, subscription=SUBSCRIPTION))
    assert (group.state, group.generation, group.leader_id) == (State.STABLE, 7, "m")
    assert group.topics == {"t"}
    # Before version 1 a rebalance might take as long as a session.
    assert group.members["m"].rebalance_timeout_ms == (60 if version else 5)


@pytest.mark.parametrize(
    ("metadata", "topics"),
    [
        (SUBSCRIPTION, {"t"}),
        (b"\0\x03" + SUBSCRIPTION[2:] + b"whatever came later", {"t"}),
        (SUBSCRIPTION[:-6], ALL_TOPICS),
        (b"\0\0\0\0\0\x05\0\1t", ALL_TOPICS),
        (b"", ALL_TOPICS),
    ],
)
def test_topics_of_consumers_are_read_from_what_they_say(metadata, topics):
    group = group_of(record_of(3, subscription=metadata))
    assert subscribed_topics(group) == topics
    assert group.is_subscribed("t")
    assert group.is_subscribed("other") == (topics is ALL_TOPICS)


def test_topics_of_others_are_nobodys_business():
    group = replace(group_of(record_of(3)), protocol_type="connect")
    assert subscribed_topics(group) is None
    group.topics = None
    assert not group.is_subscribed("t")


def test_a_tombstone_removes_classic_groups_only():
    run = Run()
    joined(run, "a")
    (tombstone,) = run.group.tombstones()
    run.shard.apply(tombstone, 1)
    assert run.group is None
    consumer = ConsumerGroup(GROUP)
    run.shard.groups[GROUP] = consumer
    run.shard.apply(tombstone, 2)
    assert run.shard.groups[GROUP] is consumer


def test_previous_group_is_removed_in_the_same_decision():
    run = Run()
    gone = Record(GROUP_METADATA_RECORD, GroupMetadataKey(GROUP), None)
    decision = join_new_group(run.config, run.join(new_id="a"), run.now, [gone])
    assert [record.value is None for record in decision.records] == [True, False]


# ---------------------------------------------------------------------------------------- rebalance


def test_initial_delay_grows_with_new_members_up_to_its_maximum():
    run = Run(GroupConfig(initial_rebalance_delay_ms=25_000))
    run.do(run.join(version=3, new_id="a"))
    begun_ms = run.tick_ms
    waited = []
    for name in "bcde":
        if run.group.state is not State.PREPARING_REBALANCE:
            break
        run.tick_ms += 1
        run.do(run.join(version=3, new_id=name))
        run.expire(JOIN)
        waited.append(run.tick_ms - begun_ms)
    # 25 s for the first, the same again, and what is left of the rebalance timeout of 60 s.
    assert waited == [25_000, 50_000, 60_000]
    assert list(run.group.members) == list("abcd")


def test_initial_delay_is_not_extended_without_new_members():
    run = Run()
    run.do(run.join(version=3, new_id="a"))
    run.expire(JOIN)
    assert run.group.state is State.COMPLETING_REBALANCE
    assert run.tick_ms == 3_000


def test_the_protocol_most_members_want_is_chosen_out_of_those_all_support():
    run = Run()
    for name, protocols in (("a", "x+range+sticky"), ("b", "sticky+range"), ("c", "sticky+range")):
        run.do(run.join(version=3, new_id=name, protocols=protocols))
    run.expire(JOIN)
    run.expire(JOIN)
    assert run.group.protocol_name == "sticky"


def test_a_group_above_a_lowered_limit_shrinks_after_a_restart():
    run = Run()
    joined(run, "abc")
    assigned(run, "abc")
    run.config = GroupConfig(max_size=2)
    run.restart()
    run.expire(Timer(GROUP, "size"))
    tickets = []
    for name in "cab":
        command = run.join(name)
        tickets.append(command.ticket)
        run.do(command)
    assert run.answers[tickets[2]].error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    run.expire(JOIN)
    assert list(run.group.members) == ["a", "c"]


def test_pending_member_ids_have_a_limit(monkeypatch):
    monkeypatch.setattr(join, "PENDING_MEMBERS_MAX", 2)
    run = Run()
    codes = [run.do(run.join(new_id=name)).response.error_code for name in ("p1", "p2", "p3")]
    assert codes == [ErrorCode.MEMBER_ID_REQUIRED] * 2 + [ErrorCode.GROUP_MAX_SIZE_REACHED]
    run.expire(Timer(GROUP, "session", "p1"))
    assert run.do(run.join(new_id="p4")).response.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_protocol_offered_twice_counts_once():
    run = Run()
    joined(run, "a", protocols="range+range")
    assert run.group.members["a"].protocols == (("range", SUBSCRIPTION),)


# ---------------------------------------------------------------------------- for others who ask


def test_a_commit_is_a_sign_of_life_of_members_only():
    run = Run()
    joined(run, "a")
    (session,) = run.group.commit_effects(Identity("a", 1), Now(0, 500))
    assert session == (Timer(GROUP, "session", "a"), 10_500)
    assert run.group.commit_effects(Identity("nobody", 1), Now(0, 500)) == ()


def test_empty_group_knows_when_it_became_empty():
    run = Run()
    joined(run, "a")
    assert run.group.empty_since_ms() == -1
    run.tick_ms += 1_000
    run.do(run.leave(("a", None)))
    assert run.group.empty_since_ms() == run.now.wall_ms
    assert isinstance(run.replayed().groups[GROUP], ClassicGroup)
    assert run.replayed().groups[GROUP].empty_since_ms() == run.now.wall_ms


def test_a_copy_has_everything_and_shares_nothing_that_changes():
    # No two fields alike: one in the place of another would be noticed.
    group = ClassicGroup(
        *("group", State.STABLE, State.PREPARING_REBALANCE, 1, 2, "consumer", "range", "leader"),
        *({"m": "member"}, {"i": "m"}, {"range": 3}, frozenset("t"), record_of(3)),
        *({"p": None}, {"j": 4}, {"s": 5}, {"u": None}, True, 6, 7),
    )
    copied = group.copy()
    assert copied == group
    for each in fields(ClassicGroup):
        value = getattr(group, each.name)
        assert value != each.default
        if isinstance(value, dict):
            assert getattr(copied, each.name) is not value
