"""Grouping, order and number of hand-overs."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.broker.cluster.membership import handovers
from barnabas.broker.cluster.membership.handovers import HandOvers
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.storage.replicated.cluster_index import Assignment, HandOver
from tests.broker.moves import STAYS
from tests.cluster.watched import WatchedCluster
from tests.seeds import SEED
from tests.storage.flushes import assign, register
from tests.waiting import wait_until

TOPIC = "orders"
PARTITIONS = 12
AT_ONCE = 4
GIVER, TAKER = 1, 2


class World:
    """A leader of partitions, whose view is as old as the test has it be."""

    def __init__(self, count: int = PARTITIONS) -> None:
        self.index = MemoryIndex()
        self.session, self.other = register(self.index, GIVER), register(self.index, TAKER)
        for each in range(count):
            assign(self.index, each, self.session)
        self.index.want(dict.fromkeys(range(count), TAKER))
        self.asked: list[list[HandOver]] = []
        self.releasing: list[tuple[int, object]] = []
        self.tasks: list[object] = []
        self.look()
        self.hand_overs = HandOvers(
            self,
            lambda: self.session,
            lambda partition_id, told: self.releasing.append((partition_id, told)),
            self._hand_over,
            lambda task, _: self.tasks.append(task),
            at_once=AT_ONCE,
            sleep=self._sleep,
        )
        self.rests = 0
        self.in_a_rest = lambda: None

    async def _sleep(self, _: float) -> None:
        self.rests += 1
        self.in_a_rest()

    async def _hand_over(self, session: int, partitions: list[HandOver]) -> None:
        self.asked.append(list(partitions))
        self.index.hand_over(session, partitions)

    # What the view says.

    def look(self) -> None:
        self.seen = {each.partition_id: each for each in self.index.snapshot(0).led}

    def wanted_elsewhere(self, session: int) -> list[int]:
        return [
            each.partition_id
            for each in self.seen.values()
            if each.session == session and each.wanted_node == TAKER
        ]

    def wanted_session(self, _: int) -> int:
        return self.other

    def epoch_of(self, partition_id: int) -> int:
        return self.seen[partition_id].epoch

    # What happens.

    def release(self) -> None:
        releasing, self.releasing = self.releasing, []
        for _, told in releasing:
            told()

    def run_one(self) -> None:
        with pytest.raises(StopIteration):
            self.tasks.pop(0).send(None)

    def run(self) -> None:
        while self.tasks:
            self.run_one()


def test_limited_partitions_are_released_and_moved_in_one_commit():
    world = World()
    world.hand_overs.release_next()
    let_go = []
    while world.releasing:
        let_go.append([each for each, _ in world.releasing])
        version = world.index.snapshot(0).version
        world.release()
        assert world.index.snapshot(0).version == version, "not before the loop's next turn"
        world.run()
        assert world.index.snapshot(0).version == version + 1
    assert let_go == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert [[each.partition_id for each in batch] for batch in world.asked] == let_go
    assert {each.session for each in world.index.snapshot(0).led} == {world.other}


def test_partitions_of_session_that_has_not_started_are_kept():
    """A released partition would not be handed over, and no broker would resume it in its epoch."""
    world = World()
    begun, world.session = world.session, register(world.index, GIVER, 1)
    for each in range(PARTITIONS):
        assign(world.index, each, world.session)
    world.index.want(dict.fromkeys(range(PARTITIONS), TAKER))
    world.look()
    registered, world.session = world.session, begun
    world.hand_overs.release_next()
    assert world.releasing == []
    world.session = registered
    world.hand_overs.release_next()
    assert [each for each, _ in world.releasing] == [0, 1, 2, 3]


def test_nothing_is_let_go_of_while_the_next_leaders_read():
    world = World()

    def in_a_rest() -> None:
        world.look()
        world.hand_overs.release_next()
        assert world.releasing == []

    world.in_a_rest = in_a_rest
    world.hand_overs.release_next()
    while world.releasing:
        world.release()
        world.run()
    assert (len(world.asked), world.rests) == (3, 3)


def test_released_partitions_are_handed_over_during_rest():
    world = World(AT_ONCE)
    world.hand_overs.release_next()
    (_, first_is_released), *world.releasing = world.releasing
    first_is_released()
    world.run_one()
    rest = world.tasks.pop()
    world.release()
    world.run_one()
    assert [len(each) for each in world.asked] == [1, AT_ONCE - 1]
    assert world.tasks == [], "one rest for both"
    rest.close()


def test_hand_over_of_many_partitions_has_no_rest():
    count = handovers.MANY + AT_ONCE
    world = World(count)
    world.hand_overs.release_next()
    rests = []
    for _ in range(3):
        world.release()
        world.run()
        world.look()
        rests.append(world.rests)
    assert rests == [0, 0, 1], "the last batch leaves fewer"


def test_partition_is_handed_over_once_until_view_changes():
    world = World(AT_ONCE)
    for _ in range(3):
        world.hand_overs.release_next()
        world.release()
        world.run()
    assert len(world.asked) == 1
    world.look()
    world.hand_overs.release_next()
    assert not world.releasing
    # It comes back, and has to go again.
    assert world.index.assign([Assignment(2, world.session, world.epoch_of(2))])
    world.index.want({2: TAKER})
    world.look()
    world.hand_overs.release_next()
    world.release()
    world.run()
    assert world.asked[1:] == [[HandOver(2, 2, world.other)]]


def test_nothing_is_handed_over_any_more_once_it_is_stopped():
    world = World()
    world.hand_overs.release_next()
    world.hand_overs.stop()
    world.release()
    world.hand_overs.release_next()
    assert (world.tasks, world.releasing, world.asked) == ([], [], [])


@pytest.mark.parametrize("seed", range(SEED, SEED + 20))
def test_partitions_are_handed_over_once_in_random_event_order(seed):
    random = Random(seed)
    world = World()
    for _ in range(300):
        match random.randrange(4):
            case 0:
                world.look()
                world.hand_overs.release_next()
            case 1 if world.releasing:
                _, told = world.releasing.pop(random.randrange(len(world.releasing)))
                told()
            case 2:
                world.run()
            case 3:
                world.hand_overs.release_next()
        assert len(world.releasing) <= AT_ONCE
    given = [each.partition_id for batch in world.asked for each in batch]
    assert sorted(given) == list(range(PARTITIONS))
    assert {each.epoch for each in world.index.snapshot(0).led} == {1}


class Killed(Exception):
    """The broker, where it asks the store."""


@pytest.mark.parametrize("is_committed", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("batch", range(3))
def test_broker_killed_at_hand_over_moves_whole_batch_or_none(batch, is_committed):
    """Other brokers serve all acknowledged records after any number of hand-overs."""
    with WatchedCluster(2, config=STAYS) as cluster:
        giver, taker = 0, 1
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.move_all(TOPIC, giver)
        cluster.send(TOPIC, range(5 * PARTITIONS))
        ids = cluster.partition_ids(TOPIC)
        member = cluster.brokers[giver].server._member
        cluster.on(giver, lambda _: setattr(member._service._hand_overs, "_at_once", AT_ONCE))
        hand_over, asked, led = member._errands._index.hand_over, [], []

        def leaders() -> list[tuple[int, int]]:
            rows = cluster.index.rows
            return [(rows[each].leader_session, rows[each].leader_epoch) for each in ids]

        def killed_at(session: int, partitions: list[HandOver]) -> None:
            asked.append([each.partition_id for each in partitions])
            if len(asked) <= batch:
                hand_over(session, partitions)
                return
            led.append(leaders())
            if is_committed:
                hand_over(session, partitions)
            led.append(leaders())
            cluster.cut_from_store(giver)
            raise Killed

        member._errands._index.hand_over = killed_at
        cluster.want_all(TOPIC, taker)
        wait_until(lambda: len(led) == 2)
        cluster.kill(giver)
        changed = {each for each, before, after in zip(ids, *led, strict=True) if before != after}
        assert changed == (set(asked[-1]) if is_committed else set())
        assert len(asked[-1]) <= AT_ONCE
        cluster.settle(TOPIC)
        assert sorted(cluster.values(TOPIC)) == list(range(5 * PARTITIONS))
