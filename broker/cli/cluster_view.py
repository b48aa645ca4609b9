"""The commands' view of a cluster: its topics, who leads what, and errors in one line.

Errors that brokers answer with leave as Rejected; Unreachable is what the client itself raises.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final, NamedTuple, Self

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
    """A broker answered with an error; ``code`` says which."""

    def __init__(self, subject: str, code: int, message: str | None = None) -> None:
        self.code = ErrorCode(code)
        super().__init__(f"{subject}: {message or self.code.message} ({self.code.name})")


class Partition(NamedTuple):
    """One partition of a topic, ``leader_id`` -1 without a leader."""

    topic: str
    number: int
    leader_id: int

    @property
    def topic_partition(self) -> tuple[str, int]:
        """Topic and number: its name, whichever broker leads it."""
        return self.topic, self.number


def check(subject: str, code: int, message: str | None = None) -> None:
    """Raise Rejected unless ``code`` says that all is well."""
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
        """Return the cluster that the arguments of ``add_server`` are about."""
        servers = addresses(arguments.bootstrap_server)
        return cls(servers, arguments.timeout, arguments.security)

    def topics(self, names: list[str] | None = None) -> list[MetadataResponseTopic]:
        """Return what Metadata says of topics, of all by default, in the order of their names."""
        found = self.metadata(names).topics
        for topic in found:
            topic.partitions.sort(key=lambda partition: partition.partition_index)
        return sorted(found, key=lambda topic: topic.name or "")

    def partitions(self, topic: str) -> list[Partition]:
        """Return a topic's partitions with their leaders; raises Rejected."""
        (found,) = self.topics([topic])
        check(topic, found.error_code)
        return [Partition(topic, each.partition_index, each.leader_id) for each in found.partitions]
