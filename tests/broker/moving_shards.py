"""The coordinators of a ``Life``, whose partitions are gained and lost while clients ask.

A group and a transactional id in each partition; a loop whose later turns and background tasks go
on when a test says so.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

from barnabas.broker.coordination.coordinator_log import CoordinatorLog
from barnabas.broker.coordination.groups import group_config
from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.coordination.replay import Replay
from barnabas.broker.coordination.shard import Machine, Shard
from barnabas.broker.topics.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.coordinator.decision import TransactionalProducer
from barnabas.coordinator.groups.commands import (
    Caller,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    OffsetCommit,
    SyncGroup,
    TransactionalOffsetCommit,
)
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    EndTransaction,
    InitProducer,
    Outcome,
)
from barnabas.coordinator.transactions.shard import TransactionShard
from barnabas.coordinator.transactions.state import CLASSIC, TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.records import iterate_batches, read_header
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.simulated import SimulatedFileSystem
from barnabas.storage.transaction_marker import TransactionMarker
from tests.coordinator.groups.classic_run import SUBSCRIPTION
from tests.crash.transaction_life import CONFIG, PARTITIONS, TOPIC, Life, batches_of, new_metastore

NOW_MS = 1_700_000_000_000
SHARDS = PARTITIONS[GROUP_OFFSETS]
SESSION_MS = 10_000
REBALANCE_MS = 20_000
TIMEOUT_MS = 15_000
CALLER = Caller("client", "/host", 3)
CLIENT: Any = SimpleNamespace(client_id="client", connection=SimpleNamespace(peer_host="host"))


def key_of(index: int, name: str) -> str:
    """A key that belongs to a partition."""
    found = (f"{name}{number}" for number in range(100))
    return next(key for key in found if java_hash(key) % SHARDS == index)


GROUPS = [key_of(index, "group-") for index in range(SHARDS)]
IDS = [key_of(index, "id-") for index in range(SHARDS)]


@dataclass(eq=False)
class Asked:
    """A command of a client, and what it was answered."""

    key: str
    answers: list[Any] = field(default_factory=list)

    @property
    def answer(self) -> Any:
        (answer,) = self.answers
        return answer


@dataclass
class Member:
    """What a client knows of its membership of a classic group."""

    member_id: str = ""
    generation: int = -1
    stage: str = "join"
    """What it does next."""
    leads: list[str] = field(default_factory=list)
    """The members it has to assign to."""


class MovingLife(Life):
    """A broker whose partitions of the internal topics come and go."""

    def __init__(self) -> None:
        super().__init__(SimulatedFileSystem(), new_metastore(), NOW_MS)
        self.background: deque[Coroutine[Any, Any, None]] = deque()
        self.later: deque[Callable[[], None]] = deque()
        self.asked: list[Asked] = []
        self.members: dict[tuple[str, int], Member] = {
            (group, slot): Member() for group in GROUPS for slot in range(2)
        }
        self.producers: dict[str, tuple[int, int]] = dict.fromkeys(IDS, (-1, -1))
        self.numbers = 0
        self.sent: Counter[str] = Counter()
        """Markers by transactional id."""
        asyncio.run(self._make_topics())

    async def _make_topics(self) -> None:
        self.open()
        host: Any = self.transactions._host
        host.loop.call_soon = lambda call, *given: self.later.append(lambda: call(*given))
        self.markers.write = partial(self._sends, self.markers.write)  # type: ignore[method-assign]
        await self.catalogue.create_topic(TOPIC, PARTITIONS[TOPIC], {})
        await self.groups.ensure()
        await self.transactions.ensure()
        await self.catalogue.producer_ids.ensure()
        self.settle()
        assert self.groups.is_coordinator()
        assert self.transactions.is_coordinator()

    def _sends(self, write: Callable[..., ErrorCode], *asked: Any) -> ErrorCode:
        """Write a marker: as the coordinator of its transaction, in that one's epoch (R6)."""
        error = write(*asked)
        marker: TransactionMarker = asked[-1]
        key = self.transactions._producer_ids[marker.producer_id]
        shard = self.transactions.log.shard_of(key)
        assert shard.is_loaded
        assert marker.coordinator_epoch == shard.log.leader_epoch
        self.sent[key] += not error
        return error

    def _spawn(self, coroutine: Any, name: str) -> None:
        del name
        self.background.append(coroutine)

    # ------------------------------------------------------------------------- the loop's turns

    def step_background(self) -> None:
        """Let the first background task run until it lets others run."""
        coroutine = self.background.popleft()
        try:
            coroutine.send(None)
        except StopIteration:
            return
        self.background.append(coroutine)

    def load(self) -> None:
        """Let all that is gained be read."""
        while self.background:
            self.step_background()

    def turn(self) -> None:
        """Let what was put off for later run."""
        for _ in range(len(self.later)):
            self.later.popleft()()

    def come_to_rest(self) -> None:
        """Let everything go on that needs no time to pass."""
        while self.later or self.background or self.engine.busy:
            self.settle()
            self.load()
            self.turn()
        self.flush_answers()

    def end(self) -> None:
        super().end()
        for coroutine in self.background:
            coroutine.close()

    # --------------------------------------------------------------------------------- partitions

    def coordinator(self, topic: str) -> Any:
        return {GROUP_OFFSETS: self.groups, TRANSACTION_STATE: self.transactions}[topic]

    def gain(self, topic: str, index: int) -> None:
        """As whoever has loaded the partition: nothing of it is under way."""
        self.settle()
        self.coordinator(topic).gain(index)

    def lose(self, topic: str, index: int) -> None:
        self.coordinator(topic).lose(index)

    # ------------------------------------------------------------------------------------ clients

    def _asks(self, key: str) -> Asked:
        asked = Asked(key)
        self.asked.append(asked)
        return asked

    def _group(self, command: Any, then: Callable[[Any], None] = lambda _response: None) -> Asked:
        asked = self._asks(command.group_id)

        def respond(response: Any) -> None:
            asked.answers.append(response)
            if not isinstance(response, ErrorCode):
                then(response)

        code = self.groups.refusal(command.group_id)
        if code:
            respond(code)
        else:
            ticket = getattr(command, "ticket", None)
            self.groups.submit(command.group_id, command, respond, lambda code: code, ticket=ticket)
        return asked

    def join(self, group: str, slot: int) -> Asked:
        member = self.members[group, slot]
        request = JoinGroupRequest(
            group,
            SESSION_MS,
            REBALANCE_MS,
            member.member_id,
            None,
            "consumer",
            [JoinGroupRequestProtocol("range", SUBSCRIPTION)],
        )
        self.numbers += 1
        new_id = "" if member.member_id else f"member-{self.numbers}"

        def joined(response: Any) -> None:
            if response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                member.member_id = ""
            if not response.error_code:
                member.member_id = response.member_id
                member.generation = response.generation_id
                member.stage = "sync"
                member.leads = [each.member_id for each in response.members]

        command = JoinGroup(CALLER, request, self.groups.new_ticket(), new_id, self.groups.image)
        return self._group(command, joined)

    def sync(self, group: str, slot: int) -> Asked:
        member = self.members[group, slot]
        request = SyncGroupRequest(
            group,
            member.generation,
            member.member_id,
            assignments=[SyncGroupRequestAssignment(each, b"all") for each in member.leads],
        )

        def synced(response: Any) -> None:
            member.stage = "join" if response.error_code else "heartbeat"

        return self._group(SyncGroup(CALLER, request, self.groups.new_ticket()), synced)

    def heartbeat(self, group: str, slot: int) -> Asked:
        member = self.members[group, slot]
        request = HeartbeatRequest(group, member.generation, member.member_id)

        def alive(response: Any) -> None:
            if response.error_code:
                member.stage = "join"

        return self._group(Heartbeat(CALLER, request), alive)

    def leave(self, group: str, slot: int) -> Asked:
        member = self.members[group, slot]
        request = LeaveGroupRequest(group, "", [MemberIdentity(member.member_id, None)])
        self.members[group, slot] = Member()
        return self._group(LeaveGroup(CALLER, request))

    def _offsets(self, group: str, offset: int) -> OffsetCommitRequest:
        topic = self.catalogue.topic(TOPIC)
        assert topic is not None
        partitions = [OffsetCommitRequestPartition(0, offset)]
        topics = [OffsetCommitRequestTopic(TOPIC, topic.topic_id, partitions)]
        return OffsetCommitRequest(group, topics=topics)

    def commit(self, group: str) -> Asked:
        self.numbers += 1
        return self._group(OffsetCommit(CALLER, self._offsets(group, self.numbers)))

    def commit_in_transaction(self, key: str, group: str) -> None:
        """As TxnOffsetCommit: what the transaction may not have is asked again at the append."""
        self.numbers += 1
        producer = TransactionalProducer(*self.producers[key])
        index = java_hash(group) % SHARDS
        command = AddPartitions(
            key, *producer, frozenset({TopicPartition(GROUP_OFFSETS, index)}), CLASSIC
        )
        if self.groups.refusal(group) or self.transactions.add(command):
            return
        self.transactions.used(key, CLIENT)
        self.transactions.pipelines.reads(group, key)
        asked = self._asks(group)
        self.groups.submit(
            group,
            TransactionalOffsetCommit(CALLER, self._offsets(group, self.numbers), producer),
            asked.answers.append,
            lambda code: code,
            admit=lambda: self.transactions.add(command),
        )

    def _transaction(
        self, key: str, make: Callable[[], Any], then: Callable[[Outcome], None]
    ) -> Asked:
        asked = self._asks(key)

        def respond(outcome: Outcome) -> None:
            asked.answers.append(outcome)
            if not outcome.error:
                then(outcome)

        self.transactions.submit(make, respond, key=key, context=CLIENT)
        return asked

    def init(self, key: str) -> Asked:
        return self._transaction(
            key,
            lambda: InitProducer(
                key, TIMEOUT_MS, fresh_producer_id=self.transactions.fresh_producer_id
            ),
            lambda outcome: self.producers.update(
                {key: (outcome.producer_id, outcome.producer_epoch)}
            ),
        )

    def add(self, key: str, *partitions: int) -> Asked:
        added = frozenset(TopicPartition(TOPIC, partition) for partition in partitions)
        command = AddPartitions(key, *self.producers[key], added, CLASSIC)
        return self._transaction(key, lambda: command, lambda _outcome: None)

    def end_transaction(self, key: str, *, commit: bool) -> Asked:
        command = EndTransaction(key, *self.producers[key], commit, CLASSIC)
        return self._transaction(key, lambda: command, lambda _outcome: None)

    # ------------------------------------------------------------------------------------- checks

    def check(self) -> None:
        """What holds after every step."""
        if self.failures:
            raise self.failures[0]
        assert all(len(each.answers) <= 1 for each in self.asked), "answered twice"
        for topic in (GROUP_OFFSETS, TRANSACTION_STATE):
            for index in range(SHARDS):
                self._check_partition(topic, index)
        self._check_nothing_is_left()

    def _check_partition(self, topic: str, index: int) -> None:
        coordinator = self.coordinator(topic)
        names = GROUPS if topic == GROUP_OFFSETS else IDS
        refusals = {coordinator.refusal(key) for key in names if java_hash(key) % SHARDS == index}
        shard = coordinator.log.shard_at(index)
        if shard is None:
            assert refusals == {ErrorCode.NOT_COORDINATOR}
        elif not shard.is_loaded:
            assert refusals == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        else:
            assert refusals == {ErrorCode.NONE}
            check = self._check_groups if topic == GROUP_OFFSETS else self._check_transactions
            check(shard)

    def _check_groups(self, shard: Shard[GroupShard]) -> None:
        """Groups apply what is durable (D4)."""
        again = rebuilt(
            shard,
            GROUP_OFFSETS,
            lambda: GroupShard(group_config(CONFIG, self.groups.consumer_times)),
            batches_of(shard.log),
        )
        live = shard.machine
        assert again.groups.keys() == live.groups.keys()
        for key, group in live.groups.items():
            assert again.groups[key].stored[:3] == group.stored[:3], key
        assert [*again.offsets.group_ids()] == [*live.offsets.group_ids()]
        for key in live.offsets.group_ids():
            assert again.offsets.commits_of(key) == live.offsets.commits_of(key), key

    def _check_transactions(self, shard: Shard[TransactionShard]) -> None:
        """Transactions apply what is appended (D4)."""
        producer_ids: dict[int, str] = {}
        again = rebuilt(
            shard,
            TRANSACTION_STATE,
            lambda: TransactionShard(CONFIG.transaction_version, producer_ids),
            batches_of(shard.log) + batches_under_way(shard.log),
        )
        live = shard.machine
        assert again.transactions == live.transactions
        assert again.open == live.open
        for key, owed in again._awaiting.items():
            assert live._awaiting[key] <= owed, key
        owned = self.transactions._producer_ids.items()
        assert producer_ids == {number: key for number, key in owned if shard.owns(key)}

    def _check_nothing_is_left(self) -> None:
        """Of keys whose partition is not here there is nothing in memory."""
        groups, transactions = self.groups, self.transactions
        runner, markers = groups._runner, transactions._markers
        check_timers(runner._timers, groups.log)
        check_timers(transactions._runner._timers, transactions.log)
        unfinished = (*runner._parked.values(), *runner._in_flight)
        require_here(groups.log, "waits", (each.key for each in unfinished))
        require_here(groups.log, "lane", runner._lanes._lanes)
        assert {*runner._markers._under_way} <= {*groups.log.shards}
        require_here(groups.log, "rebalance", (each.group_id for each in groups.rebalances._ring))
        require_here(transactions.log, "retry", markers._retries)
        assert {each.shard for each in markers._retries.values()} <= {*transactions.log.shards}
        require_here(transactions.log, "wait", transactions._waits._waiting)
        require_here(transactions.log, "producer id", transactions._producer_ids.values())
        require_here(transactions.log, "client", transactions.clients._clients)
        require_here(transactions.log, "pipeline", transactions.pipelines._by_id)
        told = transactions.events.newest_first()
        require_here(transactions.log, "event", (each.transactional_id for each in told))

    def unanswered(self) -> list[Asked]:
        return [each for each in self.asked if not each.answers]


