"""Connections to the brokers of a cluster, and attempts until one works or the time is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.connection import Connection, Disconnected
from barnabas.spark_connector.deadline import Deadline
from barnabas.spark_connector.errors import BrokerTooOld, BrokerUnreachable
from barnabas.spark_connector.options import addresses

Result = TypeVar("Result")

DATA: Final = "data"
CONTROL: Final = "control"


class NotYet(Exception):
    """An answer that may be another one soon; the message is for whoever waited in vain."""


def name_of(code: int) -> str:
    """An error code in words."""
    error = ErrorCode(code)
    return f"{error.message} ({error.name})"


class Connections(Closing):
    """All brokers of a cluster, found from a few addresses; connections are made when needed."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        client_id: str,
        timeout_ms: int,
        request_timeout_ms: int = 30_000,
    ) -> None:
        self.servers = bootstrap_servers
        self.request_timeout_ms = request_timeout_ms
        self._addresses = addresses(bootstrap_servers)
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._nodes: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[int, str], Connection] = {}
        self._first: Connection | None = None

    def close(self) -> None:
        """Close all connections; whatever is asked next makes new ones."""
        connections = [*self._connections.values(), *([self._first] if self._first else [])]
        self._connections.clear()
        self._first = None
        for connection in connections:
            connection.close()

    def deadline(self) -> Deadline:
        """As long as one thing may take."""
        return Deadline(self._timeout_ms)

    # ------------------------------------------------------------------------------- connections

    def node(self, node_id: int, lane: str = CONTROL) -> Connection:
        """Return a connection to a broker that Metadata or FindCoordinator named."""
        connection = self._connections.get((node_id, lane))
        if connection is None or not connection.is_open:
            address = self._nodes.get(node_id)
            if address is None:
                raise NotYet(f"broker {node_id} is not there")
            connection = self._connect(address)
            self._connections[node_id, lane] = connection
        return connection

    def any_node(self) -> Connection:
        """Return a connection to whichever broker takes one; raises Disconnected."""
        if self._first is None or not self._first.is_open:
            self._first = self._connect_to_any()
        return self._first

    def _connect_to_any(self) -> Connection:
        problems: dict[str, None] = {}
        for address in dict.fromkeys([*self._addresses, *self._nodes.values()]):
            try:
                return self._connect(address)
            except Disconnected as problem:
                problems[str(problem)] = None
        raise Disconnected("; ".join(problems))

    def _connect(self, address: tuple[str, int]) -> Connection:
        return Connection(address, self._client_id, self.request_timeout_ms)

    # ---------------------------------------------------------------------------------- attempts

    def until(self, what: str, deadline: Deadline, attempt: Callable[[], Result]) -> Result:
        """Attempt something until it works; ``what`` is how an error's sentence begins."""
        while True:
            try:
                return attempt()
            except (Disconnected, NotYet) as problem:
                self.forget()
                if deadline.is_over:
                    raise self.gave_up(what, deadline, problem) from None
            except KafkaError as error:
                if error.code != ErrorCode.UNSUPPORTED_VERSION:
                    raise
                raise BrokerTooOld(
                    f"{what} failed because {error.message}; exactly-once writing needs Apache "
                    "Kafka 2.5 or later, or Barnabas."
                ) from None
            deadline.pause()

    def gave_up(self, what: str, deadline: Deadline, problem: object) -> BrokerUnreachable:
        """What to raise when the time is over."""
        return BrokerUnreachable(
            f"{what} did not succeed within {deadline.timeout_ms / 1000:g} seconds at "
            f"{self.servers}, the last problem was: {problem}; check that the broker is running "
            "and start the query again."
        )

    def forget(self) -> None:
        """Called after each failed attempt: what was taken for granted may be wrong."""
