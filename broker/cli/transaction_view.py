"""Transactions as a client can query them, at their coordinators and at partition leaders.

A partition's leader knows the producer ids with an open transaction, and its first offset; the
coordinators know the transactional id of a producer id, and the state of the transaction. A
transaction that is open on a partition and unknown to every coordinator hangs: only an operator can
end it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from barnabas.broker.admin.exchange import (
    Partition,
    Rejected,
    TopicPartition,
    by_leader,
    check,
    gathered,
    partition_text,
)
from barnabas.broker.admin.offsets import LATEST, offsets_at
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.output import duration_text
from barnabas.broker.cli.retries import may_pass
from barnabas.broker.client.brokers import TRANSACTION
from barnabas.broker.client.connection import Connection
from barnabas.broker.client.errors import Unreachable
from barnabas.broker.metadata.topic_names import TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    ProducerState,
    TopicRequest,
)
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
    TransactionState,
)
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from barnabas.storage.runtime.clock import now_ns

T = TypeVar("T")

ONGOING: Final = "Ongoing"
PREPARED: Final = ("PrepareCommit", "PrepareAbort")
OPEN_STATES: Final = (ONGOING, *PREPARED)
HANGING: Final = "hanging"
"""State of a transaction that no coordinator knows."""
NEVER_MS: Final = 2**31 - 1
"""The timeout of a transaction that is decided elsewhere (KIP-939)."""

_DURATION_SINCE: Final = 1
_PATTERN_SINCE: Final = 2
_PER_REQUEST: Final = 1000
"""Maximum number of transactional ids, producer ids and partitions in one request."""


class Place(NamedTuple):
    """A partition that takes part in a transaction."""

    topic: str
    partition: int


@dataclass(frozen=True)
class Transaction:
    """One transactional id, as its coordinator describes it.

    ``start_time_ms`` and ``age_ms`` are ``None`` if no transaction is open, and ``remaining_ms``,
    until the broker aborts it, also of one that has no timeout or is decided. ``client`` and
    ``host`` used the id last, and are ``None`` if the broker does not report them.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    age_ms: int | None
    remaining_ms: int | None
    coordinator: int
    client: str | None
    host: str | None
    partitions: list[Place]

    @property
    def is_open(self) -> bool:
        """Whether the transaction has not ended on all partitions."""
        return self.state in OPEN_STATES

    @property
    def age_text(self) -> str | None:
        """Age as text, or ``None`` if no transaction is open."""
        return None if self.age_ms is None else duration_text(self.age_ms)

    @property
    def client_text(self) -> str | None:
        """Client id, or ``None`` if it is empty or not known."""
        return self.client or None

    @property
    def partition_count(self) -> int:
        """Number of its partitions."""
        return len(self.partitions)


class Filters(NamedTuple):
    """Filters of transactional ids."""

    states: Sequence[str] = ()
    producer_ids: Sequence[int] = ()
    longer_than_ms: int = -1
    pattern: str | None = None


