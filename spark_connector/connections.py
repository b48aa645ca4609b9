"""Connections to the brokers of a cluster, and attempts until one works or the time is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from barnabas.broker.client.nodes import Nodes, UnknownNode
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
    """An answer that may be another one soon; the message says what was waited for in vain."""


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
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._nodes = Nodes(addresses(bootstrap_servers), self._connect, Disconnected)

    def close(self) -> None:
        """Close all connections; whatever is asked next makes new ones."""
        self._nodes.close()

    def deadline(self) -> Deadline:
        """As long as one thing may take."""
        return Deadline(self._timeout_ms)

    # ------------------------------------------------------------------------------- connections

    def node(self, node_id: int, lane: str = CONTROL) -> Connection:
        """Return a connection to a broker that Metadata or FindCoordinator named."""
        try:
            return self._nodes.node(node_id, lane)
        except UnknownNode as error:
            raise NotYet(str(error)) from None

    def any_node(self) -> Connection:
        """Return a connection to whichever broker takes one; raises Disconnected."""
        return self._nodes.any()

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
