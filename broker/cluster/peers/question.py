"""One question to a peer: encoded, with its time, and answered once."""

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
    """A request on its way; ``tell`` ends it, whoever calls that first."""

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
        """Encode the request now: what waits is counted in bytes, and changes no more."""
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
        """Have ``on_late`` called unless this is told before the time is up."""
        self._timer = clock.call_later(timeout_ms, on_late, self)

    def tell(self, answer: Any) -> None:  # noqa: ANN401  the Api's, or NoAnswer
        """Call back, in a turn of its own: an error there is nobody else's."""
        assert not self.is_told, f"{self.api.name} is told twice"
        self.is_told = True
        self.body = []
        if self._timer is not None:
            self._timer.cancel()
        self._loop.call_soon(self._on_answer, answer)

    def fail(self, failure: Failure, reason: str) -> None:
        """Say that there is no answer."""
        self.tell(NoAnswer(failure, reason, self.was_sent))
