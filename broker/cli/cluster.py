"""The commands' view of a cluster: who its brokers are, who leads what, and asking them.

Every failure leaves as a CommandError in one line. ``Unreachable`` is the one that may pass: a
broker that restarts, a leader that moved.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from barnabas.broker.cli.arguments import Address
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.client.nodes import Nodes, UnknownNode
from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.api import Api
from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed
from barnabas.protocol.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)

Request = TypeVar("Request")
Response = TypeVar("Response")

CLIENT_ID = "barnabas"


class Unreachable(CommandError):
    """No broker answered, or a connection broke; another attempt may succeed."""


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
        """Topic and number: what it is called, whoever leads it."""
        return self.topic, self.number


def check(subject: str, code: int, message: str | None = None) -> None:
    """Raise Rejected unless ``code`` says that all is well."""
    if code:
        raise Rejected(subject, code, message)


class Connection:
    """One connection to one broker, whose failures say which broker it was."""

    def __init__(self, address: Address, timeout_seconds: float) -> None:
        self.name = f"{address[0]}:{address[1]}"
        try:
            self._client = WireClient(address, CLIENT_ID, timeout_seconds)
        except OSError as error:
            raise self._unreachable(error) from None

    def ask(
        self, api: Api[Request, Response], request: Request, at_most: int | None = None
    ) -> Response:
        """Send a request in the highest version both speak and return its response."""
        self.send(api, request, at_most)
        return self.receive(api)

    def send(
        self,
        api: Api[Request, Any],
        request: Request,
        at_most: int | None = None,
        *,
        expects_response: bool = True,
    ) -> None:
        """Send a request without waiting; ``receive`` returns the responses in order."""
        try:
            version = self._client.version_of(api, at_most)
            self._client.send(api, request, version, expects_response=expects_response)
        except (OSError, Malformed, KafkaError) as error:
            raise self._failed(error) from None

    def receive(self, api: Api[Any, Response]) -> Response:
        """Return the response to the oldest request that has none yet."""
        try:
            return self._client.receive(api)
        except (OSError, Malformed, KafkaError) as error:
            raise self._failed(error) from None

    def speaks(self, api: Api[Any, Any], version: int) -> bool:
        """Whether the broker knows this version of an API, or a later one."""
        try:
            return self._client.version_of(api) >= version
        except KafkaError:
            return False
        except (OSError, Malformed) as error:
            raise self._failed(error) from None

    @property
    def is_open(self) -> bool:
        """Whether it can still be used."""
        return self._client.is_open

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _failed(self, error: Exception) -> CommandError:
        if isinstance(error, OSError):
            return self._unreachable(error)
        if isinstance(error, KafkaError):
            return CommandError(f"{self.name}: {error.message}")
        return CommandError(f"{self.name}: the answer is not Kafka's")

    def _unreachable(self, error: OSError) -> Unreachable:
        if isinstance(error, TimeoutError):
            return Unreachable(f"{self.name}: no answer in time")
        return Unreachable(f"{self.name}: {error.strerror or error}")


class Cluster:
    """All brokers of one cluster, found from a few addresses; connections are made when needed.

    ``with Cluster(addresses, timeout_seconds) as cluster: cluster.ask(METADATA, request)``.
    """

    def __init__(self, addresses: list[Address], timeout_seconds: float) -> None:
        self._nodes = Nodes(
            addresses, lambda address: Connection(address, timeout_seconds), Unreachable
        )
        self._timeout_seconds = timeout_seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Close all connections; what is asked next makes new ones."""
        self._nodes.close()

    @property
    def any_broker(self) -> Connection:
        """The first broker that takes a connection; raises Unreachable."""
        return self._nodes.any()

    def ask(
        self, api: Api[Request, Response], request: Request, at_most: int | None = None
    ) -> Response:
        """Ask any broker; Kafka's pass on to the controller what only that can do."""
        return self.any_broker.ask(api, request, at_most)

    def node(self, node_id: int) -> Connection:
        """Return the connection to a broker that Metadata or FindCoordinator named."""
        try:
            return self._nodes.node(node_id)
        except UnknownNode as error:
            raise Unreachable(str(error)) from None

    def connect(self, node_id: int, timeout_seconds: float) -> Connection:
        """Return a new connection to a broker, for the caller to close."""
        try:
            return Connection(self._nodes.address(node_id), timeout_seconds)
        except UnknownNode as error:
            raise Unreachable(str(error)) from None

    def know(self, node_id: int, host: str, port: int) -> None:
        """Remember where a broker is."""
        self._nodes.know(node_id, host, port)

    @property
    def node_ids(self) -> list[int]:
        """Every broker known so far."""
        return self._nodes.ids

    def topics(self, names: list[str] | None = None) -> list[MetadataResponseTopic]:
        """Return what Metadata says of topics, of all by default, in the order of their names.

        A topic that does not exist has an error code. None is ever created by asking.
        """
        wanted = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        response = self.ask(METADATA, request)
        for broker in response.brokers:
            self.know(broker.node_id, broker.host, broker.port)
        for topic in response.topics:
            topic.partitions.sort(key=lambda partition: partition.partition_index)
        return sorted(response.topics, key=lambda topic: topic.name or "")

    def partitions(self, topic: str) -> list[Partition]:
        """Return a topic's partitions with their leaders; raises Rejected."""
        (found,) = self.topics([topic])
        check(topic, found.error_code)
        return [Partition(topic, each.partition_index, each.leader_id) for each in found.partitions]
