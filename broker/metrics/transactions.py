"""Transactions: number and age of open ones, outcomes, and delayed requests.

Only open transactions are iterated: idle transactional ids can be very many. Producer ids known to
partitions are ``kafka_server_replicamanager_produceridcount``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.metrics.families import COUNTER, GAUGE, Family, Sample, labels, value
from barnabas.coordinator.transactions.state import State

if TYPE_CHECKING:
    from barnabas.broker.coordination.transactions import Transactions
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.runtime.clock import Clock
    from barnabas.storage.log.partition_log import PartitionLog

OPEN_STATES: Final = (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT)
_MS_PER_SECOND: Final = 1000


def transaction_families(
    transactions: Transactions, catalogue: Catalogue, clock: Clock
) -> Iterator[Family]:
    """Yield the metrics of the transaction coordinator, and the lag of blocked readers."""
    yield from _state_families(transactions, clock.now_ms())
    yield from _ended_families(transactions)
    yield from _waiting_families(transactions)
    yield _largest_lags(catalogue)


def _state_families(transactions: Transactions, now_ms: int) -> Iterator[Family]:
    open_now = [each for shard in transactions.machines for each in shard.open.values()]
    states = Counter(each.state for each in open_now)
    yield value(
        "barnabas_transactional_ids",
        GAUGE,
        "Transactional IDs that the coordinator stores.",
        sum(len(shard.transactions) for shard in transactions.machines),
    )
    yield value(
        "barnabas_transactional_ids_unreadable",
        GAUGE,
        "Transactional IDs that the broker refuses because their latest record cannot be read.",
        sum(len(shard.quarantined) for shard in transactions.machines),
    )
    yield Family(
        "barnabas_transactions_open",
        GAUGE,
        "Transactions by state: open, or decided with markers missing.",
        [(labels(state=state.kafka_name), states[state]) for state in OPEN_STATES],
    )
    begun = [each.start_ms for each in open_now if each.state == State.ONGOING]
    decided = [each.last_update_ms for each in open_now if each.state.is_decided]
    yield Family(
        "barnabas_transaction_oldest_age_seconds",
        GAUGE,
        "Age of the oldest open transaction, and of the oldest decided one without all markers.",
        [
            (labels(state="open"), _age_seconds(begun, now_ms)),
            (labels(state="prepared"), _age_seconds(decided, now_ms)),
        ],
    )


def _age_seconds(since_ms: list[int], now_ms: int) -> float:
    return max(0, now_ms - min(since_ms)) / _MS_PER_SECOND if since_ms else 0


def _ended_families(transactions: Transactions) -> Iterator[Family]:
    counts = transactions.counts
    for name, doc, number in (
        ("begun", "Transactions started since the broker's start.", counts.begun),
        ("committed", "Transactions committed since the broker's start.", counts.committed),
    ):
        yield value(f"barnabas_transactions_{name}_total", COUNTER, doc, number)
    yield Family(
        "barnabas_transactions_aborted_total",
        COUNTER,
        "Transactions aborted since the broker's start, by reason.",
        [(labels(reason=reason), number) for reason, number in counts.aborted.items()],
    )


def _waiting_families(transactions: Transactions) -> Iterator[Family]:
    counts = transactions.counts
    for name, doc, number in (
        (
            "requests_delayed_total",
            "Requests delayed until the previous transaction completed.",
            counts.requests_held,
        ),
        (
            "requests_timed_out_total",
            "Delayed requests that timed out with CONCURRENT_TRANSACTIONS.",
            counts.requests_given_up,
        ),
        ("markers_written_total", "Transaction markers written.", counts.markers_written),
        (
            "markers_delayed_total",
            "Delayed writes of a transaction marker.",
            counts.markers_delayed,
        ),
    ):
        yield value(f"barnabas_transaction_{name}", COUNTER, doc, number)
    for name, doc, number in (
        ("requests_waiting", "Requests that are currently delayed.", transactions.requests_waiting),
        (
            "markers_missing",
            "Pending transaction markers.",
            sum(shard.owed_markers for shard in transactions.machines),
        ),
    ):
        yield value(f"barnabas_transaction_{name}", GAUGE, doc, number)
    remote_markers = transactions.remote_markers
    owed = {} if remote_markers is None else remote_markers.owed_by_node()
    yield Family(
        "barnabas_transaction_markers_missing_elsewhere",
        GAUGE,
        "Pending markers that another broker has to write, by its node ID.",
        [(labels(broker=node_id), count) for node_id, count in sorted(owed.items())],
    )


def _largest_lags(catalogue: Catalogue) -> Family:
    topics = list(catalogue.topics.values())

    def samples() -> Iterator[Sample]:
        for topic in topics:
            lags = (_lag(log) for _, log in topic.partitions_here())
            yield labels(topic=topic.name), max(lags, default=0)

    return Family(
        "barnabas_stable_offset_lag_max",
        GAUGE,
        "Largest barnabas_stable_offset_lag of a topic's partitions.",
        samples(),
    )


def _lag(log: PartitionLog) -> int:
    return log.high_watermark - log.last_stable_offset


def transaction_partition_families(catalogue: Catalogue) -> Iterator[Family]:
    """Yield the metrics of each partition."""

    def samples(read: Callable[[PartitionLog], int]) -> Iterator[Sample]:
        for topic in list(catalogue.topics.values()):
            for partition, log in topic.partitions_here():
                yield labels(topic=topic.name, partition=partition.index), read(log)

    yield Family(
        "barnabas_stable_offset_lag",
        GAUGE,
        "High watermark minus last stable offset: records blocked by an open transaction.",
        samples(_lag),
    )
    yield Family(
        "barnabas_last_stable_offset",
        GAUGE,
        "Last stable offset: read_committed consumers stop there.",
        samples(lambda log: log.last_stable_offset),
    )
