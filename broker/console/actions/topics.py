"""Topics: made, changed, enlarged, emptied, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.admin import exchange, topics
from barnabas.broker.admin.settings import TOPIC, alter_settings
from barnabas.broker.config.topic_values import describe_topic
from barnabas.broker.console.actions.command import Command, invalid
from barnabas.broker.console.actions.effect import Change, Plan
from barnabas.broker.console.pages.topics import add_up
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_topics import DeleteTopicState

if TYPE_CHECKING:
    from barnabas.broker.metadata.topic import Partition

_TIMEOUT_MS: Final = 30_000


# ----------------------------------------------------------------------------------------- create


async def plan_create(command: Command) -> Plan:
    """Return the topic that would be created."""
    await create(command, dry_run=True)
    partitions = command.number("partitions")
    count = command.broker.config.num_partitions if partitions is None else partitions
    configs = tuple(
        Change(name, None, value, None) for name, value in command.entries("configs").items()
    )
    return Plan(f"make the topic {command.text('topic')}", {"partitions": count}, configs)


async def create(command: Command, _: Plan | None = None, *, dry_run: bool = False) -> None:
    """Make a topic."""
    partitions = command.number("partitions")
    creation = topics.create_topics(
        [command.text("topic")],
        topics.BROKER_DEFAULT if partitions is None else partitions,
        command.entries("configs").items(),
        dry_run=dry_run,
    )
    for each in await command.wire.run(creation):
        exchange.check(each.name, each.error_code, each.error_message)


# ---------------------------------------------------------------------------------- configurations


async def plan_configure(command: Command) -> Plan:
    """Return the topic settings that would change, with old and new values."""
    topic, wanted = command.topic(), command.entries("configs")
    if not wanted:
        raise invalid("configs: name at least one setting")
    await configure(command, dry_run=True)
    broker_config = command.broker.catalogue.configs.broker_config
    before = {each.name: each for each in describe_topic(topic.configs, broker_config)}
    changes = tuple(
        Change(
            name,
            before[name].value if name in before else None,
            value,
            "back to its default" if value is None else None,
        )
        for name, value in wanted.items()
    )
    return Plan(f"change configurations of {topic.name}", {"changes": len(changes)}, changes)


async def configure(command: Command, _: Plan | None = None, *, dry_run: bool = False) -> None:
    """Change configurations of a topic."""
    name, changes = command.topic().name, command.entries("configs").items()
    await command.wire.run(alter_settings(TOPIC, name, changes, dry_run=dry_run))


# ------------------------------------------------------------------------------------- partitions


async def plan_add_partitions(command: Command) -> Plan:
    """Return the number of partitions after the change."""
    topic, count = command.topic(), command.number("partitions")
    await add_partitions(command, dry_run=True)
    note = "keys go to other partitions from then on"
    change = Change("partitions", str(len(topic.partitions)), str(count), note)
    return Plan(f"give {topic.name} {count} partitions", {}, (change,))


async def add_partitions(command: Command, _: Plan | None = None, *, dry_run: bool = False) -> None:
    """Give a topic more partitions."""
    name, count = command.topic().name, command.number("partitions") or 0
    await command.wire.run(topics.add_partitions(name, count, dry_run=dry_run))


# ---------------------------------------------------------------------------------------- deletion


async def plan_delete(command: Command) -> Plan:
    """Return the contents that would be deleted."""
    topic = command.topic()
    if not command.broker.config.delete_topic_enable:
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false")
    figures = await add_up(topic, command.pace)
    return Plan(
        f"delete the topic {topic.name} with all its records, for good",
        {
            "partitions": len(topic.partitions),
            "records_at_most": figures.records_max,
            "bytes": figures.size_bytes,
        },
        basis=(topic.topic_id, len(topic.partitions)),
    )


async def delete(command: Command, _: Plan) -> None:
    """Delete the previewed topic, not another one of its name."""
    state = DeleteTopicState(None, command.topic().topic_id)
    for each in await command.wire.run(topics.delete_topics([state])):
        exchange.check(each.name or "", each.error_code, each.error_message)


async def plan_delete_records(command: Command) -> Plan:
    """Return the records that would be deleted."""
    topic, changes, gone = command.topic(), [], 0
    chosen = _first_kept(command)
    for partition, offset in chosen:
        log = partition.log_here()
        end = log.high_watermark if offset == topics.HIGH_WATERMARK else offset
        if end > log.high_watermark:
            words = f"{topic.name}-{partition.index} ends at {log.high_watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, words)
        end = max(end, log.log_start_offset)
        gone += end - log.log_start_offset
        what = f"{topic.name}-{partition.index}"
        changes.append(Change(what, str(log.log_start_offset), str(end), "its first offset"))
    starts = tuple(partition.log_here().log_start_offset for partition, _ in chosen)
    words = f"delete records of {topic.name} for good"
    return Plan(words, {"offsets": gone}, tuple(changes), (topic.topic_id, starts))


async def delete_records(command: Command, _: Plan) -> None:
    """Delete the records before an offset."""
    node_id = command.broker.node_id
    offsets = {
        exchange.Partition(each.topic.name, each.index, node_id): offset
        for each, offset in _first_kept(command)
    }
    await command.wire.run(topics.delete_records(offsets, _TIMEOUT_MS))


def _first_kept(command: Command) -> list[tuple[Partition, int]]:
    """Return the chosen partitions with the first offset that each keeps."""
    topic, index = command.topic(), command.number("partition")
    before = command.number("before_offset")
    if index is None and before is not None:
        raise invalid("partition: an offset is one of a partition")
    if index is not None and not 0 <= index < len(topic.partitions):
        words = f"{topic.name} has {len(topic.partitions)} partitions"
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)
    if before is not None and before < 0:
        raise invalid("before_offset: must not be negative")
    chosen = topic.partitions if index is None else [topic.partitions[index]]
    return [(each, topics.HIGH_WATERMARK if before is None else before) for each in chosen]
