"""Requests about a run: committed offsets, open transactions, and the records of a topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from barnabas.broker.admin.exchange import Partition, Rejected, TopicPartition
from barnabas.broker.admin.offsets import LATEST, UNCOMMITTED, Offsets, offsets_at
from barnabas.broker.admin.topics import create_topics
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.group_view import list_groups, view_group
from barnabas.broker.cli.records.consumer import Consumer
from barnabas.broker.cli.retries import patiently, repeat
from barnabas.broker.cli.transaction_view import OPEN_STATES, Filters, list_reachable
from barnabas.broker.client.connection import Address
from barnabas.broker.client.topic_reader import ReceivedRecord
from barnabas.protocol.errors import ErrorCode

COMMITTED: Final = "read_committed"


class Observer:
    """The input and the output of a run, as any client can query them; retries while it waits."""

    def __init__(self, cluster: Cluster, source: str, target: str) -> None:
        self._cluster = cluster
        self.source = source
        self.target = target

    def create(self, names: Sequence[str], partitions: int) -> None:
        """Create topics, unless they exist; raises Rejected."""
        for each in repeat(self._cluster, create_topics, names, partitions, [], dry_run=False):
            if each.error_code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                raise Rejected(each.name, each.error_code, each.error_message)

    def brokers(self) -> list[Address]:
        """Return the addresses of all brokers, as clients get them."""
        found = patiently(self._cluster, lambda: self._cluster.metadata([]))
        return [(each.host, each.port) for each in found.brokers]

    def topic_ids(self) -> dict[bytes, str]:
        """Return the names of the two topics by their IDs."""
        found = patiently(self._cluster, lambda: self._cluster.topics([self.source, self.target]))
        return {bytes(each.topic_id): each.name or "" for each in found}

    def partitions(self, topic: str) -> list[Partition]:
        """Return the partitions of a topic."""
        return patiently(self._cluster, lambda: self._cluster.partitions(topic))

    def ends(self, topic: str, isolation: str = UNCOMMITTED) -> Offsets:
        """Return the end offsets of a topic."""
        return patiently(
            self._cluster,
            lambda: self._cluster.run(
                offsets_at(self._cluster.partitions(topic), LATEST, isolation)
            ),
        )

    def committed(self) -> dict[str, Offsets]:
        """Return the committed offsets of the input, by group; groups without one are left out."""

        def read_offsets() -> dict[str, Offsets]:
            found = {}
            for group in list_groups(self._cluster, [], ["classic", "consumer"]):
                offsets = view_group(self._cluster, group.group).offsets
                of_input = {each: at for each, at in offsets.items() if each[0] == self.source}
                if of_input:
                    found[group.group] = of_input
            return found

        return patiently(self._cluster, read_offsets)

    def open_transactions(self) -> list[str]:
        """Return the transactional IDs with an open transaction on the input or the output."""
        found = patiently(
            self._cluster, lambda: list_reachable(self._cluster, Filters(OPEN_STATES))
        )
        ours = {self.source, self.target}
        return [
            each.transactional_id
            for each in found.transactions
            if any(place.topic in ours for place in each.partitions)
        ]

    def read(
        self,
        topic: str,
        starts: Mapping[TopicPartition, int],
        isolation: str,
        ends: Offsets | None = None,
    ) -> Iterator[ReceivedRecord]:
        """Yield the records of a topic from ``starts`` to ``ends``, by default its present end."""
        if ends is None:
            ends = self.ends(topic, isolation)
        consumer = Consumer(self._cluster, starts, isolation=isolation, ends=ends)
        while not consumer.at_end:
            yield from consumer.poll()


def is_consumed(groups: Iterable[Offsets], ends: Offsets) -> bool:
    """Return whether each group has committed the end of each partition that has records."""
    return all(committed.get(each, 0) >= end for committed in groups for each, end in ends.items())
