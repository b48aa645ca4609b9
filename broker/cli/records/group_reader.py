"""Reading a topic as a member of a group; only offsets of printed records are committed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext

from barnabas.broker.admin.exchange import Partition, TopicPartition, partition_text
from barnabas.broker.admin.offsets import EARLIEST, LATEST, offsets_at, offsets_of
from barnabas.broker.admin.positions import Position
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.interruption import Wait
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cli.records.consumer import WAIT_MS, Consumer
from barnabas.broker.cli.records.group_member import GroupMember, Rebalancing
from barnabas.broker.cli.retries import patiently
from barnabas.broker.client.topic_reader import ReceivedRecord
from barnabas.storage.runtime.clock import monotonic, sleep

COMMIT_SECONDS = 1.0


class GroupReader:
    """A consumer whose partitions come from its group.

    ``position`` is where to begin in partitions for which the group has committed nothing, or an
    offset that is not there any more. Call ``open`` first, and ``close`` even if ``open`` was
    interrupted: after a member that does not leave, the next one waits for its session timeout.
    """

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        topics: list[str],
        position: Position,
        *,
        isolation: str,
        to_the_end: bool,
        wait: Wait = nullcontext,
    ) -> None:
        self._wait = wait
        self._cluster = cluster
        self._topics = topics
        self._position = position
        self._isolation = isolation
        self._to_the_end = to_the_end
        self._member = GroupMember(cluster, group_id, topics, wait)
        self._printed: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._commit_due_s = 0.0
        self._consumer = self._consumer_of({}, {})

    def open(self) -> None:
        """Join the group; raises CommandError."""
        self._consumer = self._join()

    @property
    def at_end(self) -> bool:
        """Whether all records were read that existed when the partitions were assigned."""
        return self._to_the_end and self._consumer.at_end

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """The next offset of each partition that it is assigned."""
        return self._consumer.positions

    def poll(self) -> Iterator[ReceivedRecord]:
        """Yield the records of one round of fetches; raises CommandError."""
        if self._consumer.positions:
            yield from self._consumer.poll()
        else:
            with self._wait():  # The group has more members than there are partitions.
                sleep(WAIT_MS / 1000)

    def printed(self) -> None:
        """Record that all returned records have been printed; stay in the group."""
        self._printed = dict(self._consumer.positions)
        try:
            if monotonic() > self._commit_due_s:
                self._commit()
            self._member.heartbeat()
        except Rebalancing:
            self._commit_before_others_take_over()
            self._consumer = self._join()

    def close(self) -> None:
        """Commit the offsets of the printed records, and leave the group; raises CommandError."""
        self._cluster.close()  # After Ctrl-C answers may still be due on its connections.
        try:
            self._commit_before_others_take_over()
        finally:
            self._member.leave()

    def _commit(self) -> None:
        self._commit_due_s = monotonic() + COMMIT_SECONDS
        news = {
            topic_partition: offset
            for topic_partition, offset in self._printed.items()
            if self._committed.get(topic_partition) != offset
        }
        self._member.commit(news)
        self._committed |= news

    def _commit_before_others_take_over(self) -> None:
        try:
            self._commit()
        except Rebalancing:
            return  # Others have the partitions already, and read again what we could not commit.

    def _join(self) -> Consumer:
        topic_partitions = self._member.join()
        self._committed = self._member.committed()
        positions, ends = patiently(
            self._cluster,
            lambda: self._positions(topic_partitions),
            self._wait,
        )
        self._printed = {}
        self._commit_due_s = monotonic() + COMMIT_SECONDS
        return self._consumer_of(positions, ends)

    def _consumer_of(
        self, positions: dict[TopicPartition, int], ends: dict[TopicPartition, int]
    ) -> Consumer:
        return Consumer(
            self._cluster,
            positions,
            isolation=self._isolation,
            ends=ends if self._to_the_end else None,
            wait=self._wait,
        )

    def _positions(
        self, topic_partitions: list[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        assigned = set(topic_partitions)
        partitions = [
            each
            for topic in self._topics
            for each in self._cluster.partitions(topic)
            if each.topic_partition in assigned
        ]
        starts = self._cluster.run(offsets_at(partitions, EARLIEST, self._isolation))
        ends = self._cluster.run(offsets_at(partitions, LATEST, self._isolation))
        positions: dict[TopicPartition, int] = {}
        fresh: list[Partition] = []
        for each in partitions:
            at = each.topic_partition
            committed = self._committed.get(at)
            if committed is None:
                fresh.append(each)
            elif starts[at] <= committed <= ends[at]:
                positions[at] = committed
            else:
                fresh.append(each)
                _warn_of_lost_offset(at, committed, starts[at], ends[at])
        positions |= self._cluster.run(offsets_of(self._position, fresh, self._isolation))
        return positions, ends


def _warn_of_lost_offset(at: TopicPartition, committed: int, start: int, end: int) -> None:
    print_text(
        f"barnabas: {partition_text(at)}: committed offset {committed} is not there any more, "
        f"only {start} to {end}; reading begins as --offset says",
        file=sys.stderr,
    )
