"""Placement of new partitions: replication factors and manual assignments.

A standalone broker holds one replica of everything: it accepts only the replication factor 1 (-1
means the default) and manual assignments to itself. In a cluster the store keeps the copies (see
broker/cluster/damaged_copies.py): any replication factor is accepted and reported. The first
replica of a manual assignment is the broker that must lead the partition, which is pinned there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Final

from barnabas.broker.cluster.moves import Moves
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.topic_configs import REPLICATION_FACTOR
from barnabas.broker.config.topic_values import effective_value
from barnabas.broker.metadata.topic import Partition
from barnabas.protocol.errors import ErrorCode, KafkaError

USE_DEFAULT: Final = -1


class Placement:
    """Checks of the replicas that a request specifies, standalone or in a cluster."""

    def __init__(self, brokers: Brokers, moves: Moves | None) -> None:
        self._in_service = {node.node_id for node in brokers.view.nodes}
        self._fenced = {node.node_id for node in brokers.view.fenced}
        self._moves = moves

    @property
    def is_in_cluster(self) -> bool:
        """Whether topics can have another replication factor than 1."""
        return self._moves is not None

    def check_replicas(self, broker_ids: Sequence[int]) -> None:
        """Raise KafkaError unless the replicas of a partition are brokers, each of them once.

        Some of them can be fenced, the preferred leader, too, but not all.
        """
        check_replicas(broker_ids, self._in_service | self._fenced)
        if self._in_service.isdisjoint(broker_ids):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"All brokers specified in the manual partition assignment {list(broker_ids)} are "
                "fenced.",
            )

    def check_factor(self, factor: int) -> None:
        """Raise KafkaError for a replication factor that no topic can have."""
        if factor != USE_DEFAULT and factor < 1:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if factor > 1 and self._moves is None:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): The target replication "
                f"factor of {factor} cannot be reached because only 1 broker(s) are registered or "
                "some brokers have all their log directories cordoned.",
            )

    def configs_with(
        self, factor: int, configs: Mapping[str, str | None], broker_config: BrokerConfig
    ) -> Mapping[str, str | None]:
        """Return a new topic's settings with the requested replication factor."""
        if factor in {USE_DEFAULT, broker_config.default_replication_factor}:
            return configs
        return configs if self._moves is None else {**configs, REPLICATION_FACTOR: str(factor)}

    def factor_of(self, configs: Mapping[str, str], broker_config: BrokerConfig) -> int:
        """Return the replication factor reported for a topic with these settings."""
        if self._moves is None:
            return 1
        factor = effective_value(REPLICATION_FACTOR, configs, broker_config)
        assert isinstance(factor, int)
        return max(factor, 1)

    async def place(self, partitions: Sequence[Partition], assigned: Mapping[int, int]) -> None:
        """Pin new partitions, durably, to the assigned leaders, given by partition index."""
        pins: dict[int, int | None] = {
            each.partition_id: assigned[each.index] for each in partitions if each.index in assigned
        }
        # A standalone broker leads all partitions anyway.
        if pins and self._moves is not None:
            await self._moves.pin(pins)


def check_replicas(broker_ids: Sequence[int], node_ids: Collection[int]) -> None:
    """Raise KafkaError unless the replicas of a partition are among some brokers, each once."""
    problem = "" if broker_ids else "an empty replica list."
    for before, broker_id in pairwise([None, *sorted(broker_ids)]):
        if broker_id not in node_ids:
            problem = f"broker {broker_id}, but no such broker is registered."
        elif broker_id == before:
            problem = f"the broker {broker_id} more than once."
        if problem:
            break
    if problem:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes {problem}",
        )


def check_sizes(assignments: Sequence[Sequence[int]]) -> None:
    """Raise KafkaError unless all partitions of a topic have the same number of replicas."""
    for each in assignments:
        if len(each) != len(assignments[0]):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes a partition with {len(each)} "
                "replica(s), but this is not consistent with previous partitions, which have "
                f"{len(assignments[0])} replica(s).",
            )
