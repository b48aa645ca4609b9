"""Network of a simulation: listening addresses, connections, latency, loss and cut links.

A connection has two ``End`` objects. Bytes that one end sends arrive at the other end in order,
after a latency that the seed decides. A cut direction loses no bytes: they arrive after the
direction is mended, because TCP would retransmit them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from barnabas.broker.testing.world.scheduler import Scheduler

Address = tuple[str, int]

FIRST_PORT: Final = 20_000
FIRST_CLIENT_PORT: Final = 40_000

LATENCY_NS: Final = (20_000, 200_000)
"""Default minimum and maximum latency of bytes."""

SOCKET_BUFFER_BYTES: Final = 1 << 18
"""Number of bytes that an end can send before the other end receives some of them."""
RESENT_NS: Final = 200_000_000
"""Delay of a retransmission: the minimum retransmission timeout of TCP."""


class Reader(Protocol):
    """Socket or transport that uses one end of a connection."""

    def is_readable(self) -> None:
        """Handle the arrival of bytes, of the end of the stream, or of a reset."""

    def is_writable(self) -> None:
        """Handle that the other end has received bytes."""


class End:
    """End of a connection."""

    def __init__(self, network: Network, local: Address, remote: Address) -> None:
        self.network = network
        self.local = local
        self.remote = remote
        self.other: End
        self.reader: Reader | None = None
        self.received = bytearray()
        self.has_ended = False
        """Whether the other end has ended its stream."""
        self.is_reset = False
        self.is_closed = False
        self.unread_bytes = 0
        """Number of bytes that were sent to this end and have not been received."""
        self.is_cut = False
        """Whether the direction to this end is cut."""
        self._arrives_ns = 0
        self._held: list[Callable[[], None]] = []

    def send(self, data: bytes) -> None:
        """Send bytes to the other end. If it is closed, it resets the connection."""
        other = self.other
        if other.is_closed:
            other.network.later(self, self._reset)
            return
        other.unread_bytes += len(data)
        self.network.sends(self, data)

        def arrive() -> None:
            if not other.is_closed:
                other.received += data
                other._notify()  # noqa: SLF001  Same class.

        self.network.later(other, arrive)

    def end(self) -> None:
        """End the stream to the other end."""
        other = self.other

        def arrive() -> None:
            other.has_ended = True
            other._notify()  # noqa: SLF001  Same class.

        self.network.later(other, arrive)

    def close(self) -> None:
        """Close this end, and end the stream to the other end."""
        if not self.is_closed:
            self.is_closed = True
            self._release()
            self.end()

    def reset(self) -> None:
        """Close this end, and reset the connection at the other end."""
        if not self.is_closed:
            self.is_closed = True
            self._release()
            self.network.later(self.other, self.other._reset)  # noqa: SLF001  Same class.

    def take(self, most: int) -> bytes:
        """Remove and return up to ``most`` bytes that have arrived."""
        data = bytes(self.received[:most])
        del self.received[:most]
        self.unread_bytes -= len(data)
        if self.other.reader is not None:
            self.other.reader.is_writable()
        return data

    def mend(self) -> None:
        """Mend the direction to this end, and deliver the delayed events."""
        self.is_cut = False
        held, self._held = self._held, []
        for event in held:
            self.network.later(self, event)

    def hold(self, event: Callable[[], None]) -> None:
        """Delay an event until the direction to this end is mended."""
        self._held.append(event)

    def arrives_ns(self, delay_ns: int, now_ns: int) -> int:
        """Return the arrival time of bytes that are sent now; not before that of earlier bytes."""
        self._arrives_ns = max(self._arrives_ns, now_ns + delay_ns)
        return self._arrives_ns

    def _release(self) -> None:
        self.network.closes(self)
        self.unread_bytes = 0
        if self.other.reader is not None:
            self.other.reader.is_writable()

    def _reset(self) -> None:
        # As with the kernel, the bytes that arrived before the reset can still be received.
        self.is_reset = True
        self._notify()

    def _notify(self) -> None:
        if self.reader is not None:
            self.reader.is_readable()


class BoundSocket:
    """Bound address of a broker. Clients can connect once an event loop listens on it."""

    def __init__(self, network: Network, address: Address) -> None:
        self._network = network
        self.address = address
        self.accept: Callable[[End], None] | None = None
        """Function that accepts the broker's end of a new connection, or None before listening."""

    def getsockname(self) -> Address:
        """Return the host and the port."""
        return self.address

    def close(self) -> None:
        """Stop listening and free the address."""
        self.accept = None
        self._network.unbind(self)

    def fileno(self) -> int:
        """Return -1, because there is no descriptor."""
        return -1


class Network:
    """Addresses and connections of a simulation."""

    def __init__(
        self, scheduler: Scheduler, seed: int, log: Callable[[str], object] = lambda _: None
    ) -> None:
        self._scheduler = scheduler
        self._chance = Random(f"{seed} network")  # noqa: S311  Repeatable.
        self._log = log
        self._bound: dict[Address, BoundSocket] = {}
        self._next_port = FIRST_PORT
        self._next_client_port = FIRST_CLIENT_PORT
        self.latency_ns = LATENCY_NS
        self.loss = 0.0
        """Share of the sent segments, 0 to 1, that are retransmitted after ``RESENT_NS``."""
        self._cut: dict[int, tuple[bool, bool]] = {}
        """Cut directions of each cut port: to the port, and from the port."""
        self.connections: list[End] = []
        """Client ends of the open connections."""

    def bind(self, host: str, port: int) -> BoundSocket:
        """Bind an address, with a free port if ``port`` is 0; raises OSError if it is in use."""
        if not port:
            port = self._next_port
            self._next_port += 1
        if (host, port) in self._bound:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        found = self._bound[host, port] = BoundSocket(self, (host, port))
        return found

    def unbind(self, bound: BoundSocket) -> None:
        """Free an address."""
        if self._bound.get(bound.address) is bound:
            del self._bound[bound.address]

    def connect(self, address: Address) -> End:
        """Open a connection and return the client's end of it.

        Raises ConnectionRefusedError if no broker listens on the port.
        """
        accept = self._accept_of(address)
        ours, theirs = self.pair(address)
        theirs.is_cut, ours.is_cut = self._cut.get(address[1], (False, False))
        self.connections.append(ours)
        accept(theirs)
        return ours

    def pair(self, address: Address) -> tuple[End, End]:
        """Return the client's end and the broker's end of a new connection to ``address``."""
        self._next_client_port += 1
        local = ("127.0.0.1", self._next_client_port)
        ours, theirs = End(self, local, address), End(self, address, local)
        ours.other, theirs.other = theirs, ours
        self._log(f"connect {local[1]} to {address[1]}")
        return ours, theirs

    def cut(self, port: int, *, there: bool = True, back: bool = True) -> None:
        """Cut the link to a broker's port (``there``), from the port (``back``), or both.

        Connections stay open, and new ones open successfully. A client detects the cut only by a
        timeout. With one direction cut, the link is half-open.
        """
        self._log(f"cut {port} there={there} back={back}")
        self._cut[port] = (there, back)
        for end in self._of(port):
            end.other.is_cut, end.is_cut = there, back

    def stall(self, port: int) -> None:
        """Cut the connections to a broker's port that are open now; new connections work."""
        self._log(f"stall {port}")
        for end in self._of(port):
            end.other.is_cut = end.is_cut = True

    def mend(self, port: int) -> None:
        """Mend the link of a port, and deliver the bytes that were sent during the cut."""
        self._log(f"mend {port}")
        self._cut.pop(port, None)
        for end in self._of(port):
            end.mend()
            end.other.mend()

    def _of(self, port: int) -> list[End]:
        return [end for end in self.connections if end.remote[1] == port]

    def later(self, end: End, event: Callable[[], None]) -> None:
        """Schedule the arrival of an event at an end."""
        delay_ns = self._chance.randint(*self.latency_ns)
        while self.loss and self._chance.random() < self.loss:
            delay_ns += RESENT_NS

        def arrive() -> None:
            if end.is_cut:
                end.hold(event)
            else:
                event()

        self._scheduler.at(end.arrives_ns(delay_ns, self._scheduler.now_ns), arrive)

    def sends(self, end: End, data: bytes) -> None:
        """Log that an end sends bytes."""
        self._log(f"send {end.local[1]} to {end.remote[1]} {len(data)} {data.hex()}")

    def closes(self, end: End) -> None:
        """Log that an end was closed, and remove connections of which both ends are closed."""
        self._log(f"close {end.local[1]} to {end.remote[1]}")
        for each in (end, end.other):
            if each in self.connections and each.is_closed and each.other.is_closed:
                self.connections.remove(each)

    def _accept_of(self, address: Address) -> Callable[[End], None]:
        """Return the function that accepts connections to a port, on any host.

        Raises ConnectionRefusedError if no broker listens on the port.
        """
        for (_, port), bound in self._bound.items():
            if port == address[1] and bound.accept is not None:
                return bound.accept
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
