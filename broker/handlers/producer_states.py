"""DescribeProducers 0: what partitions know of their producers, to find a transaction that hangs.

The answer comes from where appends are judged, so it is what the next batch will meet (KIP-664).
"""

from __future__ import annotations

from broker.catalogue import Catalogue
from broker.dispatch import RequestContext, serves
from broker.topic_names import name_problem
from protocol.errors import ErrorCode
from protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


@serves(DESCRIBE_PRODUCERS, versions=(0, 0))
def describe_producers(
    context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """List the producers of each partition asked for."""
    catalogue = context.broker.catalogue
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                topic.name,
                [_described(catalogue, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _described(catalogue: Catalogue, topic: str, index: int) -> PartitionResponse:
    problem = name_problem(topic)
    if problem is not None:
        return PartitionResponse(index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    partition = catalogue.partition(topic, index)
    if partition is None:
        return PartitionResponse(
            index,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        )
    rows = partition.log.producers.producers()
    return PartitionResponse(index, active_producers=[ProducerState(*row) for row in rows])
