"""DescribeProducers 0: what partitions know of their producers, to find a transaction that hangs.

The response comes from where appends are judged, so it is what the next batch will meet (KIP-664).
Of partitions that another broker leads it comes from there (``producers_elsewhere.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.api.checks import (
    CLUSTER,
    CLUSTER_ACTION,
    READ,
    TOPIC,
    TOPIC_DENIED,
    denied,
)
from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.api.waits import Turn
from barnabas.broker.cluster.peers.interface import Peers
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.handlers.transactions.producers_elsewhere import (
    NO_ROOM,
    PRODUCERS_PER_ANSWER_MAX,
    ProducersElsewhere,
)
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.topic import NO_EPOCH, Partition
from barnabas.broker.metadata.topic_names import name_problem
from barnabas.broker.runtime.host import Host
from barnabas.broker.security.acls.access import Access
from barnabas.broker.security.acls.operations import CLUSTER_NAME
from barnabas.coordinator.transactions.state import TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

PARTITIONS_PER_TURN = 100
"""Partitions described before the loop may get a turn."""


@serves(DESCRIBE_PRODUCERS, versions=(0, 0), in_slices=True)
async def describe_producers(
    catalogue: Catalogue,
    brokers: Brokers,
    peers: Peers | None,
    host: Host,
    context: RequestContext,
    request: DescribeProducersRequest,
) -> DescribeProducersResponse:
    """List the producers of each requested partition."""
    described = _Described(catalogue, context.access)
    # What another broker has forwarded is described here, or not at all.
    if peers is not None and context.connection.link is None:
        elsewhere = ProducersElsewhere(brokers, peers, host, PRODUCERS_PER_ANSWER_MAX)
        await described.find_elsewhere(elsewhere, request)
    response = DescribeProducersResponse()
    listed = seen = 0
    for topic in request.topics:
        partitions = TopicResponse(topic.name)
        for index in topic.partition_indexes:
            if listed < PRODUCERS_PER_ANSWER_MAX:
                partition = described.of(topic.name, index)
            else:
                partition = PartitionResponse(index, ErrorCode.INVALID_REQUEST, NO_ROOM)
            listed += len(partition.active_producers)
            partitions.partitions.append(partition)
            seen += 1
            if seen % PARTITIONS_PER_TURN == 0:
                await Turn()
        response.topics.append(partitions)
    return response


class _Described:
    """The partitions that one client asks for, here and elsewhere."""

    def __init__(self, catalogue: Catalogue, access: Access) -> None:
        self._catalogue = catalogue
        self._access = access
        self._elsewhere: Mapping[TopicPartition, PartitionResponse] = {}

    async def find_elsewhere(
        self, elsewhere: ProducersElsewhere, request: DescribeProducersRequest
    ) -> None:
        """Get descriptions of partitions that other brokers lead."""
        wanted: dict[TopicPartition, Partition] = {}
        seen = 0
        for topic in request.topics:
            if not self._access.may_see(TOPIC, topic.name, READ):
                continue
            for index in topic.partition_indexes:
                partition = self._catalogue.partition(topic.name, index)
                if (
                    partition is not None
                    and partition.topic_partition not in wanted
                    and elsewhere.is_replica(partition)
                ):
                    wanted[partition.topic_partition] = partition
                seen += 1
                if seen % PARTITIONS_PER_TURN == 0:
                    await Turn()
        if wanted:
            self._elsewhere = await elsewhere.describe(wanted)

    def of(self, topic: str, index: int) -> PartitionResponse:
        """Return the producers of a partition, or the error code that the client gets."""
        problem = name_problem(topic)
        if problem is not None:
            return PartitionResponse(index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        # Brokers forward for clients that may read the topic, whether they may themselves or not.
        of_broker = CLUSTER_ACTION, CLUSTER, CLUSTER_NAME
        if not self._access.may_either((READ, TOPIC, topic), of_broker):
            message = denied(TOPIC_DENIED, READ, TOPIC, topic).message
            return PartitionResponse(index, TOPIC_DENIED, message)
        partition = self._catalogue.partition(topic, index)
        if partition is None:
            return PartitionResponse(
                index,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )
        # The leaders took their time: the lease of this broker may have ended meanwhile.
        code = partition.leader_epoch_error(NO_EPOCH)
        if code == ErrorCode.NONE:
            rows = partition.log_here().producers.producers()
            return PartitionResponse(index, active_producers=[ProducerState(*row) for row in rows])
        elsewhere = self._elsewhere.get(partition.topic_partition)
        return elsewhere or PartitionResponse(index, code, code.message)
