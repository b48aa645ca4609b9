"""Partitions of both coordinators are gained and lost while clients ask, at any moment.

What is here is what a fresh reading of its log gives (D4), what is not here leaves nothing behind
and sends nothing (R6), and whoever waited was answered.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.topics.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.coordinator.transactions.state import State, TopicPartition
from barnabas.protocol.errors import ErrorCode
from tests.broker.moving_shards import (
    GROUPS,
    IDS,
    SESSION_MS,
    SHARDS,
    TIMEOUT_MS,
    Asked,
    MovingLife,
)
from tests.crash.transaction_life import PARTITIONS, TOPIC, batches_of
from tests.history.logs import partition_history

GONE = ErrorCode.NOT_COORDINATOR
LOG = "barnabas.broker.coordination.coordinator_log"
PHASE = "barnabas.broker.coordination.marker_phase"


@pytest.fixture
def life() -> Iterator[MovingLife]:
    """A broker with a producer for each transactional id."""
    made = MovingLife()
    for key in IDS:
        made.init(key)
    made.settle()
    yield made
    made.end()


def index_of(key: str) -> int:
    return java_hash(key) % SHARDS


def moves(life: MovingLife, topic: str, index: int) -> None:
    """Lose a partition and gain it again."""
    life.lose(topic, index)
    life.check()
    life.gain(topic, index)
    life.load()
    life.check()


def stable(life: MovingLife, group: str) -> None:
    """Bring a group of two members into a generation."""
    for slot in range(2):
        life.join(group, slot)
    for _ in range(2):  # The second one has made the first wait once more.
        life.settle()
        life.clock.advance(milliseconds=3_000)
    life.settle()
    for slot in range(2):
        life.sync(group, slot)
    life.settle()
    assert [life.members[group, slot].stage for slot in range(2)] == ["heartbeat"] * 2


# ------------------------------------------------------------------------------------------ groups


def test_members_that_wait_for_the_others_are_sent_elsewhere(life):
    group, other = GROUPS
    joining = [life.join(group, slot) for slot in range(2)]
    apart = life.join(other, 0)
    life.settle()
    assert [each.answers for each in (*joining, apart)] == [[], [], []]
    life.lose(GROUP_OFFSETS, index_of(group))
    assert [each.answer for each in joining] == [GONE, GONE]
    life.check()
    life.clock.advance(milliseconds=60_000)
    life.settle()
    assert apart.answer.error_code == ErrorCode.NONE, "another partition's group goes on"
    life.check()


def test_members_that_wait_for_their_assignment_are_sent_elsewhere(life):
    group = GROUPS[0]
    stable(life, group)
    life.join(group, 0)
    life.join(group, 1)
    life.settle()
    follower = next(slot for slot in range(2) if not life.members[group, slot].leads)
    waiting = life.sync(group, follower)
    life.settle()
    assert waiting.answers == []
    life.lose(GROUP_OFFSETS, index_of(group))
    assert waiting.answer == GONE
    life.check()


def test_a_group_goes_on_with_its_members_when_its_partition_is_back(life):
    """Members lose nothing but time: the same ids, and their sessions begin anew."""
    group = GROUPS[0]
    stable(life, group)
    life.clock.advance(milliseconds=SESSION_MS - 1)
    moves(life, GROUP_OFFSETS, index_of(group))
    life.clock.advance(milliseconds=SESSION_MS - 1)
    life.settle()
    alive = [life.heartbeat(group, slot) for slot in range(2)]
    assert [each.answer.error_code for each in alive] == [ErrorCode.NONE] * 2
    life.clock.advance(milliseconds=SESSION_MS)
    life.settle()
    assert life.heartbeat(group, 0).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_rebalances_are_told_as_far_as_they_happened_here(life):
    group, other = GROUPS
    stable(life, group)
    stable(life, other)
    rebalances = life.groups.rebalances
    assert rebalances.of(group)
    before = [*rebalances.of(other)]
    life.clock.advance(milliseconds=1)
    life.lose(GROUP_OFFSETS, index_of(group))
    assert rebalances.of(group) == []
    assert rebalances.of(other) == before
    life.clock.advance(milliseconds=5)
    life.gain(GROUP_OFFSETS, index_of(group))
    life.load()
    assert rebalances.of(group) == [], "what is read has happened elsewhere"
    assert rebalances.complete_since_ms == life.clock.now_ms()


def test_a_marker_for_offsets_waits_for_the_partition_to_come_back(life):
    key, group = IDS[0], GROUPS[1]
    life.add(key, 0)
    life.commit_in_transaction(key, group)
    life.settle()
    life.lose(GROUP_OFFSETS, index_of(group))
    ended = life.end_transaction(key, commit=True)
    life.settle()
    assert ended.answer.error == ErrorCode.NONE
    place = TopicPartition(GROUP_OFFSETS, index_of(group))
    assert life.transactions.awaiting_markers(key) == [place]
    life.gain(GROUP_OFFSETS, index_of(group))
    life.load()
    life.clock.advance(milliseconds=1_000)
    life.settle()
    assert life.transactions.transaction(key).state == State.COMPLETE_COMMIT
    committed = life.groups.machine_of(group).offsets.of_group(group)
    assert committed[TOPIC][0].offset > 0
    life.check()


# ------------------------------------------------------------------------------------ transactions


def decided(life: MovingLife, key: str, *partitions: int) -> Asked:
    """Decide a transaction whose markers no log takes, and ask for the next one."""
    life.add(key, *partitions)
    life.commit_in_transaction(key, GROUPS[0])
    life.markers.is_delayed = True
    life.end_transaction(key, commit=True)
    waiting = life.add(key, *partitions)
    life.settle()
    assert life.transactions.transaction(key).state == State.PREPARE_COMMIT
    assert waiting.answers == []
    return waiting


def test_who_waits_for_a_transition_is_sent_elsewhere(life):
    key, other = IDS
    waiting, apart = decided(life, key, 0, 1), decided(life, other, 0)
    life.lose(TRANSACTION_STATE, index_of(key))
    life.settle()
    assert waiting.answer.error == GONE
    assert apart.answers == []
    assert [*life.transactions._markers._retries] == [other]
    life.check()
    life.markers.is_delayed = False
    life.clock.advance(milliseconds=100)
    life.settle()
    assert apart.answer.error == ErrorCode.NONE
    assert life.sent[key] == 0, "who has lost the partition sends nothing more (R6)"
    life.gain(TRANSACTION_STATE, index_of(key))
    life.load()
    life.settle()
    assert life.transactions.transaction(key).state == State.COMPLETE_COMMIT
    life.check()


@pytest.mark.parametrize("comes_back", [False, True])
def test_markers_of_later_turns_are_not_written_once_the_partition_is_lost(
    life, comes_back, monkeypatch
):
    monkeypatch.setattr(f"{PHASE}.MARKERS_PER_TURN", 1)
    key = IDS[0]
    life.add(key, 0, 1, 2)
    life.end_transaction(key, commit=False)
    assert (life.sent[key], len(life.later)) == (1, 1)
    life.lose(TRANSACTION_STATE, index_of(key))
    if comes_back:
        life.gain(TRANSACTION_STATE, index_of(key))
        life.load()
        assert (life.sent[key], len(life.later)) == (2, 2), "all of them again"
    life.turn()
    assert life.sent[key] == (3 if comes_back else 1), "the former phase has ended"
    life.come_to_rest()
    assert life.sent[key] == (4 if comes_back else 1)
    life.check()


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_marker_whose_writing_loses_the_partition_is_the_last(life, error):
    key = IDS[0]
    written = []

    def write(*place: object) -> ErrorCode:
        written.append(place[:2])
        life.lose(TRANSACTION_STATE, index_of(key))
        return error

    life.markers.write = write
    life.add(key, 0, 1)
    ended = life.end_transaction(key, commit=True)
    life.come_to_rest()
    assert ended.answer.error == ErrorCode.NONE
    assert written == [(TOPIC, 0)]
    life.check()


def test_a_marker_has_the_epoch_of_its_coordinators_log(life):
    key, other = IDS
    log = life.log(TRANSACTION_STATE, index_of(key))
    before = life.transactions.coordinator_epoch
    assert before == log.leader_epoch == life.logs.leader_epoch
    life.lose(TRANSACTION_STATE, index_of(key))
    log.leader_epoch += 7
    life.gain(TRANSACTION_STATE, index_of(key))
    life.load()
    assert life.transactions.coordinator_epoch == before + 7
    for each, partition in ((key, 0), (other, 1)):
        life.add(each, partition)
        life.end_transaction(each, commit=True)
    life.settle()
    for partition, epoch in ((0, before + 7), (1, before)):
        history = partition_history(batches_of(life.log(TOPIC, partition)), (TOPIC, partition))
        assert [each.coordinator_epoch for each in history.markers] == [epoch]


def test_an_id_is_forgotten_with_all_that_is_known_of_it(life):
    key, other = IDS
    for each in IDS:
        life.add(each, 0)
        life.commit_in_transaction(each, GROUPS[0])
        life.end_transaction(each, commit=True)
    life.settle()
    transactions = life.transactions
    numbers = {each: life.producers[each][0] for each in IDS}
    life.clock.advance(milliseconds=1)
    life.lose(TRANSACTION_STATE, index_of(key))
    assert transactions.transaction_of_producer(numbers[key]) is None
    assert transactions.transaction_of_producer(numbers[other]) is not None
    assert [transactions.clients.of(each) is None for each in IDS] == [True, False]
    assert [transactions.pipelines.of_id(each) is None for each in IDS] == [True, False]
    assert {each.transactional_id for each in transactions.events.newest_first()} == {other}
    assert not transactions.has_producer(key, numbers[key])
    assert [each.transactional_id for each in transactions.all] == [other]
    life.clock.advance(milliseconds=5)
    life.gain(TRANSACTION_STATE, index_of(key))
    life.load()
    assert transactions.events.complete_since_ms == life.clock.now_ms()
    assert transactions.transaction_of_producer(numbers[key]) is not None
    assert transactions.clients.of(key) is None
    life.check()


def test_an_answer_that_comes_after_the_loss_is_the_truth_and_leaves_nothing(life):
    key = IDS[0]
    asked = life.init(key)
    life.lose(TRANSACTION_STATE, index_of(key))
    life.settle()
    assert asked.answer.error == ErrorCode.NONE
    life.check()
    life.gain(TRANSACTION_STATE, index_of(key))
    life.load()
    assert life.transactions.transaction(key).producer == life.producers[key]


def test_timers_of_transactions_begin_when_they_are_read(life):
    key = IDS[0]
    life.add(key, 0)
    life.clock.advance(milliseconds=TIMEOUT_MS - 1)
    moves(life, TRANSACTION_STATE, index_of(key))
    life.clock.advance(milliseconds=2)
    life.settle()
    assert life.transactions.transaction(key).state == State.COMPLETE_ABORT


# ---------------------------------------------------------------------------------- in any order


class MovingShards(RuleBasedStateMachine):
    """Any order of commands, losses, gains, and steps of the disk, the loop and time."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = pytest.MonkeyPatch()
        # One batch is read in a turn, and one marker written.
        self.patches.setattr(f"{LOG}.LOAD_TURN_MS", -1)
        self.patches.setattr(f"{PHASE}.MARKERS_PER_TURN", 1)
        self.life = MovingLife()
        for key in IDS:
            self.life.init(key)
        self.life.settle()

    topics = st.sampled_from([GROUP_OFFSETS, TRANSACTION_STATE])
    indexes = st.integers(0, SHARDS - 1)
    groups = st.sampled_from(GROUPS)
    ids = st.sampled_from(IDS)
    slots = st.integers(0, 1)

    @rule(topic=topics, index=indexes, comes_back=st.booleans())
    def lose(self, topic: str, index: int, comes_back: bool) -> None:
        life = self.life
        log = life.coordinator(topic).log
        if log.shard_at(index) is None:
            with pytest.raises(AssertionError):
                log.lose(index)
            return
        names = GROUPS if topic == GROUP_OFFSETS else []
        waiting = [each for each in life.unanswered() if each.key in names[index : index + 1]]
        life.lose(topic, index)
        assert [each.answer for each in waiting] == [GONE] * len(waiting)
        if comes_back:
            life.check()
            life.gain(topic, index)

    @rule(topic=topics, index=indexes, loads=st.booleans())
    def gain(self, topic: str, index: int, loads: bool) -> None:
        log = self.life.coordinator(topic).log
        if log.shard_at(index) is None:
            self.life.gain(topic, index)
            if loads:
                self.life.load()
        else:
            with pytest.raises(AssertionError):
                log.gain(index)

    @rule(group=groups, slot=slots)
    def go_on(self, group: str, slot: int) -> None:
        """Join, sync, be alive."""
        getattr(self.life, self.life.members[group, slot].stage)(group, slot)

    @rule(group=groups, slot=slots)
    def join_again(self, group: str, slot: int) -> None:
        self.life.join(group, slot)

    @rule(group=groups, slot=slots)
    def leave(self, group: str, slot: int) -> None:
        self.life.leave(group, slot)

    @rule(group=groups)
    def commit(self, group: str) -> None:
        self.life.commit(group)

    @rule(key=ids, group=groups)
    def commit_in_transaction(self, key: str, group: str) -> None:
        self.life.commit_in_transaction(key, group)

    @rule(key=ids, settles=st.booleans())
    def init(self, key: str, settles: bool) -> None:
        self.life.init(key)
        if settles:
            self.life.settle()

    @rule(key=ids, partitions=st.sets(st.integers(0, PARTITIONS[TOPIC] - 1), min_size=1))
    def add(self, key: str, partitions: set[int]) -> None:
        self.life.add(key, *partitions)

    @rule(key=ids, commit=st.booleans())
    def end_transaction(self, key: str, commit: bool) -> None:
        self.life.end_transaction(key, commit=commit)

    @rule(
        key=ids,
        group=groups,
        partitions=st.sets(st.integers(0, PARTITIONS[TOPIC] - 1)),
        commit=st.booleans(),
        is_delayed=st.booleans(),
    )
    def transact(
        self, key: str, group: str, partitions: set[int], commit: bool, is_delayed: bool
    ) -> None:
        """A whole transaction, whose markers may have to wait, and the next one behind it."""
        life = self.life
        life.add(key, *partitions)
        life.commit_in_transaction(key, group)
        life.markers.is_delayed = is_delayed
        life.end_transaction(key, commit=commit)
        life.add(key, *partitions)

    @rule()
    def hold_or_let_go_markers(self) -> None:
        """Markers that no log takes for a while: transitions wait, and are tried again."""
        self.life.markers.is_delayed = not self.life.markers.is_delayed

    @rule(step=st.sampled_from(["turn", "commit", "write", "settle"]))
    def disk(self, step: str) -> None:
        getattr(self.life.engine, step)()

    @rule()
    def turn(self) -> None:
        self.life.turn()

    @rule()
    def background(self) -> None:
        if self.life.background:
            self.life.step_background()

    @rule(milliseconds=st.sampled_from([1, 90, 100, 500, 3_000, 3_000, 11_000]))
    def time(self, milliseconds: int) -> None:
        self.life.clock.advance(milliseconds=milliseconds)

    @invariant()
    def holds(self) -> None:
        self.life.check()

    def teardown(self) -> None:
        life = self.life
        try:
            for topic in (GROUP_OFFSETS, TRANSACTION_STATE):
                for index in range(SHARDS):
                    if life.coordinator(topic).log.shard_at(index) is not None:
                        life.lose(topic, index)
            assert [each for each in life.unanswered() if each.key in GROUPS] == []
            life.come_to_rest()
            assert life.unanswered() == []
            life.check()
            assert len(life.groups._runner._lanes) == len(life.groups._runner._timers) == 0
            assert len(life.transactions._runner._timers) == len(life.transactions._waits) == 0
            assert life.transactions._producer_ids == {}
            assert life.transactions.clients._clients == {}
            assert life.transactions.pipelines.all() == []
            assert len(life.transactions.events) == len(life.groups.rebalances) == 0
            for topic in (GROUP_OFFSETS, TRANSACTION_STATE):
                for index in range(SHARDS):
                    life.gain(topic, index)
            life.markers.is_delayed = False
            life.come_to_rest()
            life.clock.advance(milliseconds=1_000)  # Markers that were refused while groups loaded.
            life.come_to_rest()
            life.check()
            assert not any(each.state.is_decided for each in life.transactions.all)
        finally:
            life.end()
            self.patches.undo()


TestMovingShards = MovingShards.TestCase
