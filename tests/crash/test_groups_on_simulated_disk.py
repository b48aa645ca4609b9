"""Power cuts at many operations of a disk under groups and transactions.

A group's state moves when its record is appended, and its responses wait for the disk. So each
offset and epoch that a client received before a power cut is found after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.coordinator.groups import shard
from barnabas.coordinator.groups.offsets import fetch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from tests.crash.amounts import seeds
from tests.crash.test_transactions_on_simulated_disk import (
    GROUP_BYTES,
    SHARE,
    TransactionCrashes,
    copy_of,
)
from tests.crash.transaction_life import TOPIC, Life
from tests.crash.transaction_load import Client, Load
from tests.history.logs import require

NONE = ErrorCode.NONE
SEEDS = seeds(in_test=1, at_night=4)
POINTS_PER_SEED = 50
UNREAD = -1


class Offsets(Client):
    """Commits ever higher offsets of a group, or fetches them, on a connection of its own."""

    def __init__(self, load: Load, group: Group, name: str) -> None:
        super().__init__(load, f"{group.name}-{name}")
        self.group = group

    def go_on(self, life: Life, random: Random) -> None:
        if random.random() < 0.5:
            self._commit(life)
        else:
            self._fetch(life)

    def _commit(self, life: Life) -> None:
        self.group.committed += 1
        offset = self.group.committed
        partitions = [OffsetCommitRequestPartition(0, offset)]
        topics = [OffsetCommitRequestTopic(TOPIC, partitions=partitions)]

        def respond(response: OffsetCommitResponse) -> None:
            code = response.topics[0].partitions[0].error_code
            assert code == NONE, ErrorCode(code)
            self.group.shows_offset(offset)

        request = OffsetCommitRequest(self.group.name, topics=topics)
        self.send(life, OFFSET_COMMIT, 8, request, respond)

    def _fetch(self, life: Life) -> None:
        def respond(response: OffsetFetchResponse) -> None:
            assert response.error_code == NONE
            self.group.shows_offset(response.topics[0].partitions[0].committed_offset)

        topics = [OffsetFetchRequestTopic(TOPIC, [0])]
        self.send(life, OFFSET_FETCH, 7, OffsetFetchRequest(self.group.name, topics), respond)


class Member(Client):
    """A member of a consumer group that changes its subscription, and with it the group's epoch."""

    def __init__(self, load: Load, group: Group, number: int) -> None:
        super().__init__(load, f"{group.name}-member-{number}")
        self.group = group
        self.epoch = 0
        self._lives = 0

    def forget(self) -> None:
        super().forget()
        self.epoch = 0
        self._lives += 1

    def go_on(self, life: Life, random: Random) -> None:
        def respond(response: ConsumerGroupHeartbeatResponse) -> None:
            if response.error_code:
                self.epoch = 0
                return
            self.epoch = response.member_epoch
            self.group.shows_epoch(response.member_epoch)

        names = [TOPIC, "no-such-topic"][: random.choice((1, 2))]
        request = ConsumerGroupHeartbeatRequest(
            self.group.members_name,
            f"{self.name}-{self._lives}",
            self.epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=names if random.random() < 0.5 or not self.epoch else None,
            topic_partitions=[] if not self.epoch else None,
        )
        self.send(life, CONSUMER_GROUP_HEARTBEAT, 1, request, respond)


class Group:
    """A group of offsets and a group of members, with the highest that a client received."""

    def __init__(self, number: int) -> None:
        self.name = f"plain-{number}"
        self.members_name = f"members-{number}"
        self.committed = 0
        self.offset = UNREAD
        self.epoch = 0

    def shows_offset(self, offset: int) -> None:
        self.offset = max(self.offset, offset)

    def shows_epoch(self, epoch: int) -> None:
        self.epoch = max(self.epoch, epoch)

    def check(self, life: Life) -> None:
        """Require that what a client received is found (D1, O9)."""
        offsets = life.groups.machine_of(self.name).offsets.of_group(self.name)
        found = offsets[TOPIC][0].offset if offsets else UNREAD
        require(found >= self.offset, f"{self.name}: shown {self.offset}, found {found} (D1)")
        members = life.groups.machine_of(self.members_name).groups.get(self.members_name)
        epoch = 0 if members is None else members.epoch
        shown = self.epoch
        require(epoch >= shown, f"{self.members_name}: epoch {shown} shown, found {epoch} (D1)")


class GroupCrashes(TransactionCrashes):
    """Lives of transactions, with clients of groups beside them."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, SHARE)
        self.groups = [Group(number) for number in range(3)]
        for group in self.groups:
            self.load.clients += [Offsets(self.load, group, each) for each in ("one", "two")]
            self.load.clients += [Member(self.load, group, number) for number in range(2)]

    def check(self, disk: SimulatedFileSystem) -> None:
        metastore = copy_of(self._metastore)
        life = Life(disk, metastore, self._now_ms)
        life.history().check()
        life.open()
        for group in self.groups:
            group.check(life)
        life.end()
        metastore.close()


async def crashes_of(seed: int, monkeypatch) -> GroupCrashes:
    size = GROUP_BYTES[seed % len(GROUP_BYTES)]
    monkeypatch.setattr("barnabas.storage.journal.journal._GROUP_BYTES", size)
    run = GroupCrashes(seed)
    await run.run()
    return run


async def first_violation(monkeypatch) -> str:
    """The message of the first seed's run that finds something; empty if none does."""
    for seed in range(4):
        try:
            await crashes_of(seed, monkeypatch)
        except AssertionError as error:
            return str(error)
        await asyncio.sleep(0)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_power_cut_takes_back_nothing_that_a_group_has_shown(seed, monkeypatch):
    run = await crashes_of(seed, monkeypatch)
    shown = [(group.offset, group.epoch) for group in run.groups]
    print(f"seed {seed}: {run.points} power cuts, shown {shown}")
    assert run.points >= POINTS_PER_SEED, "the workload became too small to mean anything"
    assert all(offset > 10 and epoch > 3 for offset, epoch in shown)


def answers_at_once(decide: Callable) -> Callable:
    return lambda *given: decide(*given)._replace(is_known=True)


async def test_fetch_that_does_not_wait_for_the_disk_is_found_out(monkeypatch):
    changed = {
        key: answers_at_once(decider) if decider is fetch else decider
        for key, decider in shard._DECIDERS.items()
    }
    monkeypatch.setattr(shard, "_DECIDERS", changed)
    assert "(D1)" in await first_violation(monkeypatch)
