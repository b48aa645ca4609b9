"""Links between the brokers of a process, each of which a test can cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.cluster.peers.connection import Opened, Refused
from barnabas.storage.runtime.threads import new_lock

if TYPE_CHECKING:
    from barnabas.broker.cluster.peers.connection import Address, PeerConnection, Transport
    from barnabas.broker.cluster.peers.sessions import Hello


class Links:
    """Cut and working links between brokers; callable on any thread."""

    def __init__(self) -> None:
        """Start with all links working."""
        self._lock = new_lock()
        self._cut: set[frozenset[int]] = set()
        self._node_ids: dict[int, int] = {}
        """Node IDs by the port of the listener."""

    def listens(self, node_id: int, port: int) -> None:
        """Record the port of a broker's listener."""
        with self._lock:
            self._node_ids[port] = node_id

    def cut(self, one: int, other: int) -> None:
        """Refuse new connections in both directions; the brokers end the open ones."""
        with self._lock:
            self._cut.add(frozenset((one, other)))

    def mend(self, one: int, other: int) -> None:
        """Accept new connections in both directions again."""
        with self._lock:
            self._cut.discard(frozenset((one, other)))

    def node_at(self, address: Address) -> int | None:
        """Return the node ID of the listener at an address, or None."""
        with self._lock:
            return self._node_ids.get(address[1])

    def are_cut(self, one: int, other: int | None) -> bool:
        """Whether the link between two brokers is cut."""
        with self._lock:
            return other is not None and frozenset((one, other)) in self._cut


class LinkedNetwork:
    """``Transport`` of one broker over links; used on the event loop only."""

    def __init__(self, node_id: int, links: Links, transport: Transport) -> None:
        """``node_id`` is this broker's; ``transport`` opens the connections."""
        self._node_id = node_id
        self._links = links
        self._transport = transport
        self._opened: list[tuple[int | None, PeerConnection]] = []

    async def open(self, address: Address, hello: Hello) -> Opened:
        """Open a connection unless the link is cut; see ``Transport``."""
        other = self._links.node_at(address)
        self._refuse_cut(other)
        opened = await self._transport.open(address, hello)
        try:
            self._refuse_cut(other)
        except Refused:
            opened.connection.abort()
            raise
        self._opened = [each for each in self._opened if each[1].is_open]
        self._opened.append((other, opened.connection))
        return opened

    def close(self) -> None:
        """Stop opening connections."""
        self._transport.close()

    def end_cut(self) -> None:
        """End the connections over cut links, without the data in flight."""
        for other, connection in self._opened:
            if self._links.are_cut(self._node_id, other):
                connection.connection_lost(ConnectionResetError("the link was cut"))

    def _refuse_cut(self, other: int | None) -> None:
        if self._links.are_cut(self._node_id, other):
            raise Refused(f"the link from {self._node_id} to {other} is cut", is_final=False)
