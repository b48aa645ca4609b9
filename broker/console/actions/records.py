"""A record produced by hand."""

from __future__ import annotations

import base64
import binascii
import json
import random
from typing import Final

from barnabas.broker.console.actions.command import Command, invalid
from barnabas.broker.console.actions.effect import Change, Plan
from barnabas.broker.console.actions.wire import check
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.partitioning import partition_of
from barnabas.protocol.records import Record, encode_batch
from barnabas.protocol.versions import PRODUCE_BY_NAME

FORMATS: Final = ("text", "json", "hex", "base64", "null")
_ALL: Final = -1
_TIMEOUT_MS: Final = 30_000
_SHOWN: Final = 200


async def plan_produce(command: Command) -> Plan:
    """Say what would be written, and where."""
    topic, record = command.topic(), _record(command)
    size = len(record.key or b"") + len(record.value or b"")
    index = _partition(command, record)
    where = f"{topic.name}, any partition" if index is None else f"{topic.name}-{index}"
    change = Change(where, None, _shown(record), "a tombstone" if record.value is None else None)
    return Plan(f"write one record to {where}", {"bytes": size}, (change,))


async def produce(command: Command, _: Plan) -> None:
    """Write one record, acknowledged when it is durable."""
    topic, record = command.topic(), _record(command)
    index = _partition(command, record)
    if index is None:
        index = random.randrange(len(topic.partitions))  # noqa: S311  Any will do.
    data = PartitionProduceData(index, memoryview(encode_batch([record])))
    request = ProduceRequest(
        None, _ALL, _TIMEOUT_MS, [TopicProduceData(topic.name, partition_data=[data])]
    )
    answer = await command.wire.ask(PRODUCE, request, PRODUCE_BY_NAME)
    for each in answer.responses:
        for partition in each.partition_responses:
            check(partition.error_code, partition.error_message)


def _record(command: Command) -> Record:
    headers = tuple(
        (name, None if value is None else value.encode())
        for name, value in command.entries("headers").items()
    )
    now_ms = command.broker.clock.now_ms()
    return Record(0, now_ms, _bytes(command, "key"), _bytes(command, "value"), headers)


def _bytes(command: Command, side: str) -> bytes | None:
    """Return key or value; null is a choice of its own, since a tombstone is no empty text."""
    text = command.text(side)
    is_key_left_out = side == "key" and side not in command.values
    match command.text(f"{side}_format", "null" if is_key_left_out else "text"):
        case "null":
            if text:
                raise invalid(f"{side}: null has no text")
            return None
        case "json":
            try:
                json.loads(text)
            except (ValueError, RecursionError) as error:
                raise invalid(f"{side}: no JSON: {error}") from None
            return text.encode()
        case "hex":
            try:
                return bytes.fromhex(text)
            except ValueError:
                raise invalid(f"{side}: no hexadecimal digits") from None
        case "base64":
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                raise invalid(f"{side}: no Base64") from None
        case _:
            return text.encode()


def _partition(command: Command, record: Record) -> int | None:
    """Return the partition that is meant: the one named, else that of the key; None for any."""
    topic, index = command.topic(), command.number("partition")
    count = len(topic.partitions)
    if index is not None:
        if not 0 <= index < count:
            words = f"{topic.name} has {count} partitions"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)
        return index
    return None if record.key is None else partition_of(record.key, count)


def _shown(record: Record) -> str:
    value = b"null" if record.value is None else record.value
    text = value[:_SHOWN].decode(errors="backslashreplace")
    return text + ("…" if len(value) > _SHOWN else "")
