"""Sends the markers of decided transactions to the brokers that lead their partitions.

Rules of this file:

* **Nothing leaves before the decision is durable** (R2), and nothing for a transaction whose shard
  was lost (R6); what is answered after that is ignored: whoever has the shard now asks anew.
* **One request at a time for each broker**, with the markers of as many transactions as wait for
  it: as many as either side handles in one turn of its loop.
* A request names the partition as it is known here: by its topic's id and by the leader epoch. What
  is still on its way when the partition has another leader, or its topic was deleted and made anew,
  is refused (R10).
* **What is refused is sent again for ever**, and who leads the partition is looked up each time. A
  broker that does not answer is asked after a pause, with everything that waits for it.
* **The MetaStore alone ends a debt without a marker** (R8). What is not known here, or not where it
  was sent, is looked for there first: a look that begins after the decision sees every topic that a
  producer can have written to in this transaction.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.broker.cluster.peers.interface import NoAnswer, Purpose
from barnabas.broker.cluster.view import NO_NODE
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.cluster.peers.interface import Peers
    from barnabas.broker.cluster.view import ClusterView
    from barnabas.broker.coordination.shard import Shard
    from barnabas.broker.coordination.transaction_events import TransactionCounts
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.runtime.clock import Timer
    from barnabas.broker.runtime.host import Host
    from barnabas.coordinator.transactions.shard import TransactionShard
    from barnabas.coordinator.transactions.state import TopicPartition, Transaction
    from barnabas.storage.journal.refusal import Refusal

logger = logging.getLogger(__name__)

VERSION: Final = 2
"""Of WriteTxnMarkers: the first that says of which version the transaction is (KIP-1228)."""
MARKERS_PER_REQUEST_MAX: Final = 256
"""What either side handles in one turn of its loop."""
REQUEST_BYTES_MAX: Final = 64 * 1024
"""About what a request may take: names of topics may be long."""
_MARKER_BYTES: Final = 64
"""What a marker takes at most, but for its topic's name."""
TIMEOUT_MS: Final = 30_000
"""Kafka's ``request.timeout.ms``."""
AGAIN_MS: Final = 100
AGAIN_MAX_MS: Final = 1000
"""How soon what could not be written is tried again: at first, and after many attempts."""


class Owner(Protocol):
    """Whose transactions they are."""

    def answered(
        self, shard: Shard[TransactionShard], key: str, placed: list[TopicPartition], refused: str
    ) -> None:
        """Take note of partitions that have their marker, or need none.

        ``refused`` says what happened to one that was refused: ask for it again, later. Empty where
        none was.
        """


class _Debt:
    """A decided transaction that owes markers to partitions that are led elsewhere."""

    __slots__ = ("held", "is_durable", "is_gone", "key", "led_by", "shard", "transaction", "waits")

    def __init__(
        self, shard: Shard[TransactionShard], transaction: Transaction, *, is_durable: bool
    ) -> None:
        self.shard = shard
        self.key = transaction.transactional_id
        self.transaction = transaction
        self.is_durable = is_durable
        """Whether the decision is."""
        self.is_gone = False
        """Whether the shard was lost, or nothing is owed any more: answers are ignored."""
        self.led_by: dict[TopicPartition, int] = {}
        """Which broker was found to lead each partition that is owed a marker."""
        self.waits: set[TopicPartition] = set()
        """Those of them that will be heard of again without being asked for once more."""
        self.held: list[TopicPartition] = []
        """Those of these whose markers leave once the decision is durable."""


class _Owed(NamedTuple):
    """One marker."""

    debt: _Debt
    place: TopicPartition


class _Named(NamedTuple):
    """How a request names the topic of a partition, and who leads that."""

    topic: str
    topic_id: bytes
    node_id: int
    leader_epoch: int


class _Node:
    """What one broker is sent."""

    __slots__ = ("attempts", "is_asked", "is_scheduled", "node_id", "pause", "version", "waiting")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.waiting: deque[_Owed] = deque()
        self.is_scheduled = False
        self.is_asked = False
        """Whether a request is on its way."""
        self.attempts = 0
        """How often it was asked in vain since its last answer."""
        self.pause: Timer | None = None
        self.version: tuple[int, int] | None = None
        """Of what was known of the cluster when it was last found to have what waits for it."""


class RemoteMarkers:
    """The markers of one coordinator that other brokers have to write."""

    def __init__(
        self,
        host: Host,
        catalogue: Catalogue,
        view: ClusterView,
        peers: Peers,
        counts: TransactionCounts,
    ) -> None:
        self._host = host
        self._catalogue = catalogue
        self._view = view
        self._peers = peers
        self._counts = counts
        self._owner: Owner
        self._debts: dict[str, _Debt] = {}
        self._nodes: dict[int, _Node] = {}
        self._absent: list[_Owed] = []
        """Those whose topic is to be looked for in the MetaStore."""
        self._is_looking = False
        self._closed = False

    def belongs_to(self, owner: Owner) -> None:
        """Tell ``owner`` of all answers from now on."""
        self._owner = owner

    # ----------------------------------------------------------------------------------- its owner

    def takes(
        self, shard: Shard[TransactionShard], transaction: Transaction, place: TopicPartition
    ) -> bool:
        """See to a marker that is owed, unless it is to be written here; False then.

        Its owner is told of it later, never from inside of this. What was taken already is not
        sent twice.
        """
        partition = self._catalogue.partition(*place)
        if partition is None:
            debt = self._debt(shard, transaction)
            if debt is not None and place not in debt.waits:
                debt.waits.add(place)
                self._look_for(_Owed(debt, place))
            return debt is not None
        if partition.log is not None:
            return False
        node_id = self._view.leader_of(partition.partition_id).node_id
        if node_id in {NO_NODE, self._view.node_id}:
            return False
        debt = self._debt(shard, transaction)
        if debt is None:
            return False
        if place not in debt.waits:
            debt.waits.add(place)
            debt.led_by[place] = node_id
            if debt.is_durable:
                self._queue(node_id, _Owed(debt, place))
            else:
                debt.held.append(place)
        return True

    def done(self, key: str) -> None:
        """Drop a transaction that owes nothing any more."""
        debt = self._debts.pop(key, None)
        if debt is not None:
            debt.is_gone = True

    def forget(self, shard: Shard[TransactionShard]) -> None:
        """Send nothing more for a partition that was lost (R6)."""
        for key in [key for key, debt in self._debts.items() if debt.shard is shard]:
            self.done(key)
        for node in self._nodes.values():
            node.waiting = deque(owed for owed in node.waiting if not owed.debt.is_gone)

    def close(self) -> None:
        """Send nothing more: the broker ends."""
        self._closed = True
        for node in self._nodes.values():
            node.waiting.clear()
            if node.pause is not None:
                node.pause.cancel()
        for key in [*self._debts]:
            self.done(key)

    def owed_by_node(self) -> dict[int, int]:
        """How many markers are owed to the partitions that each other broker leads."""
        return Counter(chain.from_iterable(e.led_by.values() for e in self._debts.values()))

    # ---------------------------------------------------------------------------- the decision (R2)

    def _debt(self, shard: Shard[TransactionShard], transaction: Transaction) -> _Debt | None:
        """What is known of a transaction; None where nobody can tell whether it is durable."""
        key = transaction.transactional_id
        debt = self._debts.get(key)
        if debt is not None:
            return debt
        log = shard.log
        if log.closed:
            return None
        if log.high_watermark == log.next_offset:
            debt = self._debts[key] = _Debt(shard, transaction, is_durable=True)
            return debt
        # Groups become durable in order: with the newest one the decision is, too.
        group = self._catalogue.journal.newest_group()
        if group is None:
            return None
        debt = self._debts[key] = _Debt(shard, transaction, is_durable=False)
        group.add_waiter(_Decided(self, debt))
        return debt

    def is_decided(self, debt: _Debt) -> None:
        """Let the markers leave whose decision is durable."""
        debt.is_durable = True
        held, debt.held = debt.held, []
        if not debt.is_gone:
            for place in held:
                self._queue(debt.led_by[place], _Owed(debt, place))

    def was_refused(self, debt: _Debt) -> None:
        """Send nothing: the decision may have come to nothing. Its shard is lost, or asks again."""
        if debt.is_gone:
            return
        self.done(debt.key)
        self._owner.answered(debt.shard, debt.key, [], "the journal group was refused")

    # ------------------------------------------------------------------------------------- sending

    def _queue(self, node_id: int, owed: _Owed) -> None:
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = _Node(node_id)
        node.waiting.append(owed)
        self._schedule(node)

    def _schedule(self, node: _Node) -> None:
        """Send what waits at the end of this turn, in which more may come."""
        if node.waiting and not (node.is_scheduled or node.is_asked or node.pause is not None):
            node.is_scheduled = True
            self._host.loop.call_soon(self._send, node)

    def _send(self, node: _Node) -> None:
        node.is_scheduled = False
        if self._closed:
            return
        asked, names = self._next_of(node)
        if not asked:
            self._schedule(node)
            return
        node.is_asked = True
        self._peers.ask(
            node.node_id,
            Purpose.MARKERS,
            WRITE_TXN_MARKERS,
            VERSION,
            _request(asked, names),
            partial(self._answered, node, asked),
            timeout_ms=TIMEOUT_MS,
        )

    def _next_of(self, node: _Node) -> tuple[list[_Owed], list[_Named]]:
        """Take out what the next request consists of; look up who leads it now."""
        asked, names = [], []
        left_bytes = REQUEST_BYTES_MAX
        for _ in range(min(MARKERS_PER_REQUEST_MAX, len(node.waiting))):
            owed = node.waiting.popleft()
            named = None if owed.debt.is_gone else self._named(node, owed)
            if named is not None:
                asked.append(owed)
                names.append(named)
                left_bytes -= len(named.topic) + _MARKER_BYTES
                if left_bytes <= 0:
                    break
        return asked, names

    def _named(self, node: _Node, owed: _Owed) -> _Named | None:
        """How to name a partition to the broker that leads it.

        Where that is another one now, or the partition is not known any more, that is seen to, and
        None is returned.
        """
        partition = self._catalogue.partition(*owed.place)
        if partition is None:
            self._look_for(owed)
            return None
        leader = self._view.leader_of(partition.partition_id)
        if leader.node_id != node.node_id:
            owed.debt.waits.discard(owed.place)
            self._tell(owed.debt, [], f"{_name(owed.place)}: has another leader now")
            return None
        return _Named(owed.place.topic, partition.topic.topic_id, *leader)

    # ------------------------------------------------------------------------------------- answers

    def _answered(
        self, node: _Node, asked: list[_Owed], answer: WriteTxnMarkersResponse | NoAnswer
    ) -> None:
        node.is_asked = False
        if self._closed:
            return
        if isinstance(answer, NoAnswer):
            self._counts.markers_delayed += len(asked)
            node.waiting.extendleft(owed for owed in reversed(asked) if not owed.debt.is_gone)
            self._wait(node, answer)
            return
        node.attempts = 0
        errors = _errors_of(answer)
        placed: defaultdict[_Debt, list[TopicPartition]] = defaultdict(list)
        refused: dict[_Debt, str] = {}
        for debt, place in asked:
            if debt.is_gone:
                continue
            missing = ErrorCode.UNKNOWN_SERVER_ERROR
            error = errors.get((debt.transaction.producer_id, *place), missing)
            if error == ErrorCode.NONE:
                debt.waits.discard(place)
                placed[debt].append(place)
            elif error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._look_for(_Owed(debt, place))
            else:
                debt.waits.discard(place)
                self._counts.markers_delayed += 1
                refused[debt] = f"{_name(place)} at broker {node.node_id}: {ErrorCode(error).name}"
        for debt in {**placed, **refused}:
            self._counts.markers_written += len(placed[debt])
            self._tell(debt, placed[debt], refused.get(debt, ""))
        self._schedule(node)
        self._host.flush_answers()

    def _tell(self, debt: _Debt, placed: list[TopicPartition], refused: str) -> None:
        """Tell the owner, unless what it was told before has ended the debt."""
        if not debt.is_gone:
            for place in placed:
                debt.led_by.pop(place, None)
            self._owner.answered(debt.shard, debt.key, placed, refused)

    def _wait(self, node: _Node, answer: NoAnswer) -> None:
        """Ask a broker again later that has not answered."""
        node.attempts += 1
        if node.waiting and node.attempts & (node.attempts - 1) == 0:  # 1, 2, 4, 8 ...
            logger.warning(
                "transactions wait for the markers of a broker node=%d markers=%d id=%s "
                "attempts=%d reason=%s: %s",
                node.node_id,
                len(node.waiting),
                node.waiting[0].debt.key,
                node.attempts,
                answer.failure.name,
                answer.reason,
            )
        delay_ms = min(AGAIN_MS * node.attempts, AGAIN_MAX_MS)
        node.pause = self._host.clock.call_later(delay_ms, self._resume, node)

    def _resume(self, node: _Node) -> None:
        node.pause = None
        version = self._view.version, self._catalogue.topics_version
        if version != node.version:
            node.version = version
            self._divide(node, len(node.waiting))
        self._schedule(node)

    def _divide(self, node: _Node, left: int) -> None:
        """Look up anew who leads what waits for a broker, some in each turn."""
        left = min(left, len(node.waiting))
        for _ in range(min(left, MARKERS_PER_REQUEST_MAX)):
            owed = node.waiting.popleft()
            if not owed.debt.is_gone and self._named(node, owed) is not None:
                node.waiting.append(owed)
        if left > MARKERS_PER_REQUEST_MAX and not self._closed:
            self._host.loop.call_soon(self._divide, node, left - MARKERS_PER_REQUEST_MAX)

    # -------------------------------------------------------------------- topics that are not there

    def _look_for(self, owed: _Owed) -> None:
        """Find out whether a topic was deleted, or is only not known yet, here or elsewhere."""
        self._absent.append(owed)
        if not self._is_looking:
            self._is_looking = True
            self._host.spawn(self._look(), "look for the topics of transactions")

    async def _look(self) -> None:
        while self._absent:
            absent, self._absent = self._absent, []
            failure = ""
            try:
                await self._catalogue.catch_up()
            except KafkaError as error:
                failure = f": the MetaStore cannot be asked, {error.code.name}"
            for number, (debt, place) in enumerate(absent, start=1):
                if number % MARKERS_PER_REQUEST_MAX == 0:
                    await self._host.clock.sleep(0)
                debt.waits.discard(place)
                if not failure and self._catalogue.partition(*place) is None:
                    self._tell(debt, [place], "")
                else:
                    where = f" at broker {debt.led_by[place]}" if place in debt.led_by else ""
                    self._tell(debt, [], f"{_name(place)}{where} is not known{failure}")
        self._is_looking = False
        self._host.flush_answers()


class _Decided:
    """Waits for a decision to be durable."""

    __slots__ = ("_debt", "_markers")

    def __init__(self, markers: RemoteMarkers, debt: _Debt) -> None:
        self._markers = markers
        self._debt = debt

    def durable(self) -> None:
        """Let its markers leave."""
        self._markers.is_decided(self._debt)

    def refused(self, _refusal: Refusal) -> None:
        """Let none leave."""
        self._markers.was_refused(self._debt)


def _request(asked: list[_Owed], names: list[_Named]) -> WriteTxnMarkersRequest:
    markers: dict[_Debt, dict[_Named, list[int]]] = {}
    for (debt, place), named in zip(asked, names, strict=True):
        markers.setdefault(debt, {}).setdefault(named, []).append(place.partition)
    return WriteTxnMarkersRequest(
        [
            WritableTxnMarker(
                debt.transaction.producer_id,
                debt.transaction.producer_epoch,
                debt.transaction.commits,
                [
                    WritableTxnMarkerTopic(name.topic, indexes, name.leader_epoch, name.topic_id)
                    for name, indexes in topics.items()
                ],
                debt.shard.log.leader_epoch,
                debt.transaction.transaction_version,
            )
            for debt, topics in markers.items()
        ]
    )


def _errors_of(answer: WriteTxnMarkersResponse) -> dict[tuple[int, str, int], int]:
    return {
        (marker.producer_id, topic.name, partition.partition_index): partition.error_code
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    }


def _name(place: TopicPartition) -> str:
    return f"{place.topic}-{place.partition}"
