"""The receiving side of one connection: its frames, their memory, and pauses of receiving.

Rules of this file:

* **Requests that arrive whole, in a ring, are not counted**: each arrival costs one comparison.
  What has memory of its own (``FrameBuffer.settle``) is either an incomplete frame, for which a
  Claim stands (frame_budget.py), or whole requests that wait because the connection is not served:
  these are counted as read ahead.
* **The socket is read unless** there is no room, the claim waits, too much was read ahead, or the
  connection ends. ``resume`` checks all of them again.
"""

from __future__ import annotations

from select import POLLERR, POLLHUP, poll
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.network.frame_budget import Claim, FrameBudget
from barnabas.protocol.frame import FrameBuffer, RingPool

if TYPE_CHECKING:
    import asyncio

SLOWEST_BYTES_PER_SECOND: Final = 32 * 1024
"""Minimum rate of a connection with an incomplete frame beyond its time."""

PEER_HAS_GONE: Final = POLLERR | POLLHUP | 0x2000
"""The last is POLLRDHUP, which exists on Linux alone."""


class Owner(Protocol):
    """Parts of the connection that its intake uses."""

    @property
    def is_stranger(self) -> bool:
        """Whether the client is still unknown."""

    @property
    def network(self) -> str:
        """Key of the connection's share of memory."""

    @property
    def is_not_read(self) -> bool:
        """Whether the connection waits for its client to read answers."""

    def close(self, reason: str) -> None:
        """Close the connection, and log the reason."""


