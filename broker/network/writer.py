"""The sending side of one connection: to the socket at once, to its transport what that leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.network.sending import Remainder, has_slices, in_memory, send

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.network.framing import Chunks

JOIN_BYTES: Final = 64 * 1024
"""Size up to which one joined string is cheaper than a vector of small pieces."""


class Owner(Protocol):
    """Parts of the connection that its writer uses."""

    def writing_waits(self) -> None:
        """Stop handling requests: the peer does not read its responses."""

    def writing_goes_on(self) -> None:
        """Resume: the peer has read enough."""

    def writing_failed(self, error: OSError) -> None:
        """Close the connection: either the peer has disconnected, or a file cannot be read."""


class Writer:
    """Sends answers past the transport where it can: see ``sending.py``.

    That saves one turn of uvloop's loop and about 2 us for each write. Order is kept because it is
    done only when the transport has nothing, and no parts of files are being sent.
    """

    __slots__ = (
        "_descriptor",
        "_owner",
        "_remainder",
        "_takes_slices",
        "_transport",
        "sent_bytes",
    )

    def __init__(self, owner: Owner) -> None:
        self._owner: Owner | None = owner
        self._transport: asyncio.Transport
        self._descriptor = -1
        self._remainder: Remainder | None = None
        self._takes_slices = False
        self.sent_bytes = 0

    def start(
        self, transport: asyncio.Transport, descriptor: int, *, takes_slices: bool = False
    ) -> None:
        """Start; ``descriptor`` is the socket's, or -1 if only the transport may send.

        ``takes_slices``: the transport accepts slices of files and reads them itself.
        """
        self._transport = transport
        self._descriptor = descriptor
        self._takes_slices = takes_slices

    @property
    def unsent_bytes(self) -> int:
        """Return the number of bytes that were written and have not left."""
        unsent = self._transport.get_write_buffer_size()
        return unsent if self._remainder is None else unsent + self._remainder.size_bytes

    @property
    def sends_files(self) -> bool:
        """Return whether parts of files wait for the socket."""
        return self._remainder is not None

    def write(self, chunks: Chunks, size: int) -> None:
        """Send ``size`` bytes; the transport sends what the socket does not accept."""
        self.sent_bytes += size
        transport = self._transport
        if size <= JOIN_BYTES:
            chunks = [b"".join(chunks)]
        if self._takes_slices:
            transport.writelines(chunks)
            return
        if self._remainder is not None:
            self._remainder.add(chunks)
            return
        if self._descriptor >= 0 and not transport.get_write_buffer_size():
            # A broken socket ends the connection at once: requests received after it would be
            # handled without a reader of their responses, which would be built in memory.
            try:
                send(self._descriptor, chunks)
            except OSError as error:
                self._failed(error)
                return
            if not chunks or (size > JOIN_BYTES and self._leave_remainder(chunks)):
                return
        try:
            chunks = in_memory(chunks)
        except OSError as error:
            self._failed(error)
            return
        for chunk in chunks:  # not writelines: asyncio's forgot flow control (3.12.0 to 3.13.1)
            transport.write(chunk)

    def drop(self) -> None:
        """Stop sending parts of files."""
        remainder, self._remainder = self._remainder, None
        if remainder is not None:
            remainder.cancel()

    def end(self) -> None:
        """Stop sending: the connection has ended."""
        self._descriptor = -1  # The number may belong to another connection soon.
        self.drop()
        self._owner = None

    def _leave_remainder(self, chunks: Chunks) -> bool:
        """Send chunks of files as the socket takes them; False if there are none, or it is
        impossible.
        """
        if not has_slices(chunks):
            return False
        try:
            self._remainder = Remainder(self._descriptor, chunks, self._sent, self._failed)
        except OSError:  # no descriptor is free
            return False
        if self._owner is not None:
            self._owner.writing_waits()
        return True

    def _sent(self, left: Chunks) -> None:
        self._remainder = None
        if self._owner is not None:
            self._owner.writing_goes_on()
        for chunk in left:
            self._transport.write(chunk)

    def _failed(self, error: OSError) -> None:
        self._remainder = None
        if self._owner is not None:
            self._owner.writing_failed(error)
