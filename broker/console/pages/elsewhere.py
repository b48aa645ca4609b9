"""Words for a partition that another broker leads: the console of one broker shows its own logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.topic import LogNotHere
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.cluster.view import ClusterView
    from barnabas.broker.metadata.topic import Topic

NAMED_MOST: Final = 5
"""Maximum number of partitions of this broker that a message lists."""


def with_leader(error: KafkaError, view: ClusterView) -> KafkaError:
    """Return the error with the name of the partition's leader, if it is about a leader."""
    if not isinstance(error, LogNotHere) or error.code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return error
    partition = error.partition
    name = f"partition {partition.index} of {partition.topic.name}"
    leader_id = view.leader_of(partition.partition_id).node_id
    leader = next((node for node in view.nodes if node.node_id == leader_id), None)
    if leader is None:
        words = f"no broker in service leads {name} now; try again"
    elif leader_id == view.node_id:
        words = f"this broker (node {leader_id}) leads {name} and does not serve it yet; try again"
    else:
        hosts = sorted({host for host, _ in leader.endpoints.values()})
        at = f" at {', '.join(hosts)}" if hosts else ""
        words = (
            f"node {leader_id}{at} leads {name}, not this broker (node {view.node_id}); "
            f"open the console of node {leader_id}{_choice(partition.topic)}"
        )
    return KafkaError(error.code, words)


def _choice(topic: Topic) -> str:
    """Return the partitions of the topic that this broker leads, as text."""
    here = [str(partition.index) for partition, _ in topic.partitions_here()]
    if not here:
        return ""
    more = " and others" if len(here) > NAMED_MOST else ""
    return f", or choose partitions of this broker: {','.join(here[:NAMED_MOST])}{more}"