class Listing(NamedTuple):
    """Transactions listed by coordinators."""

    transactions: list[Transaction]
    unreached: Mapping[int, Unreachable | Rejected]
    """Errors by node ID of the brokers whose transactions are missing."""
    has_moved: bool
    """Whether a transaction had no coordinator, or changed it during the request, and may be
    missing."""

    def check(self) -> None:
        """Raise Unreachable or Rejected if the listing is incomplete."""
        for problem in self.unreached.values():
            raise problem
        if self.has_moved:
            words = "coordinators have moved while they were asked"
            raise Rejected("transactions", ErrorCode.NOT_COORDINATOR, words)


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that is open on a partition, as the partition's leader knows it.

    ``transaction`` is ``None`` of one that hangs.
    """

    start_offset: int
    producer_id: int
    producer_epoch: int
    last_timestamp_ms: int
    hanging: bool
    transaction: Transaction | None


@dataclass(frozen=True)
class HeldPartition:
    """A partition whose ``read_committed`` consumers wait for the first of its transactions."""

    topic: str
    partition: int
    stable_offset: int
    end_offset: int
    transactions: list[OpenTransaction]


# ----------------------------------------------------------------------------------- coordinators


def list_transactions(cluster: Cluster, filters: Filters) -> list[Transaction]:
    """Return the transactional ids of all brokers that pass every filter, in order.

    Raises Unreachable and Rejected.
    """
    listing = list_reachable(cluster, filters)
    listing.check()
    return listing.transactions


def list_reachable(cluster: Cluster, filters: Filters) -> Listing:
    """Return the transactional IDs of the reachable brokers; raises final errors."""
    before = _coordinators(cluster)
    found: dict[str, Transaction] = {}
    unreached: dict[int, Unreachable | Rejected] = {}
    for node_id in cluster.node_ids:
        try:
            broker = cluster.node(node_id)
            for each in _describe(broker, node_id, _list(broker, filters)):
                if _passes(each, filters):
                    found[each.transactional_id] = each
        except (Unreachable, Rejected) as problem:
            if not may_pass(problem):
                raise
            unreached[node_id] = problem
    has_moved = any(leader_id < 0 for leader_id, _ in before) or _coordinators(cluster) != before
    return Listing([found[each] for each in sorted(found)], unreached, has_moved)


def _coordinators(cluster: Cluster) -> list[tuple[int, int]]:
    """Return node and epoch of the coordinator of each partition, or nothing if that is not
    visible.
    """
    (topic,) = cluster.topics([TRANSACTION_STATE])
    return [(each.leader_id, each.leader_epoch) for each in topic.partitions]


def _list(broker: Connection, filters: Filters) -> list[str]:
    if filters.longer_than_ms >= 0 and not broker.speaks(LIST_TRANSACTIONS, _DURATION_SINCE):
        raise CommandError(f"{broker.name}: does not support filters by duration")
    if filters.pattern is not None and not broker.speaks(LIST_TRANSACTIONS, _PATTERN_SINCE):
        raise CommandError(f"{broker.name}: does not support filters by pattern")
    request = ListTransactionsRequest(
        list(filters.states), list(filters.producer_ids), filters.longer_than_ms, filters.pattern
    )
    response = broker.ask(LIST_TRANSACTIONS, request)
    check("transactions", response.error_code)
    for name in response.unknown_state_filters:
        raise CommandError(f"{name}: no transaction is ever in this state", USAGE)
    return [each.transactional_id for each in response.transaction_states]


def _passes(transaction: Transaction, filters: Filters) -> bool:
    """Return whether a transaction, listed a moment ago, still passes the filters.

    Kafka's filter by duration also passes transactions that are not open.
    """
    return (not filters.states or transaction.state in filters.states) and (
        filters.longer_than_ms < 0 or transaction.is_open
    )


def describe_transactions(cluster: Cluster, ids: Sequence[str]) -> list[Transaction]:
    """Describe transactional ids, in their order; raises Rejected."""
    nodes = cluster.coordinator_ids(TRANSACTION, ids)
    by_node = gathered((node_id, key) for key, node_id in nodes.items())
    found = {
        each.transactional_id: each
        for node_id, keys in by_node.items()
        for each in _describe(cluster.node(node_id), node_id, keys)
    }
    for key in ids:
        if key not in found:
            raise Rejected(key, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return [found[key] for key in ids]


def _describe(broker: Connection, node_id: int, ids: Iterable[str]) -> Iterator[Transaction]:
    """Describe the ids that exist, and leave out the others."""
    for keys in _batched(ids):
        request = DescribeTransactionsRequest(list(keys))
        for each in broker.ask(DESCRIBE_TRANSACTIONS, request).transaction_states:
            if each.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                check(each.transactional_id, each.error_code)
                yield _transaction(each, node_id)


def _transaction(each: TransactionState, node_id: int) -> Transaction:
    state, timeout_ms = each.transaction_state, each.transaction_timeout_ms
    start_ms = age_ms = remaining_ms = None
    if state in OPEN_STATES and each.transaction_start_time_ms >= 0:
        start_ms = each.transaction_start_time_ms
        age_ms = max(0, now_ns() // 1_000_000 - start_ms)
        if state == ONGOING and timeout_ms != NEVER_MS:
            remaining_ms = max(0, timeout_ms - age_ms)
    places = sorted((topic.topic, number) for topic in each.topics for number in topic.partitions)
    return Transaction(
        each.transactional_id,
        state,
        each.producer_id,
        each.producer_epoch,
        timeout_ms,
        start_ms,
        age_ms,
        remaining_ms,
        node_id,
        each.client_id,
        each.client_host,
        [Place(*place) for place in places],
    )


# ---------------------------------------------------------------------------------------- leaders


def held_partitions(cluster: Cluster, partitions: Sequence[Partition]) -> list[HeldPartition]:
    """Return those of the partitions whose last stable offset waits for a transaction."""
    stable = cluster.run(offsets_at(partitions, LATEST, "read_committed"))
    ends = cluster.run(offsets_at(partitions, LATEST))
    behind = [
        each for each in partitions if stable[each.topic_partition] < ends[each.topic_partition]
    ]
    found = gathered(
        (each.topic_partition, each.shown) for each in open_transactions(cluster, behind)
    )
    return [
        HeldPartition(*place, stable[place], ends[place], found[place]) for place in sorted(found)
    ]


class Opened(NamedTuple):
    """A producer with an open transaction, as the leader of a partition knows it."""

    topic_partition: TopicPartition
    producer: ProducerState
    transaction: Transaction | None
    """The transaction, or ``None`` if it hangs."""

    @property
    def start_offset(self) -> int:
        """First offset of the transaction on this partition."""
        return self.producer.current_txn_start_offset

    @property
    def identity(self) -> tuple[TopicPartition, int, int]:
        """Key of the transaction in two reports."""
        return self.topic_partition, self.producer.producer_id, self.start_offset

    @property
    def shown(self) -> OpenTransaction:
        """Transaction in the form for operators."""
        producer = self.producer
        return OpenTransaction(
            self.start_offset,
            producer.producer_id,
            producer.producer_epoch,
            producer.last_timestamp,
            self.transaction is None,
            self.transaction,
        )


def open_transactions(cluster: Cluster, partitions: Sequence[Partition]) -> list[Opened]:
    """Return the open transactions of partitions by offset, with their transactional ids.

    The leaders get a second request about transactions that no coordinator knows: they might have
    ended in between.
    """
    found = _open_producers(cluster, partitions)
    if not found:
        return []
    owners = _owners(cluster, {each.producer.producer_id for each in found})
    known = [each._replace(transaction=_owner(each, owners)) for each in found]
    doubtful = {each.topic_partition for each in known if each.transaction is None}
    if doubtful:
        some = [each for each in partitions if each.topic_partition in doubtful]
        still_open = {each.identity for each in _open_producers(cluster, some)}
        known = [each for each in known if each.transaction or each.identity in still_open]
    return sorted(known, key=lambda each: (each.topic_partition, each.start_offset))


def _open_producers(cluster: Cluster, partitions: Sequence[Partition]) -> list[Opened]:
    """Return the producers that have a transaction open on one of the partitions."""
    found = []
    for leader_id, led in by_leader(partitions).items():
        for some in _batched(led):
            numbers = gathered(each.topic_partition for each in some)
            request = DescribeProducersRequest([TopicRequest(*each) for each in numbers.items()])
            for topic in cluster.node(leader_id).ask(DESCRIBE_PRODUCERS, request).topics:
                for answer in topic.partitions:
                    topic_partition = topic.name, answer.partition_index
                    check(partition_text(topic_partition), answer.error_code, answer.error_message)
                    found += [
                        Opened(topic_partition, producer, None)
                        for producer in answer.active_producers
                        if producer.current_txn_start_offset >= 0
                    ]
    return found


def _owners(cluster: Cluster, producer_ids: Iterable[int]) -> dict[int, Transaction]:
    """Return the transactional ids that producer ids belong to."""
    found = {}
    for some in _batched(sorted(producer_ids)):
        for each in list_transactions(cluster, Filters(producer_ids=some)):
            found[each.producer_id] = each
    return found


def _owner(opened: Opened, owners: dict[int, Transaction]) -> Transaction | None:
    """Return the transaction that owns a producer's open one, or ``None`` if it hangs."""
    producer = opened.producer
    owner = owners.get(producer.producer_id)
    if owner is None or not owner.is_open or opened.topic_partition not in owner.partitions:
        return None
    # Its markers carry its epoch or the next one, and end every transaction without a later one:
    # also that of a fenced producer, if InitProducerId kept the transaction (KIP-939).
    return owner if producer.producer_epoch <= owner.producer_epoch else None


def _batched(items: Iterable[T], size: int = _PER_REQUEST) -> Iterator[list[T]]:
    """Yield the items in lists that one request has room for."""
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch
