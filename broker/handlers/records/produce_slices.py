"""A Produce request of very many batches, handled in parts with turns of the loop between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from barnabas.broker.api.dispatch import Deferred, RequestContext
from barnabas.broker.api.driver import Run, response_of
from barnabas.broker.api.waits import Turn
from barnabas.protocol.messages.produce import (
    NodeEndpoint,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

ProduceAnswer: TypeAlias = (
    ProduceResponse | Deferred[ProduceResponse] | Run[ProduceResponse | None] | None
)
HandleProduce: TypeAlias = Callable[[RequestContext, ProduceRequest], ProduceAnswer]

MANY_BATCHES: Final = 200
"""Batches of one part, which takes a few milliseconds; a request with more is divided."""


async def in_slices(
    handle: HandleProduce, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | None:
    """Handle a Produce request of very many batches in parts.

    ``handle`` takes each part like a request of its own, after the batches of the one before have
    their places. The request is not completed early (S12).
    """
    answers: list[Any] = []
    for number, part in enumerate(_parts(request)):
        if number:
            await Turn()
        outcome = handle(context, part)
        if isinstance(outcome, Run):  # It begins to wait in the turn that placed its batches.
            outcome = await response_of(outcome)
        if outcome is not None:
            answers.append(outcome)
    if request.acks == 0:
        return None
    return _joined([await response_of(each) for each in answers])


def _joined(responses: list[ProduceResponse]) -> ProduceResponse:
    """Combine the responses to the parts of a request into its response."""
    topics: list[TopicProduceResponse] = []
    endpoints: dict[int, NodeEndpoint] = {}
    for response in responses:
        endpoints |= {each.node_id: each for each in response.node_endpoints}
        for topic in response.responses:
            last = topics[-1] if topics else None
            if last is None or (last.name, last.topic_id) != (topic.name, topic.topic_id):
                topics.append(topic)
            else:
                last.partition_responses += topic.partition_responses
    return ProduceResponse(topics, node_endpoints=list(endpoints.values()))


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
