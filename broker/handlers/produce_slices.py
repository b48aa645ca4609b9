"""A Produce request of very many batches, handled in parts with turns of the loop between them."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from barnabas.broker.api.dispatch import CloseConnection, Deferred, Parked, RequestContext
from barnabas.protocol.messages.produce import (
    PRODUCE,
    NodeEndpoint,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.storage.runtime.clock import counter_seconds

HandleProduce: TypeAlias = Callable[
    [RequestContext, ProduceRequest], ProduceResponse | Deferred[ProduceResponse] | None
]

MANY_BATCHES: Final = 200
"""Batches of one part, which takes a few milliseconds; a request with more is divided."""
SLICE_SECONDS: Final = 0.005
"""Time for parts before the loop handles other requests."""


class SlicedProduce(Parked[ProduceResponse]):
    """A Produce request of very many batches, handled in parts.

    Each part is a request of its own, with this object in the place of its connection. The next one
    is handled after the batches of the one before have their places. It is not completed early
    (S12).
    """

    __slots__ = (
        "_answers",
        "_context",
        "_gone",
        "_handle",
        "_loop",
        "_owed",
        "_parts",
        "_unanswered",
    )

    def __init__(
        self,
        handle: HandleProduce,
        loop: AbstractEventLoop,
        context: RequestContext,
        request: ProduceRequest,
    ) -> None:
        """``handle`` takes each part."""
        super().__init__()
        self._handle = handle
        self._loop = loop
        self._context = context
        self._gone = False
        self._unanswered = request.acks == 0
        self._owed = 0
        self._answers: list[ProduceResponse | Deferred[ProduceResponse]] = []
        if not context.records_stay:
            own_records(request)
        self._parts: Iterator[ProduceRequest] | None = _parts(request)
        loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Handle parts for a slice of time."""
        ends = counter_seconds() + SLICE_SECONDS
        while not self._gone and self._parts is not None:
            if counter_seconds() >= ends:
                self._loop.call_soon(self._go_on)
                return
            part = next(self._parts, None)
            if part is None:
                self._parts = None
            elif self._take(part):
                return
        self._end()

    def _take(self, part: ProduceRequest) -> bool:
        """Handle one part; return whether the others wait for it."""
        try:
            outcome = self._handle(self._context, part)
        except CloseConnection as closing:
            self.close(f"api={PRODUCE.name} reason={closing}")
            return True
        except Exception as error:  # noqa: BLE001  the top frame of this turn of the loop
            self._gone = True
            self.fail(error)
            return True
        if outcome is None:
            return False
        assert isinstance(outcome, ProduceResponse | Deferred)
        self._answers.append(outcome)
        if not isinstance(outcome, Deferred) or outcome.response is not None:
            return False
        outcome.route = self.route
        outcome.connection = self
        self._owed += 1
        return outcome.parked

    def answered(self, deferred: Deferred[ProduceResponse]) -> None:
        """Count a part that is durable, or that needs no answer, as handled."""
        self._owed -= 1
        if deferred.parked:
            self._loop.call_soon(self._go_on)
        else:
            self._end()

    def bug(self, name: str, error: BaseException) -> None:
        """Report the internal error that a part failed by."""
        self._gone = True
        if self.connection is not None:
            self.connection.bug(name, error)

    def close(self, reason: str) -> None:
        """Close the client's connection."""
        self._gone = True
        if self.connection is not None:
            self.connection.close(reason)

    def _end(self) -> None:
        """Complete the response once all parts are handled."""
        if self._gone or self._owed or self._parts is not None or self.chunks is not None:
            return
        if self._unanswered:
            self.complete_unanswered()
            return
        topics: list[TopicProduceResponse] = []
        endpoints: dict[int, NodeEndpoint] = {}
        for answer in self._answers:
            response = answer.response if isinstance(answer, Deferred) else answer
            assert response is not None
            endpoints |= {each.node_id: each for each in response.node_endpoints}
            for topic in response.responses:
                last = topics[-1] if topics else None
                if last is None or (last.name, last.topic_id) != (topic.name, topic.topic_id):
                    topics.append(topic)
                else:
                    last.partition_responses += topic.partition_responses
        self._answers = []  # They lead back here.
        self.complete(ProduceResponse(topics, node_endpoints=list(endpoints.values())))

    def abandoned(self) -> None:
        """Stop: the client has gone."""
        self._gone = True
        answers, self._answers = self._answers, []
        for answer in answers:
            if isinstance(answer, Deferred):
                answer.connection = None
                answer.abandoned()


def has_many(request: ProduceRequest) -> bool:
    """Return whether all batches of a request at once might hold the loop."""
    topics = request.topic_data
    if len(topics) > MANY_BATCHES:
        return True
    count = 0
    for topic in topics:
        count += len(topic.partition_data)
    return count > MANY_BATCHES


def _parts(request: ProduceRequest) -> Iterator[ProduceRequest]:
    """Yield the same batches in requests of ``MANY_BATCHES`` at most."""
    found: list[TopicProduceData] = []
    room = MANY_BATCHES
    for topic in request.topic_data:
        start = 0
        while True:
            batches = topic.partition_data[start : start + room]
            found.append(TopicProduceData(topic.name, topic.topic_id, batches))
            start += len(batches)
            room -= max(1, len(batches))
            if not room:
                yield _part(request, found)
                found, room = [], MANY_BATCHES
            if start >= len(topic.partition_data):
                break
    if found:
        yield _part(request, found)


def _part(request: ProduceRequest, topics: list[TopicProduceData]) -> ProduceRequest:
    return ProduceRequest(request.transactional_id, request.acks, request.timeout_ms, topics)


def own_records(request: ProduceRequest) -> None:
    """Copy all batches, since the connection uses their memory again."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = memoryview(bytearray(data.records))
