"""DescribeProducers 0: what partitions know of their producers, to find a transaction that hangs.

The answer comes from where appends are judged, so it is what the next batch will meet (KIP-664).
"""

from __future__ import annotations

from barnabas.broker.api.checks import READ, TOPIC, TOPIC_DENIED, denied
from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.security.access import Access
from barnabas.broker.topics.catalogue import Catalogue
from barnabas.broker.topics.topic_names import name_problem
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

PRODUCERS_PER_ANSWER_MAX = 100_000
"""Where an answer ends: a short request can name a partition very often."""

PARTITIONS_PER_TURN = 100
"""Partitions described before the loop may get a turn."""

NO_ROOM = f"One answer has no room for more than {PRODUCERS_PER_ANSWER_MAX} producers."


@serves(DESCRIBE_PRODUCERS, versions=(0, 0), sliced=True)
async def describe_producers(
    catalogue: Catalogue, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """List the producers of each partition asked for."""
    response = DescribeProducersResponse()
    listed = seen = 0
    for topic in request.topics:
        described = TopicResponse(topic.name)
        for index in topic.partition_indexes:
            if listed < PRODUCERS_PER_ANSWER_MAX:
                partition = _described(catalogue, context.access, topic.name, index)
            else:
                partition = PartitionResponse(index, ErrorCode.INVALID_REQUEST, NO_ROOM)
            listed += len(partition.active_producers)
            described.partitions.append(partition)
            seen += 1
            if seen % PARTITIONS_PER_TURN == 0:
                await next_turn()
        response.topics.append(described)
    return response


def _described(catalogue: Catalogue, access: Access, topic: str, index: int) -> PartitionResponse:
    problem = name_problem(topic)
    if problem is not None:
        return PartitionResponse(index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if not access.may(READ, TOPIC, topic):
        message = denied(TOPIC_DENIED, READ, TOPIC, topic).message
        return PartitionResponse(index, TOPIC_DENIED, message)
    partition = catalogue.partition(topic, index)
    if partition is None:
        return PartitionResponse(
            index,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        )
    if partition.log is None:
        code = partition.error_without_log
        return PartitionResponse(index, code, code.message)
    rows = partition.log.producers.producers()
    return PartitionResponse(index, active_producers=[ProducerState(*row) for row in rows])
