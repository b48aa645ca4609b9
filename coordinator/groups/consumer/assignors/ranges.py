"""Range: of every topic, each member gets a run of partitions; not sticky, as in Kafka.

Equal numbers of partitions of two topics with the same subscribers end up on the same members, so
that records with equal keys meet. Members are sorted by their instance ids, the dynamic ones after
them by their member ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.coordinator.groups.consumer.assignors.specification import PartitionCount, Subscribers
from barnabas.coordinator.groups.consumer.member import Partitions


def assign(subscribers: Subscribers, partition_count: PartitionCount) -> dict[str, Partitions]:
    """Divide every topic into runs of partitions for its subscribers."""

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = subscribers[member_id].instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    takers: dict[bytes, list[str]] = {}
    for member_id in sorted(subscribers, key=place):
        for topic_id in subscribers[member_id].topic_ids:
            takers.setdefault(topic_id, []).append(member_id)
    given: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in subscribers}
    for topic_id, members in takers.items():
        runs = _runs(partition_count(topic_id), members)
        for member_id, run in runs.items():
            given[member_id][topic_id] = frozenset(run)
    return dict(given)


def _runs(count: int, members: Sequence[str]) -> dict[str, range]:
    """Divide ``count`` partitions into one run for each member; members without any are absent."""
    least, rest = divmod(count, len(members))
    runs = {}
    start = 0
    for number, member_id in enumerate(members):
        end = start + least + (number < rest)
        if end > start:
            runs[member_id] = range(start, end)
        start = end
    return runs
