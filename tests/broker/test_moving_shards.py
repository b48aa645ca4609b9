"""Partitions of both coordinators are gained and lost while clients ask, at any moment.

What is here is what a fresh reading of its log gives (D4), what is not here leaves nothing behind,
and whoever waited was answered.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.broker.topics.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from tests.broker.moving_shards import GROUPS, IDS, SHARDS, MovingLife
from tests.crash.transaction_life import PARTITIONS, TOPIC

GONE = ErrorCode.NOT_COORDINATOR
LOG = "barnabas.broker.coordination.coordinator_log"
PHASE = "barnabas.broker.coordination.marker_phase"


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

    @rule(topic=topics, index=indexes)
    def lose(self, topic: str, index: int) -> None:
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
