"""Clients that speak the protocol well and tell lies: members, epochs, producers, transactions."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

from barnabas.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.produce import PRODUCE, ProduceRequest
from barnabas.protocol.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.attack.neighbour import create_topic
from tests.attack.peer import Wire, frame
from tests.attack.scenario import MIB, Limits, Scenario, Sent, Target
from tests.attack.scenarios.connections import count_answers
from tests.broker.data_plane import Named, batch, topic_data

VICTIM = "victim"
PARTITIONS = 4
GROUPS = [f"group-{number}" for number in range(8)]
TRANSACTIONAL_IDS = [f"transaction-{number}" for number in range(8)]
EPOCHS = (-2, -1, 0, 0, 1, 2, 5, 32_766, 32_767)
SESSION_MS = 6_000
TRANSACTION_MS = 1_000
LIARS = 24
PATIENCE_S = 90.0
"""A join waits for the other members of its group."""
IDS_MOST = 100_000
"""The number of ids of one kind."""
IDS_AT_ONCE = 50
NAMERS = 16

Lie = tuple[Any, int, Any]
"""Api, version, request."""


class Known:
    """Values that liars learned from responses, and use in wrong places."""

    def __init__(self) -> None:
        self.members: list[str] = []
        self.producers: list[tuple[int, int]] = []

    def learn(self, response: Any) -> None:
        """Keep the newest few ids."""
        if member := getattr(response, "member_id", ""):
            self.members[:] = [*self.members[-50:], member]
        if getattr(response, "producer_id", -1) >= 0 and hasattr(response, "producer_epoch"):
            known = (response.producer_id, response.producer_epoch)
            self.producers[:] = [*self.producers[-50:], known]


class Liar:
    """Makes one lie after the other."""

    def __init__(self, rng: random.Random, known: Known) -> None:
        self._rng = rng
        self._known = known
        self._kinds: tuple[Callable[[], Lie], ...] = (
            self._join,
            self._sync,
            self._heartbeat,
            self._leave,
            self._commit,
            self._consumer_heartbeat,
            self._init,
            self._add_partitions,
            self._add_offsets,
            self._commit_in_transaction,
            self._end,
            self._markers,
            self._produce,
        )

    def lie(self) -> Lie:
        return self._rng.choice(self._kinds)()

    # -- parts of lies -----------------------------------------------------------------------------

    def _group(self) -> str:
        return self._rng.choice(GROUPS)

    def _member(self) -> str:
        return self._rng.choice(["", "nobody", *self._known.members])

    def _instance(self) -> str | None:
        return self._rng.choice([None, None, "instance-1", "instance-2"])

    def _generation(self) -> int:
        return self._rng.choice((-1, 0, 1, 2, 3, 2**31 - 1))

    def _producer(self) -> tuple[int, int]:
        lies = [(-1, -1), (0, 0), (4711, 0), (2**63 - 1, 32_767)]
        producer_id, epoch = self._rng.choice([*self._known.producers, *lies])
        return producer_id, self._rng.choice((epoch, epoch, *EPOCHS))

    def _transactional_id(self) -> str:
        return self._rng.choice(TRANSACTIONAL_IDS)

    def _partition(self) -> int:
        return self._rng.choice((0, 1, 2, PARTITIONS, -1, 2**31 - 1))

    # -- groups ------------------------------------------------------------------------------------

    def _join(self) -> Lie:
        protocols = [
            JoinGroupRequestProtocol(name, self._rng.randbytes(self._rng.randrange(40)))
            for name in self._rng.sample(("range", "sticky", "none"), self._rng.randrange(4))
        ]
        kind = self._rng.choice(("consumer", "consumer", "connect", ""))
        member = self._member()
        request = JoinGroupRequest(
            self._group(), SESSION_MS, SESSION_MS, member, self._instance(), kind, protocols
        )
        return JOIN_GROUP, self._rng.choice((5, 9)), request

    def _sync(self) -> Lie:
        assignments = [
            SyncGroupRequestAssignment(self._member(), self._rng.randbytes(self._rng.randrange(50)))
            for _ in range(self._rng.randrange(4))
        ]
        member, generation = self._member(), self._generation()
        request = SyncGroupRequest(
            self._group(), generation, member, self._instance(), "consumer", "range", assignments
        )
        return SYNC_GROUP, 5, request

    def _heartbeat(self) -> Lie:
        request = HeartbeatRequest(
            self._group(), self._generation(), self._member(), self._instance()
        )
        return HEARTBEAT, 4, request

    def _leave(self) -> Lie:
        members = [MemberIdentity(self._member(), self._instance())] * self._rng.randrange(3)
        return LEAVE_GROUP, 5, LeaveGroupRequest(self._group(), "", members)

    def _commit(self) -> Lie:
        partition = OffsetCommitRequestPartition(self._partition(), self._rng.choice((-2, 0, 7)))
        topics = [OffsetCommitRequestTopic(self._rng.choice((VICTIM, "nowhere")))]
        topics[0].partitions = [partition]
        request = OffsetCommitRequest(
            self._group(), self._generation(), self._member(), self._instance(), -1, topics
        )
        return OFFSET_COMMIT, 8, request

    def _consumer_heartbeat(self) -> Lie:
        owned = TopicPartitions(self._rng.randbytes(16), [self._partition()])
        request = ConsumerGroupHeartbeatRequest(
            self._group(),
            self._member() or "made-up",
            self._rng.choice(EPOCHS),
            self._instance(),
            rebalance_timeout_ms=self._rng.choice((-1, SESSION_MS)),
            subscribed_topic_names=self._rng.choice((None, [], [VICTIM], ["nowhere"] * 3)),
            subscribed_topic_regex=self._rng.choice((None, "v.*", "(((((", "(a+)+$")),
            server_assignor=self._rng.choice((None, "range", "uniform", "nobody's")),
            topic_partitions=self._rng.choice((None, [], [owned, owned])),
        )
        return CONSUMER_GROUP_HEARTBEAT, 1, request

    # -- transactions ------------------------------------------------------------------------------

    def _init(self) -> Lie:
        producer_id, epoch = self._rng.choice(((-1, -1), self._producer()))
        name = self._rng.choice((None, "", self._transactional_id(), self._transactional_id()))
        return INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, TRANSACTION_MS, producer_id, epoch)

    def _add_partitions(self) -> Lie:
        producer_id, epoch = self._producer()
        topic = AddPartitionsToTxnTopic(self._rng.choice((VICTIM, "nowhere")), [self._partition()])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id(),
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[topic] * self._rng.randrange(3),
        )
        return ADD_PARTITIONS_TO_TXN, 3, request

    def _add_offsets(self) -> Lie:
        request = AddOffsetsToTxnRequest(self._transactional_id(), *self._producer(), self._group())
        return ADD_OFFSETS_TO_TXN, 3, request

    def _commit_in_transaction(self) -> Lie:
        producer_id, epoch = self._producer()
        partition = TxnOffsetCommitRequestPartition(self._partition(), 7)
        request = TxnOffsetCommitRequest(
            self._transactional_id(),
            self._group(),
            producer_id,
            epoch,
            self._generation(),
            self._member(),
            self._instance(),
            [TxnOffsetCommitRequestTopic(VICTIM, [partition])],
        )
        return TXN_OFFSET_COMMIT, self._rng.choice((3, 5)), request

    def _end(self) -> Lie:
        commits = self._rng.random() < 0.5
        request = EndTxnRequest(self._transactional_id(), *self._producer(), commits)
        return END_TXN, self._rng.choice((3, 4, 5)), request

    def _markers(self) -> Lie:
        producer_id, epoch = self._producer()
        topics = [WritableTxnMarkerTopic(VICTIM, [self._partition()])]
        marker = WritableTxnMarker(producer_id, epoch, self._rng.random() < 0.5, topics)
        marker.coordinator_epoch = self._rng.choice(EPOCHS)
        return WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest([marker] * self._rng.randrange(3))

    def _produce(self) -> Lie:
        producer_id, epoch = self._producer()
        is_transactional = self._rng.random() < 0.7
        records = batch(
            b"lie",
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self._rng.choice((-1, 0, 0, 1, 5, 2**31 - 1)),
            transactional=is_transactional,
            control=self._rng.random() < 0.05,
        )
        name = self._transactional_id() if self._rng.random() < 0.7 else None
        version = self._rng.choice((9, 12))
        data = topic_data(version, Named(VICTIM), (self._partition(), records))
        return PRODUCE, version, ProduceRequest(name, -1, 5_000, [data])


async def lie(target: Target, seed: int, duration_s: float) -> Sent:
    """Send lies: each gets a response; the liars share their knowledge."""
    await create_topic(target.broker.port, VICTIM, PARTITIONS)
    known = Known()
    sent = Sent()
    until_s = time.monotonic() + duration_s

    async def live(rng: random.Random) -> None:
        liar = Liar(rng, known)
        while time.monotonic() < until_s:
            async with await target.wire() as wire:
                for _ in range(rng.randrange(1, 50)):
                    if time.monotonic() > until_s or not await _tell(wire, liar, known, sent):
                        break

    try:
        async with asyncio.timeout(duration_s + PATIENCE_S):
            await asyncio.gather(*(live(random.Random(seed + each)) for each in range(LIARS)))
    except TimeoutError:
        target.violations.append("a lie was not answered")
    return sent


async def _tell(wire: Wire, liar: Liar, known: Known, sent: Sent) -> bool:
    """Send one lie; return whether the connection is still usable."""
    api, version, request = liar.lie()
    sent["lies"] += 1
    try:
        known.learn(await wire.ask(api, request, version))
    except ConnectionError:
        sent["lies refused by closing"] += 1
        return False
    return True


# ----------------------------------------------------------------------------------------- many ids


def _named_requests(number: int) -> list[bytes]:
    """A request of each kind that leaves a name with the broker."""
    name = f"one-of-many-{number}"
    topic = OffsetCommitRequestTopic(VICTIM, partitions=[OffsetCommitRequestPartition(0, number)])
    joining = ConsumerGroupHeartbeatRequest(
        f"{name}-consumers", name, 0, rebalance_timeout_ms=SESSION_MS
    )
    joining.subscribed_topic_names, joining.topic_partitions = [VICTIM], []
    protocol = JoinGroupRequestProtocol("range", b"")
    classic = JoinGroupRequest(
        f"{name}-classic", SESSION_MS, SESSION_MS, "", None, "consumer", [protocol]
    )
    return [
        frame(OFFSET_COMMIT, 8, OffsetCommitRequest(name, -1, "", None, -1, [topic])),
        frame(CONSUMER_GROUP_HEARTBEAT, 1, joining),
        # The response has its id, with which it would have to join again.
        frame(JOIN_GROUP, 5, classic),
        frame(HEARTBEAT, 4, HeartbeatRequest(f"{name}-heart", 1, "nobody")),
        frame(INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, TRANSACTION_MS)),
        frame(INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 0)),
    ]


async def name_many(target: Target, seed: int, duration_s: float) -> Sent:
    """Group, member, transactional and producer ids, each used once: at most 100,000 of a kind."""
    await create_topic(target.broker.port, VICTIM, 1)
    sent = Sent()
    until_s = time.monotonic() + duration_s
    ahead = iter(range(0, IDS_MOST, IDS_AT_ONCE))

    async def name_some() -> None:
        async with await target.connect() as peer:
            while time.monotonic() < until_s and (first := next(ahead, None)) is not None:
                numbers = range(first, first + IDS_AT_ONCE)
                requests = [each for number in numbers for each in _named_requests(number)]
                sending = asyncio.create_task(peer.send(b"".join(requests)))
                answers = await count_answers(peer, len(requests))
                await sending
                missing = len(requests) - answers
                target.expect(not missing, f"{missing} of {len(requests)} were not answered")
                sent["ids of each kind"] += IDS_AT_ONCE

    await asyncio.gather(*(name_some() for _ in range(NAMERS)))
    return sent


SCENARIOS = (
    Scenario("lies", lie, Limits(descriptors_left=100)),
    # Committed offsets and transactional ids are data: they stay until they expire.
    Scenario("many-ids", name_many, Limits(left_bytes=500 * MIB, descriptors_left=120)),
)
