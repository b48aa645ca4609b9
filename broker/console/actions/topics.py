"""Topics: made, changed, enlarged, emptied, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.config.topic_values import describe_topic
from barnabas.broker.console.actions.command import Command, invalid
from barnabas.broker.console.actions.effect import Change, Plan
from barnabas.broker.console.actions.wire import check
from barnabas.broker.console.pages.topics import add_up
from barnabas.broker.handlers.alter_configs import ConfigOperation
from barnabas.broker.metadata.resources import ResourceType
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from barnabas.broker.metadata.topic import Partition

_HIGH_WATERMARK: Final = -1
_DEFAULT: Final = -1
SET, DELETE = ConfigOperation.SET, ConfigOperation.DELETE


# ----------------------------------------------------------------------------------------- create


async def plan_create(command: Command) -> Plan:
    """Return the topic that would be created."""
    await _create(command, validate_only=True)
    partitions = command.number("partitions")
    count = command.broker.config.num_partitions if partitions is None else partitions
    configs = tuple(
        Change(name, None, value, None) for name, value in command.entries("configs").items()
    )
    return Plan(f"make the topic {command.text('topic')}", {"partitions": count}, configs)


async def create(command: Command, _: Plan) -> None:
    """Create a topic."""
    await _create(command, validate_only=False)


async def _create(command: Command, *, validate_only: bool) -> None:
    partitions = command.number("partitions")
    topic = CreatableTopic(
        command.text("topic"),
        _DEFAULT if partitions is None else partitions,
        _DEFAULT,
        configs=[
            CreatableTopicConfig(name, value) for name, value in command.entries("configs").items()
        ],
    )
    request = CreateTopicsRequest([topic], validate_only=validate_only)
    for each in (await command.wire.ask(CREATE_TOPICS, request)).topics:
        check(each.error_code, each.error_message)


# ---------------------------------------------------------------------------------- configurations


async def plan_configure(command: Command) -> Plan:
    """Return the topic settings that would change, with old and new values."""
    topic, wanted = command.topic(), command.entries("configs")
    if not wanted:
        raise invalid("configs: name at least one setting")
    await _configure(command, validate_only=True)
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


async def configure(command: Command, _: Plan) -> None:
    """Change configurations of a topic."""
    await _configure(command, validate_only=False)


async def _configure(command: Command, *, validate_only: bool) -> None:
    await alter(
        command, ResourceType.TOPIC, command.topic().name, "configs", validate_only=validate_only
    )


async def alter(
    command: Command, resource_type: ResourceType, name: str, field: str, *, validate_only: bool
) -> None:
    """Set keys with a value, and remove those without; raises KafkaError."""
    configs = [
        AlterableConfig(key, DELETE if value is None else SET, value)
        for key, value in command.entries(field).items()
    ]
    resource = AlterConfigsResource(resource_type, name, configs)
    request = IncrementalAlterConfigsRequest([resource], validate_only)
    answer = await command.wire.ask(INCREMENTAL_ALTER_CONFIGS, request)
    for each in answer.responses:
        check(each.error_code, each.error_message)


# ------------------------------------------------------------------------------------- partitions


async def plan_add_partitions(command: Command) -> Plan:
    """Return the number of partitions after the change."""
    topic, count = command.topic(), command.number("partitions")
    await _add_partitions(command, validate_only=True)
    note = "keys go to other partitions from then on"
    change = Change("partitions", str(len(topic.partitions)), str(count), note)
    return Plan(f"give {topic.name} {count} partitions", {}, (change,))


async def add_partitions(command: Command, _: Plan) -> None:
    """Add partitions to a topic."""
    await _add_partitions(command, validate_only=False)


async def _add_partitions(command: Command, *, validate_only: bool) -> None:
    topic = CreatePartitionsTopic(command.topic().name, command.number("partitions") or 0, None)
    request = CreatePartitionsRequest([topic], validate_only=validate_only)
    for each in (await command.wire.ask(CREATE_PARTITIONS, request)).results:
        check(each.error_code, each.error_message)


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
    """Delete the topic of the dry run, not another one of its name."""
    request = DeleteTopicsRequest([DeleteTopicState(None, command.topic().topic_id)])
    for each in (await command.wire.ask(DELETE_TOPICS, request)).responses:
        check(each.error_code, each.error_message)


async def plan_delete_records(command: Command) -> Plan:
    """Return the records that would be deleted."""
    topic, changes, gone = command.topic(), [], 0
    chosen = _first_kept(command)
    for partition, offset in chosen:
        log = partition.log_here()
        end = log.high_watermark if offset == _HIGH_WATERMARK else offset
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
    partitions = [
        DeleteRecordsPartition(partition.index, offset)
        for partition, offset in _first_kept(command)
    ]
    request = DeleteRecordsRequest([DeleteRecordsTopic(command.topic().name, partitions)], 30_000)
    for topic in (await command.wire.ask(DELETE_RECORDS, request)).topics:
        for each in topic.partitions:
            check(each.error_code, f"{topic.name}-{each.partition_index}")


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
    return [(each, _HIGH_WATERMARK if before is None else before) for each in chosen]
