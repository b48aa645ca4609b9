"""What a client can find out about transactions: of their coordinators, and of partition leaders.

A partition's leader knows which producer ids have something open on it, and since which offset; it
is the coordinators that know to which transactional id a producer id belongs, and what it is about
to become. A transaction that is open on a partition and of which no coordinator knows hangs:
nothing will ever end it but an operator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from barnabas.broker.cli.cluster_view import Cluster, Partition, Rejected, check
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.group_view import coordinators
from barnabas.broker.cli.offsets import (
    LATEST,
    TopicPartition,
    may_pass,
    offsets_at,
    partition_text,
)
from barnabas.broker.client.brokers import TRANSACTION
from barnabas.broker.client.connection import Connection
from barnabas.broker.client.errors import Unreachable
from barnabas.broker.topics.topic_names import TRANSACTION_STATE
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

T = TypeVar("T")

ONGOING: Final = "Ongoing"
PREPARED: Final = ("PrepareCommit", "PrepareAbort")
OPEN_STATES: Final = (ONGOING, *PREPARED)
HANGING: Final = "hanging"
"""What we call a transaction that no coordinator knows."""
NEVER_MS: Final = 2**31 - 1
"""The timeout of a transaction that is decided elsewhere (KIP-939)."""

_DURATION_SINCE: Final = 1
_PATTERN_SINCE: Final = 2
_PER_REQUEST: Final = 1000
"""Transactional ids, producer ids and partitions that one request of ours names."""


@dataclass(frozen=True)
class Transaction:
    """One transactional id, as its coordinator describes it."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    partitions: list[TopicPartition]
    coordinator: int
    client: str | None
    host: str | None
    """Who last used the id; None where the broker does not say."""

    @property
    def is_open(self) -> bool:
        """Whether there is something that has not ended everywhere."""
        return self.state in OPEN_STATES


class Filters(NamedTuple):
    """Which transactional ids are wanted."""

    states: Sequence[str] = ()
    producer_ids: Sequence[int] = ()
    longer_than_ms: int = -1
    pattern: str | None = None


class Listing(NamedTuple):
    """What coordinators have listed."""

    transactions: list[Transaction]
    unreached: Mapping[int, Unreachable | Rejected]
    """Why brokers did not answer, by node: what they coordinate is missing."""
    has_moved: bool
    """Whether something had no coordinator, or another one in the end: it may be missing."""

    def check(self) -> None:
        """Raise Unreachable or Rejected where it is not all there is."""
        for problem in self.unreached.values():
            raise problem
        if self.has_moved:
            words = "coordinators have moved while they were asked"
            raise Rejected("transactions", ErrorCode.NOT_COORDINATOR, words)


class OpenTransaction(NamedTuple):
    """What a partition's leader knows of a transaction that is open on it."""

    topic_partition: TopicPartition
    producer: ProducerState
    transaction: Transaction | None
    """None: it hangs."""

    @property
    def start_offset(self) -> int:
        """Where it begins on this partition."""
        return self.producer.current_txn_start_offset


class HeldPartition(NamedTuple):
    """A partition whose readers of committed records wait; the first transaction holds them."""

    topic_partition: TopicPartition
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
    """Return the same of the brokers that answer; raises what another attempt cannot mend."""
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
    """Return which node coordinates each part of the ids, and its epoch; empty: it is not told."""
    (topic,) = cluster.topics([TRANSACTION_STATE])
    return [(each.leader_id, each.leader_epoch) for each in topic.partitions]


def _list(broker: Connection, filters: Filters) -> list[str]:
    if filters.longer_than_ms >= 0 and not broker.speaks(LIST_TRANSACTIONS, _DURATION_SINCE):
        raise CommandError(f"{broker.name}: cannot say how long transactions take")
    if filters.pattern is not None and not broker.speaks(LIST_TRANSACTIONS, _PATTERN_SINCE):
        raise CommandError(f"{broker.name}: cannot look for a pattern")
    request = ListTransactionsRequest(
        list(filters.states), list(filters.producer_ids), filters.longer_than_ms, filters.pattern
    )
    response = broker.ask(LIST_TRANSACTIONS, request)
    check("transactions", response.error_code)
    for name in response.unknown_state_filters:
        raise CommandError(f"{name}: no transaction is ever in this state", USAGE)
    return [each.transactional_id for each in response.transaction_states]


def _passes(transaction: Transaction, filters: Filters) -> bool:
    """Whether what was listed a moment ago is still what was asked for.

    Kafka lets all that is not open pass a duration.
    """
    return (not filters.states or transaction.state in filters.states) and (
        filters.longer_than_ms < 0 or transaction.is_open
    )