class Intake:
    """The receiving side of one connection, between its transport and its requests."""

    __slots__ = (
        "_ahead_bytes",
        "_budget",
        "_claim",
        "_connection",
        "_ended",
        "_partial_since",
        "_paused",
        "_transport",
        "frames",
        "held_bytes",
        "is_lent",
    )

    def __init__(
        self, connection: Owner, budget: FrameBudget, rings: RingPool, max_frame_bytes: int
    ) -> None:
        self.frames = FrameBuffer(rings, max_frame_bytes)
        self.held_bytes = 0
        """Result of ``settle`` when it was last counted."""
        self.is_lent = False
        """Whether a thread uses the frame, which counts until then even if the rest has ended."""
        self._budget = budget
        self._connection: Owner | None = connection
        self._transport: asyncio.Transport
        self._claim: Claim | None = None
        self._ahead_bytes = 0
        self._paused = False
        self._ended = False
        self._partial_since: float | None = None

    def start(self, transport: asyncio.Transport) -> None:
        """Start to receive."""
        self._transport = transport

    # ------------------------------------------------------------------------------- receiving

    def room(self, *, is_served: bool) -> memoryview:
        """Return the memory to receive into while memory is crowded."""
        frames = self.frames
        return frames.writable()[
            : self._budget.receive_most(frames.pending_bytes, is_served=is_served)
        ]

    def settle(self, *, is_served: bool) -> None:
        """Count the unhandled rest, and pause without memory for it.

        Call it when ``FrameBuffer.settle`` returns something else than ``held_bytes``.
        """
        frames = self.frames
        held = self.held_bytes = frames.held_bytes
        missing = frames.missing_bytes if held else 0
        claim = self._claim
        if claim is not None and claim.may_wait:
            if frames.is_large:
                self._budget.arrived(claim, held, missing)
                return
        elif claim is not None:
            if held and missing <= claim.missing_bytes:
                self._budget.arrived(claim, held, missing)
                return
            self.handled()
        # A large frame may still be at work, and the bytes after it are not served.
        is_ahead = not is_served or not missing or self._claim is not None
        self._read_ahead(held if is_ahead else 0)
        if held and not is_ahead:
            self._open(held, missing, may_wait=False)
        elif self._ahead_bytes and self._budget.is_ahead_full:
            self.pause()

    def begin_large(self) -> None:
        """Request the memory of a frame that is too large for a ring."""
        if self._claim is None or not self._claim.may_wait:
            self.handled()
            self._read_ahead(0)
            frames = self.frames
            # It runs unless it has to wait, which is known before this returns.
            claim = self._open(frames.pending_bytes, frames.missing_bytes, may_wait=True)
            if claim.runs and frames.wanted_bytes:
                self._grant()

    def handled(self) -> None:
        """Stop counting a frame, which is no longer in this connection's memory."""
        claim, self._claim = self._claim, None
        if claim is not None:
            self._budget.release(claim)

    def shrink(self) -> None:
        """Release the ring of an idle connection."""
        self.frames.shrink()

    def pause(self) -> None:
        """Stop receiving for now."""
        # A closing transport reads nothing more, and uvloop's raises when told so.
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Resume receiving, unless another pause applies."""
        if not self._paused or self._ended or self.frames.full or self._transport.is_closing():
            return
        if self._claim is None or self._claim.runs:
            self._paused = False
            self._transport.resume_reading()

    def stop(self) -> None:
        """Stop receiving permanently."""
        self.pause()
        self._ended = True

    def release(self) -> None:
        """Drop everything that was received."""
        self._ended = True
        self.frames.release()
        if not self.is_lent:
            self.handled()
        self._read_ahead(0)

    def end(self) -> None:
        """Drop everything: the connection has ended."""
        self.release()
        self._connection = None

    # --------------------------------------------------------------------------------- time limits

    def overdue(self, now: float, receive_timeout: float) -> str:
        """Return the reason why an incomplete frame must end, or "".

        It may take the configured time plus a second for every SLOWEST_BYTES_PER_SECOND that did
        arrive: a slow link is served, a trickle is not. A frame that waits for memory has time.
        """
        if self._claim is not None and not self._claim.runs:
            self._partial_since = None
            return ""
        pending = self.frames.pending_bytes
        if self._partial_since is None:
            self._partial_since = now
        patience = receive_timeout + pending / SLOWEST_BYTES_PER_SECOND
        if now - self._partial_since < patience:
            return ""
        return f"incomplete request, {pending} bytes after {patience:.0f} s"

    def progressed(self) -> None:
        """Restart the timeout of the incomplete frame."""
        self._partial_since = None

    def peer_has_gone(self, descriptor: int) -> bool:
        """Return whether a peer disconnected while nothing was received from it."""
        if not self._paused or descriptor < 0:
            return False
        poller = poll()
        poller.register(descriptor, PEER_HAS_GONE)
        return bool(poller.poll(0))

    # ----------------------------------------------------------------- a Sender to the FrameBudget

    def resume_receiving(self) -> None:
        """Receive the frame for which there is memory now."""
        if self.frames.wanted_bytes:
            self._grant()
        self.resume()

    def pause_receiving(self) -> None:
        """Stop receiving until there is memory."""
        self.pause()

    def give_up(self, reason: str) -> None:
        """Close the connection, and free the memory at once."""
        self.release()
        self.handled()
        if self._connection is not None:
            self._connection.close(f"reason={reason}")

    @property
    def is_stuck(self) -> bool:
        """Return whether the client does not read answers and so keeps a frame from its turn."""
        return self._connection is not None and self._connection.is_not_read

    # --------------------------------------------------------------------------------- private

    def _open(self, held: int, missing: int, *, may_wait: bool) -> Claim:
        connection = self._connection
        assert connection is not None
        claim = self._claim = Claim(
            self,
            connection.network,
            missing,
            is_stranger=connection.is_stranger,
            may_wait=may_wait,
        )
        self._budget.open(claim, held)
        return claim

    def _grant(self) -> None:
        try:
            self.frames.grant()
        except OSError as error:
            self.give_up(f"no memory for a request of {self.frames.wanted_bytes} bytes: {error}")

    def _read_ahead(self, size: int) -> None:
        if size != self._ahead_bytes:
            self._budget.read_ahead(size - self._ahead_bytes)
            self._ahead_bytes = size
