"""The partitions of both coordinators, which a broker gains and loses in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE

if TYPE_CHECKING:
    from barnabas.broker.coordination.groups import Groups
    from barnabas.broker.coordination.transactions import Transactions


class MovingShards:
    """Forwarder of gained and lost partitions to their coordinators; see ``Shards``."""

    def __init__(self, groups: Groups, transactions: Transactions) -> None:
        self._coordinators: dict[str, Groups | Transactions] = {
            GROUP_OFFSETS: groups,
            TRANSACTION_STATE: transactions,
        }

    def gain(self, topic: str, index: int) -> None:
        """Coordinate the keys of a partition unless it does already: a new topic gains all."""
        coordinator = self._coordinators.get(topic)
        if coordinator is None:
            return  # An internal topic without a coordinator.
        coordinator.is_coordinator()  # Makes it notice a topic that was deleted and created again.
        if coordinator.log.shard_at(index) is None:
            coordinator.gain(index)

    def lose(self, topic: str, index: int) -> None:
        """Forget the keys of a partition, unless its log has not been served yet."""
        coordinator = self._coordinators.get(topic)
        if coordinator is not None and coordinator.log.shard_at(index) is not None:
            coordinator.lose(index)
