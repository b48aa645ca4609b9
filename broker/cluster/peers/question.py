"""Request to a peer, with its encoded body, its timeout and its callback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.cluster.peers.interface import Failure, NoAnswer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from barnabas.broker.cluster.peers.interface import OnAnswer
    from barnabas.broker.runtime.clock import Clock
    from barnabas.protocol.api import AnyApi, Chunks


class Question:
    """Request in flight; the first call of ``complete`` ends it."""

    __slots__ = (
        "_loop",
        "_on_answer",
        "_timer",
        "api",
        "body",
        "is_told",
        "size_bytes",
        "version",
        "was_sent",
    )

    def __init__(
        self,
        api: AnyApi,
        version: int,
        request: Any,  # noqa: ANN401  the Api's
        on_answer: OnAnswer,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Encode the request now: the queue counts its bytes, and later changes have no effect."""
        self.api = api
        self.version = version
        self.body: Chunks = api.encode_request(request, version)
        self.size_bytes = sum(map(len, self.body))
        self.was_sent = False
        self.is_told = False
        self._on_answer = on_answer
        self._loop = loop
        self._timer: Any = None

    def start(self, clock: Clock, timeout_ms: float, on_late: Callable[[Question], None]) -> None:
        """Start a timer that calls ``on_late`` unless the request is completed before."""
        self._timer = clock.call_later(timeout_ms, on_late, self)

    def complete(self, answer: Any) -> None:  # noqa: ANN401  the Api's, or NoAnswer
        """Call the callback in a turn of its own, so that its errors reach no other code."""
        assert not self.is_told, f"{self.api.name} is told twice"
        self.is_told = True
        self.body = []
        if self._timer is not None:
            self._timer.cancel()
        self._loop.call_soon(self._on_answer, answer)

    def fail(self, failure: Failure, reason: str) -> None:
        """Complete the request without a response."""
        self.complete(NoAnswer(failure, reason, self.was_sent))
