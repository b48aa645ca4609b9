"""Exchanges with brokers: generators that yield requests and receive the responses.

The command line sends the requests over connections (``Cluster.run``), the console to the handlers
of its own broker (``WireClient.run``). An error in a response is raised as Rejected.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

from barnabas.protocol.api import AnyApi, Api
from barnabas.protocol.errors import ErrorCode, KafkaError

Request = TypeVar("Request")
Response = TypeVar("Response")
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

TopicPartition: TypeAlias = tuple[str, int]
"""Topic and partition."""


class Coordinator(NamedTuple):
    """The coordinator of a group or a transactional id; ``kind`` is that of FindCoordinator."""

    kind: int
    key: str


Receiver: TypeAlias = int | Coordinator | None
"""A broker by its node ID, a coordinator, or ``None`` for any broker."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of an exchange; ``at_most`` is its highest version, or ``None`` for the latest."""

    api: AnyApi
    request: Any
    to: Receiver
    at_most: int | None


Exchange: TypeAlias = Generator[Sent, Any, T]


def send(
    api: Api[Request, Response], request: Request, to: Receiver = None, at_most: int | None = None
) -> Exchange[Response]:
    """Return the response to a request."""
    response: Response = yield Sent(api, request, to, at_most)
    return response


class Rejected(KafkaError):
    """An error in a response, with the name of the object that it is about."""

    def __init__(self, subject: str, code: int, message: str | None = None) -> None:
        super().__init__(ErrorCode(code), message or None)
        self._text = f"{subject}: {self.message} ({self.code.name})"

    def __str__(self) -> str:
        return self._text


def check(subject: str, code: int, message: str | None = None) -> None:
    """Raise Rejected unless ``code`` is NONE."""
    if code:
        raise Rejected(subject, code, message)


class Partition(NamedTuple):
    """One partition of a topic, ``leader_id`` -1 without a leader."""

    topic: str
    number: int
    leader_id: int

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and number of the partition, independent of its leader."""
        return self.topic, self.number


def partition_text(topic_partition: TopicPartition) -> str:
    """Return a partition as people write it: ``orders-0``."""
    return f"{topic_partition[0]}-{topic_partition[1]}"


def check_partition(topic_partition: TopicPartition, code: int) -> None:
    """Raise Rejected unless ``code`` is NONE; its message is the name of the partition."""
    if code:
        name = partition_text(topic_partition)
        problem = Rejected(name, code)
        problem.message = name
        raise problem


def by_leader(partitions: Sequence[Partition]) -> dict[int, list[Partition]]:
    """Return partitions by the broker that leads them; raises Rejected for one without a leader."""
    for each in partitions:
        if each.leader_id < 0:
            raise Rejected(partition_text(each.topic_partition), ErrorCode.LEADER_NOT_AVAILABLE)
    return gathered((each.leader_id, each) for each in partitions)


def gathered(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the second parts of pairs by the first ones, in their order."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
