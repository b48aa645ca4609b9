"""Where in a log to begin: as typed by people, and as offsets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from barnabas.broker.cli.cluster_view import Cluster, Partition, TopicPartition, partition_text
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.offsets import EARLIEST, LATEST, offsets_at

_NO_OFFSET = -1


class Where:
    """Where to begin: an offset (negative: from the end), the end, or a time in ms."""

    def __init__(self, text: str) -> None:
        """Read what was typed; raises CommandError."""
        self.offset: int | None = None
        self.timestamp: int | None = None
        self.at_beginning = text in {"beginning", "earliest"}
        if text.startswith("@"):
            self.timestamp = milliseconds(text[1:])
        elif not self.at_beginning and text not in {"end", "latest"}:
            try:
                self.offset = int(text)
            except ValueError:
                raise CommandError(
                    f"{text} is not beginning, end, an offset or @TIME", USAGE
                ) from None

    def positions(
        self, cluster: Cluster, partitions: Sequence[Partition], isolation: str
    ) -> dict[TopicPartition, int]:
        """Return the first offset to read of each partition.

        Raises CommandError where a log does not hold the offset that was asked for.
        """
        starts = offsets_at(cluster, partitions, EARLIEST, isolation)
        if self.at_beginning:
            return starts
        ends = offsets_at(cluster, partitions, LATEST, isolation)
        if self.timestamp is not None:
            found = offsets_at(cluster, partitions, self.timestamp, isolation)
            return {
                topic_partition: ends[topic_partition] if offset == _NO_OFFSET else offset
                for topic_partition, offset in found.items()
            }
        return {
            each.topic_partition: self._position(
                each.topic_partition, starts[each.topic_partition], ends[each.topic_partition]
            )
            for each in partitions
        }

    def _position(self, topic_partition: TopicPartition, start: int, end: int) -> int:
        if self.offset is None:
            return end
        if self.offset < 0:
            return max(start, end + self.offset)
        if start <= self.offset <= end:
            return self.offset
        raise CommandError(
            f"{partition_text(topic_partition)}: offset {self.offset} is not there, "
            f"only {start} to {end}"
        )


def milliseconds(text: str) -> int:
    """Read a time: milliseconds since 1970, or ISO 8601, in UTC unless it says otherwise."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            f"{text} is no time: milliseconds, or like 2026-01-31T12:00:00", USAGE
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
