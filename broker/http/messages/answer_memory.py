"""Memory of the HTTP port: one budget in bytes for all that responses make the broker hold.

Rules of this file:

* **Bytes count before they exist.** A batch that is going to be expanded counts as the largest
  expansion that is allowed, since a few KB can become the whole of it.
* **Work comes to an end, a client might not read.** Bytes of work (``begin_work``) are awaited in
  turn. Bytes that wait for a client (``hold``) leave room for one piece of work, so a client that
  reads nothing stops no work; a response that finds no room is refused.
* **No user keeps the others out.** Where there is no room, the oldest unread response of the user
  that holds the most is closed, unless that is the user of the new response.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from barnabas.protocol.errors import ErrorCode, KafkaError

MIB: Final = 1024 * 1024
LIMIT_BYTES: Final = 240 * MIB
"""Maximum size of all responses in memory. SECURITY.md promises 400 MiB; the difference is for the
allocator."""
WORK_BYTES_MAX: Final = 132 * MIB
"""Bytes of one piece of work: two copies of the largest batch, and records of earlier batches."""


class Holding:
    """Bytes that one response holds until it is written or closed."""

    def __init__(self, memory: AnswerMemory, owner: str) -> None:
        self.owner = owner
        """The user to whom the bytes are counted."""
        self.size_bytes = 0
        self.close_response: Callable[[], None] | None = None
        """Ends the response in favor of another user's."""
        self._memory = memory
        self._on_release: list[Callable[[], None]] = []

    def hold(self, size_bytes: int) -> None:
        """Count more bytes; raises KafkaError (THROTTLING_QUOTA_EXCEEDED) if there is no room."""
        self._memory.hold(self, size_bytes)

    def on_release(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once all bytes are released."""
        self._on_release.append(callback)

    def release(self) -> None:
        """Release all bytes and call the callbacks; a second call does nothing."""
        self._memory.forget(self)
        self.close_response = None  # It refers to what refers to this object: a cycle.
        callbacks, self._on_release = self._on_release, []
        for each in callbacks:
            each()


class AnswerMemory:
    """The budget of one HTTP port."""

    def __init__(
        self, limit_bytes: int = LIMIT_BYTES, work_bytes_max: int = WORK_BYTES_MAX
    ) -> None:
        self.held_bytes = 0
        """Bytes that wait for clients."""
        self.work_bytes = 0
        """Bytes of work under way."""
        self._limit_bytes = limit_bytes
        self._work_bytes_max = work_bytes_max
        # The oldest first.
        self._holdings: dict[Holding, None] = {}
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def holding(self, owner: str) -> Holding:
        """Return an empty holding for a response to ``owner``."""
        holding = Holding(self, owner)
        self._holdings[holding] = None
        return holding

    def hold(self, holding: Holding, size_bytes: int) -> None:
        """Count bytes for a response; raises KafkaError if there is no room for them."""
        most = self._limit_bytes - self._work_bytes_max
        while self.held_bytes + size_bytes > most:
            if not self.close_oldest(holding.owner, lambda each: each.size_bytes, size_bytes):
                words = (
                    f"a response of {holding.size_bytes + size_bytes} bytes has no room beside "
                    f"{self.held_bytes - holding.size_bytes} bytes of responses that clients have "
                    "not read: read those, or retry in a few seconds"
                )
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, words)
        self.held_bytes += size_bytes
        holding.size_bytes += size_bytes

    def close_oldest(self, owner: str, weight: Callable[[Holding], int], added: int) -> bool:
        """Close the oldest unread response of the user that has the most by ``weight``.

        Return False if that is ``owner``, with ``added`` more, or if there is none to close.
        """
        weights: Counter[str] = Counter()
        for each in self._holdings:
            weights[each.owner] += weight(each)
        weights[owner] += added
        most = max(weights.values())
        if weights[owner] >= most:
            return False
        for each in self._holdings:
            close = each.close_response
            if weights[each.owner] == most and weight(each) and close is not None:
                each.release()
                close()
                return True
        return False

    def forget(self, holding: Holding) -> None:
        """Release all bytes of a response."""
        if holding in self._holdings:
            del self._holdings[holding]
            self.held_bytes -= holding.size_bytes
            holding.size_bytes = 0
            self._admit()

    async def begin_work(self, size_bytes: int) -> Callable[[], None]:
        """Count bytes of work, after a wait for room in turn; return a function that ends the
        work.
        """
        size_bytes = min(size_bytes, self._work_bytes_max)
        if self._waiting or not self._has_room(size_bytes):
            await self._wait_for_room(size_bytes)
        else:
            self.work_bytes += size_bytes

        def end() -> None:
            self.work_bytes -= size_bytes
            self._admit()

        return end

    async def _wait_for_room(self, size_bytes: int) -> None:
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, admitted))
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.cancelled():
                self._waiting = deque(each for each in self._waiting if each[1] is not admitted)
            else:
                self.work_bytes -= size_bytes
            self._admit()
            raise

    def _has_room(self, size_bytes: int) -> bool:
        return self.held_bytes + self.work_bytes + size_bytes <= self._limit_bytes

    def _admit(self) -> None:
        """Admit waiting work in its order of arrival."""
        while self._waiting and self._has_room(self._waiting[0][0]):
            size_bytes, admitted = self._waiting.popleft()
            if not admitted.cancelled():
                self.work_bytes += size_bytes
                admitted.set_result(None)
