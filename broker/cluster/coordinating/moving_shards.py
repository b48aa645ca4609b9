"""The partitions of both coordinators, by the names of their topics: they come and go alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE

if TYPE_CHECKING:
    from barnabas.broker.coordination.groups import Groups
    from barnabas.broker.coordination.transactions import Transactions


class MovingShards:
    """Tells each coordinator of its partitions; see ``Shards`` in
    ``cluster/leading/leadership.py``.
    """

    def __init__(self, groups: Groups, transactions: Transactions) -> None:
        self._coordinators: dict[str, Groups | Transactions] = {
            GROUP_OFFSETS: groups,
            TRANSACTION_STATE: transactions,
        }

    def gain(self, topic: str, index: int) -> None:
        """Coordinate the keys of a partition, unless that is so: of a new topic all are gained."""
        coordinator = self._coordinators.get(topic)
        if coordinator is None:
            return  # An internal topic that nobody here coordinates anything by.
        coordinator.is_coordinator()  # So that it knows of a topic that was made again.
        if coordinator.log.shard_at(index) is None:
            coordinator.gain(index)

    def lose(self, topic: str, index: int) -> None:
        """Forget the keys of a partition, unless its log was not served yet."""
        coordinator = self._coordinators.get(topic)
        if coordinator is not None and coordinator.log.shard_at(index) is not None:
            coordinator.lose(index)
