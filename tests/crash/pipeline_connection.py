"""A client's connection to a broker that has no socket: real frames, pipeline and handlers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from types import SimpleNamespace
from typing import Any, Protocol

from barnabas.broker.api.client_seen import ClientSeen
from barnabas.broker.api.dispatch import Routes
from barnabas.broker.network.flow import Backlog
from barnabas.broker.network.pipeline import TURN_REQUESTS, Pipeline
from barnabas.broker.runtime.clock import SystemClock
from barnabas.broker.security.acls.access import Generation
from barnabas.broker.security.quotas.quotas import Quotas
from barnabas.broker.security.session import NOBODY
from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.frame import FrameBuffer, RingPool

IN_FLIGHT = 8
RING_BYTES = 1 << 13
FRAME_BYTES = 1 << 16


class Served(Protocol):
    """The broker, as far as a connection knows it."""

    routes: Routes

    def queue_delivery(self, connection: PipelineConnection) -> None:
        """Call ``deliver`` at the end of this turn of the loop."""


class PipelineConnection:
    """Both ends: what ``send`` sends is handled at once, its response arrives when it leaves."""

    endpoint = ("localhost", 9092)
    listener_name = "PLAINTEXT"
    link = None
    peer_host = "127.0.0.1"
    frame_is_owned = False
    gate = None
    session = NOBODY

    def __init__(self, broker: Served, client_id: str) -> None:
        self.seen = ClientSeen()
        self._broker = broker
        self._client = ClientConnection(client_id)
        self._awaited: deque[Callable[[Any], None]] = deque()
        self._frames = FrameBuffer(RingPool(RING_BYTES), FRAME_BYTES)
        intake: Any = SimpleNamespace(
            frames=self._frames, begin_large=lambda: None, handled=lambda: None
        )
        limits: Any = SimpleNamespace(
            routes=broker.routes,
            large=None,
            backlog=Backlog(),
            generation=Generation(),
            quotas=Quotas(SystemClock(), Generation()),
            clock=SystemClock(),
            pipeline_limit=IN_FLIGHT,
            write_buffer_bytes=FRAME_BYTES,
            at_work=set(),
        )
        self._pipeline = Pipeline(self, intake, limits)

    def send(self, api: Any, version: int, request: Any, respond: Callable[[Any], None]) -> None:
        """Send a request; ``respond`` is called with its response."""
        _, chunks = self._client.request(api, version, request)
        frame = b"".join(bytes(chunk) for chunk in chunks)
        self._frames.writable()[: len(frame)] = frame
        self._frames.received(len(frame))
        self._awaited.append(respond)
        self.deliver()

    def deliver(self) -> None:
        """Handle what may be handled, and receive the responses whose turn has come."""
        pipeline = self._pipeline
        pipeline.collect()
        if not pipeline.pauses:
            pipeline.process(perf_counter_ns(), TURN_REQUESTS)
            pipeline.collect()
        out, pipeline.out, pipeline.out_bytes = pipeline.out, [], 0
        self._client.receive_data(b"".join(bytes(chunk) for chunk in out))
        while (received := self._client.next_response()) is not NEED_DATA:
            self._awaited.popleft()(received[1])

    def abandon(self) -> None:
        """Drop the open requests after the client or the broker has disconnected."""
        self._pipeline.abandon()

    # ------------------------------------------------------------------------- the pipeline's line

    def queue_delivery(self) -> None:
        self._broker.queue_delivery(self)

    def close(self, reason: str) -> None:
        raise AssertionError(f"the broker hung up: {reason}")

    def bug(self, name: str, error: BaseException) -> None:
        raise AssertionError(f"{name} failed") from error
