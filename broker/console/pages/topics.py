"""Topics and their partitions, as the console shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.api.checks import DESCRIBE_CONFIGS, GROUP, TOPIC
from barnabas.broker.cluster.damaged_copies import Copies
from barnabas.broker.config.topic_values import describe_topic
from barnabas.broker.config.types import SOURCE_WORDS
from barnabas.broker.console.encoding import made_of
from barnabas.broker.console.pacing import PARTITION_UNITS, ROW_UNITS
from barnabas.broker.console.pages.spark_ledger import LEDGER_TOPIC
from barnabas.broker.console.shapes import (
    PartitionPage,
    PartitionRow,
    SettingOfTopic,
    TopicDescription,
    TopicPage,
    TopicRow,
)
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.internal_records import uuid_text

if TYPE_CHECKING:
    from barnabas.broker.console.pacing import Pace
    from barnabas.broker.console.questions import ConsoleRequest, Question
    from barnabas.broker.metadata.topic import Partition, Topic
    from barnabas.storage.log.partition_log import PartitionLog

GROUPS_COUNTED_MOST: Final = 10_000
"""Groups of a broker up to which a list of topics counts those of each."""
TOPIC_ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "topic": (str,),
    **dict.fromkeys(("partitions", "records_max", "size_bytes", "blocked_offsets"), (int, str)),
}
PARTITION_ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "partition": (int,),
    **dict.fromkeys(("end_offset", "size_bytes", "blocked_offsets"), (int, int)),
}


class Figures(NamedTuple):
    """Sums over the partitions of a topic."""

    records_max: int = 0
    written: int = 0
    size_bytes: int = 0
    blocked_offsets: int = 0


async def list_topics(question: Question) -> TopicPage:
    """List topics."""
    pace, access = question.pace, question.access
    wanted = question.text("filter").casefold()
    internal = bool(question.values["internal"])
    selection = question.selection(TOPIC_ORDERS)
    sort = selection.sort
    catalogue = question.broker.catalogue
    for topic in list(catalogue.topics.values()):
        await pace.spend()
        if is_internal(topic) and not internal:
            continue
        if wanted not in topic.name.casefold() or not access.may_see(TOPIC, topic.name):
            continue
        if sort == "topic":
            selection.offer(topic.name, topic.name)
        elif sort == "partitions":
            selection.offer(topic.name, len(topic.partitions), topic.name)
        else:
            selection.offer_by(await add_up(topic, pace), topic.name, topic.name)
    rows = []
    readers = await _groups_of(question, set(selection.page()))
    copies = Copies(catalogue.view)
    for name in selection.page():
        found = catalogue.topic(name)
        if found is not None:  # Not deleted meanwhile.
            groups = None if readers is None else readers[found.name]
            rows.append(made_of(TopicRow, *await _summary(question, copies, found), groups))
    return TopicPage(question.now_ms, selection.following, selection.total, tuple(rows))


async def describe_one(question: Question) -> TopicDescription:
    """Describe a topic."""
    topic = topic_of(question)
    configs = None
    if question.access.may_see(TOPIC, topic.name, DESCRIBE_CONFIGS):
        broker_config = question.broker.catalogue.configs.broker_config
        configs = tuple(
            SettingOfTopic(each.name, each.value, SOURCE_WORDS[each.source])
            for each in describe_topic(topic.configs, broker_config)
        )
    summary = await _summary(question, Copies(question.broker.catalogue.view), topic)
    return made_of(TopicDescription, question.now_ms, *summary, configs)


async def list_partitions(question: Question) -> PartitionPage:
    """List the partitions of a topic that this broker leads."""
    topic = topic_of(question)
    pace = question.pace
    selection = question.selection(PARTITION_ORDERS)
    copies, node_id = Copies(question.broker.catalogue.view), question.broker.node_id
    for partition, log in topic.partitions_here():
        await spend_on(log, pace)
        value = () if selection.sort == "partition" else (_figure(log, selection.sort),)
        selection.offer((partition, log), *value, partition.index)
    rows = []
    for partition, log in selection.page():
        await spend_on(log, pace, ROW_UNITS)
        rows.append(_partition_row(copies, node_id, partition, log))
    return PartitionPage(
        question.now_ms, selection.following, selection.total, topic.name, tuple(rows)
    )


def topic_of(request: ConsoleRequest) -> Topic:
    """Return the topic that a path names; raises KafkaError."""
    topic = request.broker.catalogue.topic(request.names["topic"])
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic")
    return topic


async def spend_on(log: PartitionLog, pace: Pace, more: int = 0) -> None:
    """Count the work for a partition and its segments."""
    await pace.spend(PARTITION_UNITS + len(log.segments) + more)


async def add_up(topic: Topic, pace: Pace) -> Figures:
    """Return the sums over the partitions of a topic that this broker leads."""
    records_max = written = size_bytes = blocked_offsets = 0
    for _, log in topic.partitions_here():
        await spend_on(log, pace)
        written += log.high_watermark
        records_max += log.high_watermark - log.log_start_offset
        size_bytes += log.size_bytes
        blocked_offsets += log.high_watermark - log.last_stable_offset
    return Figures(records_max, written, size_bytes, blocked_offsets)


def _figure(log: PartitionLog, name: str) -> int:
    match name:
        case "end_offset":
            return log.high_watermark
        case "size_bytes":
            return log.size_bytes
        case _:
            return log.high_watermark - log.last_stable_offset


def is_internal(topic: Topic) -> bool:
    """Return whether a topic holds the records of the broker, or of the Spark sink."""
    return topic.is_internal or topic.name == LEDGER_TOPIC


async def _groups_of(question: Question, names: set[str]) -> Counter[str] | None:
    """Return the number of groups with committed offsets of topics. None if there are too many
    groups, or while the coordinator loads.
    """
    groups = question.broker.groups
    if groups.is_coordinator() and groups.is_loading:
        return None
    if sum(len(machine.keys()) for machine in groups.machines) > GROUPS_COUNTED_MOST:
        return None
    found = Counter[str]()
    for machine in groups.machines:
        for group_id in machine.keys():  # noqa: SIM118  No mapping: a list of what there is.
            topics = machine.offsets.of_group(group_id)
            await question.pace.spend(1 + len(topics) // PARTITION_UNITS)
            if question.access.may_see(GROUP, group_id):
                found.update(names.intersection(topics))
    return found


async def _summary(question: Question, copies: Copies, topic: Topic) -> tuple[Any, ...]:
    """Return the values of a TopicSummary."""
    await question.pace.spend(ROW_UNITS)
    figures = await add_up(topic, question.pace)
    return (
        topic.name,
        uuid_text(topic.topic_id),
        is_internal(topic),
        len(topic.partitions),
        _replica_count(copies, topic),
        ",".join(sorted(topic.log_config.cleanup_policy)),
        *figures,
    )


def _replica_count(copies: Copies, topic: Topic) -> int:
    factor = topic.log_config.replication_factor
    return len(copies.of(topic.partitions[0].partition_id, factor))


def _partition_row(
    copies: Copies, node_id: int, partition: Partition, log: PartitionLog
) -> PartitionRow:
    factor = partition.topic.log_config.replication_factor
    replicas = copies.of(partition.partition_id, factor, node_id)
    return PartitionRow(
        partition.index,
        node_id,
        log.leader_epoch,
        tuple(replicas),
        tuple(each for each in replicas if each in copies.in_service),
        log.log_start_offset,
        log.last_stable_offset,
        log.high_watermark,
        log.high_watermark - log.last_stable_offset,
        log.size_bytes,
        len(log.segments),
    )
