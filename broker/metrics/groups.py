"""Consumer groups by the names of kafka_exporter: committed offsets and lag.

Lag is the high watermark minus the committed offset, as kafka_exporter counts it: for a
``read_committed`` consumer it is 0 only once open transactions have ended. Partitions of other
leaders are omitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import GAUGE, Family, Sample, labels

if TYPE_CHECKING:
    from barnabas.broker.coordination.groups import Groups
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.coordinator.groups.offset_table import CommittedOffset
    from barnabas.storage.log.partition_log import PartitionLog

SIMPLE_GROUP_STATE = "Empty"
"""State that Kafka reports for a group with offsets only."""

Look = Callable[["CommittedOffset", "PartitionLog | None"], "int | None"]


def group_families(groups: Groups, catalogue: Catalogue) -> Iterator[Family]:
    """Yield members, offsets and lag of groups; those of each partition can be switched off."""
    yield Family("kafka_consumergroup_members", GAUGE, "Members of a group.", _members(groups))
    yield Family("barnabas_groups", GAUGE, "Consumer groups by state.", _states(groups))
    for name, doc, read in (
        ("current_offset", "Committed offset", _offset),
        ("lag", "High watermark minus committed offset", _lag),
    ):
        family = f"kafka_consumergroup_{name}"
        yield Family(
            f"{family}_sum",
            GAUGE,
            f"{doc}, all partitions of a topic.",
            _sums(groups, catalogue, read),
        )
        if catalogue.configs.broker_config.metrics_partitions:
            yield Family(family, GAUGE, f"{doc} of a partition.", _each(groups, catalogue, read))


def _members(groups: Groups) -> Iterator[Sample]:
    for shard in groups.machines:
        for group_id in shard.keys():  # noqa: SIM118  No mapping: a list of what there is.
            group = shard.groups.get(group_id)
            yield labels(consumergroup=group_id), 0 if group is None else len(group.members)


def _states(groups: Groups) -> Iterator[Sample]:
    states: Counter[str] = Counter()
    for shard in groups.machines:
        states.update(group.state_name for group in shard.groups.values())
        states[SIMPLE_GROUP_STATE] += sum(
            group_id not in shard.groups for group_id in shard.offsets.group_ids()
        )
    for state, count in sorted(states.items()):
        yield labels(state=state), count


def _offset(committed: CommittedOffset, _log: PartitionLog | None) -> int:
    return committed.offset


def _lag(committed: CommittedOffset, log: PartitionLog | None) -> int | None:
    return None if log is None else max(log.high_watermark - committed.offset, 0)


def _topics(
    groups: Groups, catalogue: Catalogue
) -> Iterator[tuple[str, str, list[tuple[int, CommittedOffset, PartitionLog | None]]]]:
    """Yield group, topic and committed offsets of the partitions that still exist."""
    for shard in groups.machines:
        for group_id in list(shard.offsets.group_ids()):
            for name, partitions in list(shard.offsets.of_group(group_id).items()):
                topic = catalogue.topic(name)
                if topic is None:
                    continue
                yield (
                    group_id,
                    name,
                    [
                        (index, committed, topic.partitions[index].log)
                        for index, committed in sorted(partitions.items())
                        if index < len(topic.partitions) and committed.is_of(topic.topic_id)
                    ],
                )


def _sums(groups: Groups, catalogue: Catalogue, read: Look) -> Iterator[Sample]:
    for group_id, topic, partitions in _topics(groups, catalogue):
        each = [read(committed, log) for _, committed, log in partitions]
        known = [number for number in each if number is not None]
        if len(known) == len(each):
            yield labels(consumergroup=group_id, topic=topic), sum(known)


def _each(groups: Groups, catalogue: Catalogue, read: Look) -> Iterator[Sample]:
    for group_id, topic, partitions in _topics(groups, catalogue):
        for index, committed, log in partitions:
            number = read(committed, log)
            if number is not None:
                yield labels(consumergroup=group_id, topic=topic, partition=index), number
