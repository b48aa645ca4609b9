"""The brokers of one cluster, found from a few addresses; connections are made when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

Address = tuple[str, int]


class Connection(Protocol):
    """A connection to one broker."""

    @property
    def is_open(self) -> bool:
        """Whether it can still be used."""

    def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound=Connection)


class UnknownNode(Exception):
    """No answer has said so far where this broker is."""

    def __init__(self, node_id: int) -> None:
        super().__init__(f"broker {node_id} is not there")


class Nodes(Generic[C]):
    """Connections by node id, and one to any broker that takes it."""

    def __init__(
        self,
        addresses: Iterable[Address],
        connect: Callable[[Address], C],
        unreachable: type[Exception],
    ) -> None:
        """``connect`` raises ``unreachable`` where a broker cannot be reached."""
        self._addresses = list(addresses)
        self._connect = connect
        self._unreachable = unreachable
        self._where: dict[int, Address] = {}
        self._connections: dict[tuple[int, str], C] = {}
        self._first: C | None = None

    @property
    def ids(self) -> list[int]:
        """Every broker known so far."""
        return sorted(self._where)

    def know(self, node_id: int, host: str, port: int) -> None:
        """Remember where a broker is, by what Metadata or FindCoordinator said."""
        self._where[node_id] = host, port

    def address(self, node_id: int) -> Address:
        """Return where a broker is; raises UnknownNode."""
        try:
            return self._where[node_id]
        except KeyError:
            raise UnknownNode(node_id) from None

    def node(self, node_id: int, lane: str = "") -> C:
        """Return the connection to a broker; each ``lane`` has one of its own."""
        connection = self._connections.get((node_id, lane))
        if connection is None or not connection.is_open:
            connection = self._connect(self.address(node_id))
            self._connections[node_id, lane] = connection
        return connection

    def any(self) -> C:
        """Return a connection to the first broker that takes one."""
        if self._first is None or not self._first.is_open:
            self._first = self._connect_to_any()
        return self._first

    def close(self) -> None:
        """Close all connections; what is asked next makes new ones."""
        connections = [*self._connections.values(), *([self._first] if self._first else [])]
        self._connections.clear()
        self._first = None
        for connection in connections:
            connection.close()

    def _connect_to_any(self) -> C:
        problems: dict[str, None] = {}
        for address in dict.fromkeys([*self._addresses, *self._where.values()]):
            try:
                return self._connect(address)
            except self._unreachable as problem:
                problems[str(problem)] = None
        raise self._unreachable("; ".join(problems))