def describe_transactions(cluster: Cluster, ids: Sequence[str]) -> list[Transaction]:
    """Describe transactional ids, in their order; raises Rejected."""
    by_node: dict[int, list[str]] = defaultdict(list)
    for key, node_id in coordinators(cluster, ids, TRANSACTION).items():
        by_node[node_id].append(key)
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
    """Describe those of the ids that are there."""
    for keys in _batched(ids):
        request = DescribeTransactionsRequest(list(keys))
        for each in broker.ask(DESCRIBE_TRANSACTIONS, request).transaction_states:
            if each.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                check(each.transactional_id, each.error_code)
                yield _transaction(each, node_id)


def _transaction(each: TransactionState, node_id: int) -> Transaction:
    return Transaction(
        each.transactional_id,
        each.transaction_state,
        each.producer_id,
        each.producer_epoch,
        each.transaction_timeout_ms,
        each.transaction_start_time_ms if each.transaction_start_time_ms >= 0 else None,
        sorted((topic.topic, number) for topic in each.topics for number in topic.partitions),
        node_id,
        each.client_id,
        each.client_host,
    )


# ---------------------------------------------------------------------------------------- leaders


def held_partitions(cluster: Cluster, partitions: Sequence[Partition]) -> list[HeldPartition]:
    """Return those of the partitions whose last stable offset waits for a transaction."""
    stable = offsets_at(cluster, partitions, LATEST, "read_committed")
    ends = offsets_at(cluster, partitions, LATEST, "read_uncommitted")
    behind = [
        each for each in partitions if stable[each.topic_partition] < ends[each.topic_partition]
    ]
    by_partition: dict[TopicPartition, list[OpenTransaction]] = defaultdict(list)
    for each in open_transactions(cluster, behind):
        by_partition[each.topic_partition].append(each)
    return [
        HeldPartition(
            topic_partition,
            stable[topic_partition],
            ends[topic_partition],
            by_partition[topic_partition],
        )
        for topic_partition in sorted(by_partition)
    ]


def open_transactions(cluster: Cluster, partitions: Iterable[Partition]) -> list[OpenTransaction]:
    """Return what is open on partitions, in the order of its offsets, with whose it is.

    The leaders are asked again about what no coordinator knows: it may have ended in between.
    """
    partitions = list(partitions)
    found = _open_producers(cluster, partitions)
    if not found:
        return []
    owners = _owners(cluster, {producer.producer_id for _, producer in found})
    known = [
        OpenTransaction(topic_partition, producer, _owner(topic_partition, producer, owners))
        for topic_partition, producer in found
    ]
    doubtful = {each.topic_partition for each in known if each.transaction is None}
    if doubtful:
        again = _open_producers(
            cluster, [each for each in partitions if each.topic_partition in doubtful]
        )
        still_open = {_identity(topic_partition, producer) for topic_partition, producer in again}
        known = [
            each
            for each in known
            if each.transaction is not None
            or _identity(each.topic_partition, each.producer) in still_open
        ]
    return sorted(known, key=lambda each: (each.topic_partition, each.start_offset))


def _identity(
    topic_partition: TopicPartition, producer: ProducerState
) -> tuple[TopicPartition, int, int]:
    return topic_partition, producer.producer_id, producer.current_txn_start_offset


def _open_producers(
    cluster: Cluster, partitions: Iterable[Partition]
) -> list[tuple[TopicPartition, ProducerState]]:
    """Return the producers that have a transaction open on one of the partitions."""
    by_leader: dict[int, list[Partition]] = defaultdict(list)
    for partition in partitions:
        if partition.leader_id < 0:
            raise Rejected(
                partition_text(partition.topic_partition), ErrorCode.LEADER_NOT_AVAILABLE
            )
        by_leader[partition.leader_id].append(partition)
    found = []
    for leader_id, led in by_leader.items():
        for some in _batched(led):
            numbers: dict[str, list[int]] = defaultdict(list)
            for each in some:
                numbers[each.topic].append(each.number)
            request = DescribeProducersRequest([TopicRequest(*each) for each in numbers.items()])
            for topic in cluster.node(leader_id).ask(DESCRIBE_PRODUCERS, request).topics:
                for answer in topic.partitions:
                    topic_partition = topic.name, answer.partition_index
                    check(partition_text(topic_partition), answer.error_code, answer.error_message)
                    found += [
                        (topic_partition, producer)
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


def _owner(
    topic_partition: TopicPartition, producer: ProducerState, owners: dict[int, Transaction]
) -> Transaction | None:
    """Return the transaction that will end what a producer has open; None if none will."""
    owner = owners.get(producer.producer_id)
    if owner is None or not owner.is_open or topic_partition not in owner.partitions:
        return None
    # Its markers carry its epoch or the next one, and end whatever has no later one: also what a
    # producer wrote that was fenced since, where the transaction was kept by InitProducerId
    # (KIP-939).
    return owner if producer.producer_epoch <= owner.producer_epoch else None


def _batched(items: Iterable[T], size: int = _PER_REQUEST) -> Iterator[list[T]]:
    """Yield the items in lists that one request has room for."""
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch
