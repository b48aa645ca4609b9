"""Sender of the markers of decided transactions to the brokers that lead their partitions.

Rules of this file:

* **No marker is sent before the decision is durable** (R2), nor after the shard was lost (R6).
  Later responses are ignored, since the new owner of the shard sends the markers again.
* **One request at a time for each broker**, with the markers of all waiting transactions, up to the
  number that either side handles in one turn of its loop.
* A request names the partition by its topic's ID and by the leader epoch, as this broker knows
  them. If the partition has another leader when the request arrives, or its topic was deleted and
  created again, the marker is refused (R10).
* **A refused marker is sent again until it is written.** Each attempt looks up the partition's
  leader. A broker that does not respond gets its waiting markers after a pause.
* **Only the MetaStore ends a pending marker without writing it** (R8). A topic that this broker, or
  the receiving broker, does not know is first looked up there. A look-up that starts after the
  decision sees every topic to which a producer can have written in this transaction.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from barnabas.broker.cluster.peers.interface import NoAnswer, Purpose
from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.runtime.turns import run_in_turns, turn_over
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
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.runtime.clock import Timer
    from barnabas.broker.runtime.host import Host
    from barnabas.coordinator.transactions.state import TopicPartition, Transaction
    from barnabas.storage.journal.refusal import Refusal
    from barnabas.storage.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

VERSION: Final = 2
"""Version of WriteTxnMarkers: the first that carries the transaction's version (KIP-1228)."""
MARKERS_PER_REQUEST_MAX: Final = 256
"""Maximum number of markers that either side handles in one turn of its loop."""
REQUEST_BYTES_MAX: Final = 64 * 1024
"""Approximate maximum size of a request, since topic names can be long."""
_MARKER_BYTES: Final = 64
"""Maximum size of a marker in a request, without its topic's name."""
TIMEOUT_MS: Final = 30_000
"""Timeout, in milliseconds, as Kafka's ``request.timeout.ms``."""
AGAIN_MS: Final = 100
AGAIN_MAX_MS: Final = 1000
"""Pauses, in milliseconds, before a marker is sent again: the first, and the maximum."""


class Shard(Protocol):
    """A coordinator's partition, with the identity and the log that this file needs."""

    @property
    def log(self) -> PartitionLog:
        """Return the log of the partition."""


ShardT = TypeVar("ShardT", bound=Shard)
ShardT_contra = TypeVar("ShardT_contra", bound=Shard, contravariant=True)


class Owner(Protocol[ShardT_contra]):
    """Coordinator of the transactions."""

    def answered(
        self, shard: ShardT_contra, key: str, placed: list[TopicPartition], refused: str
    ) -> None:
        """Record the partitions that have their marker, or need none.

        ``refused`` is the reason why a marker was not written, or empty: request it again later.
        """


class Counts(Protocol):
    """Counters of the coordinator that include the markers for other brokers."""

    markers_delayed: int
    markers_written: int


class _Debt(Generic[ShardT]):
    """Decided transaction with pending markers for partitions that other brokers lead."""

    __slots__ = ("held", "is_durable", "is_gone", "key", "led_by", "shard", "transaction", "waits")

    def __init__(self, shard: ShardT, transaction: Transaction, *, is_durable: bool) -> None:
        self.shard = shard
        """Partition of the coordinator."""
        self.key = transaction.transactional_id
        self.transaction = transaction
        self.is_durable = is_durable
        """Whether the decision is durable."""
        self.is_gone = False
        """Whether the shard was lost, or all markers are written: responses are ignored."""
        self.led_by: dict[TopicPartition, int] = {}
        """Node ID of the broker that leads each partition with a pending marker."""
        self.waits: set[TopicPartition] = set()
        """Partitions whose markers will be reported without another request from the owner."""
        self.held: list[TopicPartition] = []
        """Partitions of ``waits`` whose markers are sent once the decision is durable."""


class _Owed(NamedTuple, Generic[ShardT]):
    """Pending marker."""

    debt: _Debt[ShardT]
    place: TopicPartition


class _Named(NamedTuple):
    """Name and ID of a partition's topic, and the partition's leader."""

    topic: str
    topic_id: bytes
    node_id: int
    leader_epoch: int


class _Node(Generic[ShardT]):
    """Queue of the markers for one broker."""

    __slots__ = ("attempts", "is_asked", "is_scheduled", "node_id", "pause", "version", "waiting")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.waiting: deque[_Owed[ShardT]] = deque()
        self.is_scheduled = False
        self.is_asked = False
        """Whether a request is in flight."""
        self.attempts = 0
        """Number of unanswered requests since the last response."""
        self.pause: Timer | None = None
        self.version: tuple[int, int] | None = None
        """Version of the view and catalogue at which the leaders of the waiting markers were
        checked."""


class RemoteMarkers(Generic[ShardT]):
    """Pending markers of one coordinator for other brokers."""

    def __init__(
        self,
        host: Host,
        catalogue: Catalogue,
        view: ClusterView,
        peers: Peers,
        counts: Counts,
    ) -> None:
        self._host = host
        self._catalogue = catalogue
        self._view = view
        self._peers = peers
        self._counts = counts
        self._owner: Owner[ShardT]
        self._debts: dict[str, _Debt[ShardT]] = {}
        self._nodes: dict[int, _Node[ShardT]] = {}
        self._absent: list[_Owed[ShardT]] = []
        """Markers whose topic is to be looked up in the MetaStore."""
        self._is_looking = False
        self._closed = False

    def belongs_to(self, owner: Owner[ShardT]) -> None:
        """Report all later results to ``owner``."""
        self._owner = owner

    # ----------------------------------------------------------------------------------- the owner

    def takes(self, shard: ShardT, transaction: Transaction, place: TopicPartition) -> bool:
        """Take charge of a pending marker; return False if this broker must write it.

        The owner is notified later, never during this call. A marker that was taken already is not
        sent twice.
        """
        partition = self._catalogue.partition(*place)
        if partition is None:
            debt = self._debt(shard, transaction)
            if debt is not None and place not in debt.waits:
                debt.waits.add(place)
                self._find_topic(_Owed(debt, place))
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
        """Drop a transaction that has no pending markers any more."""
        debt = self._debts.pop(key, None)
        if debt is not None:
            debt.is_gone = True

    def forget(self, shard: ShardT) -> None:
        """Stop sending the markers of a partition that was lost (R6)."""
        for key in [key for key, debt in self._debts.items() if debt.shard is shard]:
            self.done(key)
        for node in self._nodes.values():
            node.waiting = deque(owed for owed in node.waiting if not owed.debt.is_gone)

    def close(self) -> None:
        """Stop sending, since the broker stops."""
        self._closed = True
        for node in self._nodes.values():
            node.waiting.clear()
            if node.pause is not None:
                node.pause.cancel()
        for key in [*self._debts]:
            self.done(key)

    def owed_by_node(self) -> dict[int, int]:
        """Return the number of pending markers by the node ID of the partitions' leader."""
        return Counter(chain.from_iterable(e.led_by.values() for e in self._debts.values()))

    # ---------------------------------------------------------------------------- the decision (R2)

    def _debt(self, shard: ShardT, transaction: Transaction) -> _Debt[ShardT] | None:
        """Return a transaction's pending markers, or None if its durability is not known."""
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

    def is_decided(self, debt: _Debt[ShardT]) -> None:
        """Send the held markers, since their decision is durable."""
        debt.is_durable = True
        held, debt.held = debt.held, []
        if not debt.is_gone:
            for place in held:
                self._queue(debt.led_by[place], _Owed(debt, place))

    def was_refused(self, debt: _Debt[ShardT]) -> None:
        """Drop the markers, since the decision may be lost; its shard is lost, or requests them
        again.
        """
        if debt.is_gone:
            return
        self.done(debt.key)
        self._owner.answered(debt.shard, debt.key, [], "the journal group was refused")

    # ------------------------------------------------------------------------------------- sending

    def _queue(self, node_id: int, owed: _Owed[ShardT]) -> None:
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = _Node(node_id)
        node.waiting.append(owed)
        self._schedule(node)

    def _schedule(self, node: _Node[ShardT]) -> None:
        """Schedule a request for the end of this turn, so that it includes later markers."""
        if node.waiting and not (node.is_scheduled or node.is_asked or node.pause is not None):
            node.is_scheduled = True
            self._host.loop.call_soon(self._send, node)

    def _send(self, node: _Node[ShardT]) -> None:
        node.is_scheduled = False
        if self._closed:
            return
        sent, names = self._next_of(node)
        if not sent:
            self._schedule(node)
            return
        node.is_asked = True
        self._peers.ask(
            node.node_id,
            Purpose.MARKERS,
            WRITE_TXN_MARKERS,
            VERSION,
            _request(sent, names),
            partial(self._answered, node, sent),
            timeout_ms=TIMEOUT_MS,
        )

    def _next_of(self, node: _Node[ShardT]) -> tuple[list[_Owed[ShardT]], list[_Named]]:
        """Remove and return the markers of the next request, with their current leaders."""
        sent, names = [], []
        left_bytes = REQUEST_BYTES_MAX
        for _ in range(min(MARKERS_PER_REQUEST_MAX, len(node.waiting))):
            owed = node.waiting.popleft()
            named = None if owed.debt.is_gone else self._named(node, owed)
            if named is not None:
                sent.append(owed)
                names.append(named)
                left_bytes -= len(named.topic) + _MARKER_BYTES
                if left_bytes <= 0:
                    break
        return sent, names

    def _named(self, node: _Node[ShardT], owed: _Owed[ShardT]) -> _Named | None:
        """Return the names and leader of a partition for a request to its leader.

        Returns None, after handling it, if the partition has another leader or is not known any
        more.
        """
        partition = self._catalogue.partition(*owed.place)
        if partition is None:
            self._find_topic(owed)
            return None
        leader = self._view.leader_of(partition.partition_id)
        if leader.node_id != node.node_id:
            owed.debt.waits.discard(owed.place)
            self._notify(owed.debt, [], f"{_name(owed.place)}: has another leader now")
            return None
        return _Named(owed.place.topic, partition.topic.topic_id, *leader)

    # ----------------------------------------------------------------------------------- responses

    def _answered(
        self,
        node: _Node[ShardT],
        sent: list[_Owed[ShardT]],
        answer: WriteTxnMarkersResponse | NoAnswer,
    ) -> None:
        node.is_asked = False
        if self._closed:
            return
        if isinstance(answer, NoAnswer):
            self._counts.markers_delayed += len(sent)
            node.waiting.extendleft(owed for owed in reversed(sent) if not owed.debt.is_gone)
            self._wait(node, answer)
            return
        node.attempts = 0
        errors = _errors_of(answer)
        placed: defaultdict[_Debt[ShardT], list[TopicPartition]] = defaultdict(list)
        refused: dict[_Debt[ShardT], str] = {}
        for debt, place in sent:
            if debt.is_gone:
                continue
            missing = ErrorCode.UNKNOWN_SERVER_ERROR
            error = errors.get((debt.transaction.producer_id, *place), missing)
            if error == ErrorCode.NONE:
                debt.waits.discard(place)
                placed[debt].append(place)
            elif error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._find_topic(_Owed(debt, place))
            else:
                debt.waits.discard(place)
                self._counts.markers_delayed += 1
                refused[debt] = f"{_name(place)} at broker {node.node_id}: {ErrorCode(error).name}"
        for debt in {**placed, **refused}:
            self._counts.markers_written += len(placed[debt])
            self._notify(debt, placed[debt], refused.get(debt, ""))
        self._schedule(node)
        self._host.flush_answers()

    def _notify(self, debt: _Debt[ShardT], placed: list[TopicPartition], refused: str) -> None:
        """Notify the owner, unless an earlier notification has ended the transaction."""
        if not debt.is_gone:
            for place in placed:
                debt.led_by.pop(place, None)
            self._owner.answered(debt.shard, debt.key, placed, refused)

    def _wait(self, node: _Node[ShardT], answer: NoAnswer) -> None:
        """Schedule another request to a broker that did not respond."""
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

    def _resume(self, node: _Node[ShardT]) -> None:
        node.pause = None
        version = self._view.version, self._catalogue.topics_version
        if version != node.version:
            node.version = version
            run_in_turns(self._host.loop, self._divide(node))
        self._schedule(node)

    def _divide(self, node: _Node[ShardT]) -> Iterator[None]:
        """Look up the leaders of a broker's waiting markers again, in slices of the loop."""
        for _ in range(len(node.waiting)):
            if not node.waiting:  # The others were sent meanwhile.
                return
            owed = node.waiting.popleft()
            if not owed.debt.is_gone and self._named(node, owed) is not None:
                node.waiting.append(owed)
            yield

    # -------------------------------------------------------------------- absent topics

    def _find_topic(self, owed: _Owed[ShardT]) -> None:
        """Find out whether a topic was deleted, or this or another broker does not know it yet."""
        self._absent.append(owed)
        if not self._is_looking:
            self._is_looking = True
            self._host.spawn(self._find_topics(), "look for the topics of transactions")

    async def _find_topics(self) -> None:
        while self._absent:
            absent, self._absent = self._absent, []
            failure = ""
            try:
                await self._catalogue.catch_up()
            except KafkaError as error:
                failure = f": the MetaStore is unavailable, {error.code.name}"
            for number, (debt, place) in enumerate(absent, start=1):
                if number % MARKERS_PER_REQUEST_MAX == 0:
                    await turn_over()
                debt.waits.discard(place)
                if not failure and self._catalogue.partition(*place) is None:
                    self._notify(debt, [place], "")
                else:
                    where = f" at broker {debt.led_by[place]}" if place in debt.led_by else ""
                    self._notify(debt, [], f"{_name(place)}{where} is not known{failure}")
        self._is_looking = False
        self._host.flush_answers()


class _Decided(Generic[ShardT]):
    """Waits for a decision to be durable."""

    __slots__ = ("_debt", "_markers")

    def __init__(self, markers: RemoteMarkers[ShardT], debt: _Debt[ShardT]) -> None:
        self._markers = markers
        self._debt = debt

    def durable(self) -> None:
        """Send the markers."""
        self._markers.is_decided(self._debt)

    def refused(self, _refusal: Refusal) -> None:
        """Drop the markers."""
        self._markers.was_refused(self._debt)


def _request(sent: list[_Owed[ShardT]], names: list[_Named]) -> WriteTxnMarkersRequest:
    markers: dict[_Debt[ShardT], dict[_Named, list[int]]] = {}
    for (debt, place), named in zip(sent, names, strict=True):
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
