"""The commands' view of a cluster: topics, partition leaders, and errors in one line.

Errors in responses are raised as Rejected; the client itself raises Unreachable.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Self, TypeVar

from barnabas.broker.admin.exchange import (
    Coordinator,
    Exchange,
    Partition,
    Receiver,
    TopicPartition,
    check,
    partition_text,
)
from barnabas.broker.cli.arguments import addresses
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.client.brokers import GROUP, MANY_KEYS_SINCE, Brokers
from barnabas.broker.client.connection import Address, Connection
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR
from barnabas.protocol.messages.metadata import MetadataResponseTopic

if TYPE_CHECKING:
    from barnabas.broker.client.security import ClientSecurity

T = TypeVar("T")

CLIENT_ID: Final = "barnabas"


class Cluster(Brokers):
    """The brokers of one cluster, and the topics in their response to Metadata."""

    def __init__(
        self,
        servers: list[Address],
        timeout_seconds: float,
        security: ClientSecurity | None = None,
    ) -> None:
        super().__init__(servers, CLIENT_ID, timeout_seconds, security=security)

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Self:
        """Return the cluster of the arguments of ``add_server``."""
        servers = addresses(arguments.bootstrap_server)
        return cls(servers, arguments.timeout, arguments.security)

    def run(self, exchange: Exchange[T]) -> T:
        """Return the result of an exchange; raises Rejected and Unreachable."""
        response = None
        while True:
            try:
                sent = exchange.send(response)
            except StopIteration as ended:
                result: T = ended.value
                return result
            response = self._receiver(sent.to).ask(sent.api, sent.request, sent.at_most)

    def _receiver(self, to: Receiver) -> Connection:
        if isinstance(to, Coordinator):
            return self.node(self.coordinator_ids(to.kind, [to.key])[to.key])
        return self.any() if to is None else self.node(to)

    def coordinator_ids(self, kind: int, keys: Iterable[str]) -> Mapping[str, int]:
        """Return the node IDs of coordinators by their keys; raises Rejected."""
        if not self.any().speaks(FIND_COORDINATOR, MANY_KEYS_SINCE):
            what = "groups" if kind == GROUP else "transactions"
            raise CommandError(f"{what}: the broker is older than Kafka 3.0")
        found = self.coordinators(kind, list(keys))
        for each in found:
            check(each.key, each.error_code, each.error_message)
        return {each.key: each.node_id for each in found}

    def topics(self, names: list[str] | None = None) -> list[MetadataResponseTopic]:
        """Return the Metadata of some topics, or of all by default, in the order of their names."""
        found = self.metadata(names).topics
        for topic in found:
            topic.partitions.sort(key=lambda partition: partition.partition_index)
        return sorted(found, key=lambda topic: topic.name or "")

    def partitions(self, topic: str) -> list[Partition]:
        """Return a topic's partitions with their leaders; raises Rejected."""
        (found,) = self.topics([topic])
        check(topic, found.error_code)
        return [Partition(topic, each.partition_index, each.leader_id) for each in found.partitions]

    def chosen(self, topics: Iterable[tuple[str, list[int]]]) -> list[Partition]:
        """Return the partitions that options name; a topic without numbers means all its
        partitions.

        Raises CommandError for a partition that does not exist.
        """
        chosen: dict[TopicPartition, Partition] = {}
        for topic, numbers in topics:
            found = {each.number: each for each in self.partitions(topic)}
            for number in numbers or found:
                if number not in found:
                    name = partition_text((topic, number))
                    raise CommandError(f"{name}: the topic has only {len(found)} partitions")
                chosen[topic, number] = found[number]
        return list(chosen.values())
