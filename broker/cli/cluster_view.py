"""The commands' view of a cluster: topics, partition leaders, and errors in one line.

Errors in responses are raised as Rejected; the client itself raises Unreachable.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from barnabas.broker.admin.requests import TopicPartition, gathered
from barnabas.broker.cli.arguments import addresses
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.client.brokers import Brokers
from barnabas.broker.client.connection import Address
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import MetadataResponseTopic

if TYPE_CHECKING:
    from barnabas.broker.client.security import ClientSecurity

CLIENT_ID: Final = "barnabas"


class Rejected(CommandError):
    """An error in a broker's response; ``code`` is its number."""

    def __init__(self, subject: str, code: int, message: str | None = None) -> None:
        self.code = ErrorCode(code)
        super().__init__(f"{subject}: {message or self.code.message} ({self.code.name})")


class Partition(NamedTuple):
    """One partition of a topic, ``leader_id`` -1 without a leader."""

    topic: str
    number: int
    leader_id: int

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and number of the partition, independent of its leader."""
        return self.topic, self.number


def check(subject: str, code: int, message: str | None = None) -> None:
    """Raise Rejected unless ``code`` is NONE."""
    if code:
        raise Rejected(subject, code, message)


class Cluster(Brokers):
    """The brokers of one cluster, and what Metadata says of its topics."""

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
        """Return the partitions that options name; a topic without numbers means all of it.

        Raises CommandError for one that does not exist.
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


def partition_text(topic_partition: TopicPartition) -> str:
    """Return a partition as people write it: ``orders-0``."""
    return f"{topic_partition[0]}-{topic_partition[1]}"


def by_leader(partitions: Sequence[Partition]) -> dict[int, list[Partition]]:
    """Return partitions by the broker that leads them; raises Rejected for one without a leader."""
    for each in partitions:
        if each.leader_id < 0:
            raise Rejected(partition_text(each.topic_partition), ErrorCode.LEADER_NOT_AVAILABLE)
    return gathered((each.leader_id, each) for each in partitions)