def require_here(log: CoordinatorLog[Any], what: str, keys: Any) -> None:
    for key in keys:
        assert log.shard_here(key) is not None, f"{what} of {key}, which is not here"


def check_timers(timers: Any, log: CoordinatorLog[Any]) -> None:
    here = {*log.shards}
    assert {*timers._running} <= here
    assert {each.shard for each in timers._expiries.values()} <= here
    for shard, running in timers._running.items():
        assert all(shard.owns(timer.key) for timer in running)


def batches_under_way(log: PartitionLog) -> list[bytes]:
    """The batches that are appended and not durable yet."""
    found = []
    for stored in log.unflushed:
        data = memoryview(stored.chunk)[stored.start : stored.end]
        for position, header in iterate_batches(data):
            if header.base_offset >= log.high_watermark:
                found.append(bytes(data[position : position + header.size]))
    return found


def rebuilt(
    shard: Shard[Any], topic: str, make_machine: Callable[[], Machine], batches: list[bytes]
) -> Any:
    """The machine that reading a log makes in which there is nothing but some batches."""
    views = [memoryview(batch) for batch in batches]
    segment = SimpleNamespace(
        scan_checked=lambda _start: ((0, read_header(view), view) for view in views)
    )
    log: Any = SimpleNamespace(
        segments=[segment], log_start_offset=0, cleaning=SimpleNamespace(scans=0)
    )
    again = Shard(shard.index, shard.partition_count, log, make_machine())
    replay = Replay(topic, make_machine, lambda _shard: None, latest_only=False)
    replay.add(again)
    assert not replay.goes_on(lambda: False)
    assert again.is_loaded
    return again.machine
