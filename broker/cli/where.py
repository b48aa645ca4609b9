"""Positions in partitions: as people type them, and as offsets."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.broker.admin.positions import BadPosition, Position
from barnabas.broker.admin.requests import TopicPartition
from barnabas.broker.cli.cluster_view import Cluster, Partition, partition_text
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.records.offsets import EARLIEST, LATEST, offsets_at


class Where:
    """A position that was typed, on the partitions of a cluster."""

    def __init__(self, text: str) -> None:
        """Parse a position; raises CommandError."""
        try:
            self._position = Position.parse(text)
        except BadPosition as problem:
            raise CommandError(str(problem), USAGE) from None

    @property
    def at_beginning(self) -> bool:
        """Whether the start is the beginning of each partition."""
        return self._position.at_beginning

    def positions(
        self, cluster: Cluster, partitions: Sequence[Partition], isolation: str
    ) -> dict[TopicPartition, int]:
        """Return the first offset to read of each partition.

        Raises CommandError if a partition does not have the offset.
        """
        starts = offsets_at(cluster, partitions, EARLIEST, isolation)
        if self.at_beginning:
            return starts
        ends = offsets_at(cluster, partitions, LATEST, isolation)
        time_ms = self._position.time_ms
        found = {} if time_ms is None else offsets_at(cluster, partitions, time_ms, isolation)
        positions = {}
        for each, end in ends.items():
            try:
                positions[each] = self._position.within(starts[each], end, found.get(each))
            except BadPosition as problem:
                raise CommandError(f"{partition_text(each)}: {problem}") from None
        return positions
