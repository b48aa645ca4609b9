"""A record produced by hand.

Rules of this file:

* **What is sent twice is written once**, where the sender has given a key (``once``): it makes the
  producer id, under which the record has the number 0. So it is the log that knows what it has, as
  of every idempotent producer, also after a restart and for as long as it remembers producers.
* The same key with another record is another producer: nothing is taken for what it is not.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
from dataclasses import replace
from typing import Final

from barnabas.broker.console.actions.command import Command, invalid
from barnabas.broker.console.actions.effect import Change, Plan
from barnabas.broker.console.actions.wire import check
from barnabas.broker.metadata.producer_ids import KEYED_FROM
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
from barnabas.storage.runtime.chance import random_below

FORMATS: Final = ("text", "json", "hex", "base64", "null")
_ALL: Final = -1
_TIMEOUT_MS: Final = 30_000
_SHOWN: Final = 200


async def plan_produce(command: Command) -> Plan:
    """Return the record that would be written, and its partition."""
    topic, record = command.topic(), _record(command)
    owed_ms = command.wire.produced(0)
    if owed_ms >= 1:
        words = f"producer_byte_rate: more can be written in {math.ceil(owed_ms / 1000)} s"
        raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, words)
    size = len(record.key or b"") + len(record.value or b"")
    index = _partition(command, record)
    where = f"{topic.name}, any partition" if index is None else f"{topic.name}-{index}"
    change = Change(where, None, _shown(record), "a tombstone" if record.value is None else None)
    return Plan(f"write one record to {where}", {"bytes": size}, (change,))


async def produce(command: Command, plan: Plan) -> Plan:
    """Write one record, acknowledged when it is durable."""
    topic, record, wire = command.topic(), _record(command), command.wire
    index = _partition(command, record)
    number = _producer_number(command, record)
    if index is None:
        count = len(topic.partitions)
        # Any will do, but the same one for the same record.
        index = random_below(count) if number is None else number % count
    batch = _batch(record, number)
    data = PartitionProduceData(index, memoryview(batch))
    request = ProduceRequest(
        None, _ALL, _TIMEOUT_MS, [TopicProduceData(topic.name, partition_data=[data])]
    )
    answer = await wire.ask(PRODUCE, request, PRODUCE_BY_NAME)
    (written,) = answer.responses[0].partition_responses
    check(written.error_code, written.error_message)
    wire.produced(len(batch))
    change = replace(plan.changes[0], what=f"{topic.name}-{index}, offset {written.base_offset}")
    return replace(plan, changes=(change,))


def _batch(record: Record, number: int | None) -> bytes:
    if number is None:
        return encode_batch([record])
    return encode_batch([record], producer_id=number, producer_epoch=0, base_sequence=0)


def _producer_number(command: Command, record: Record) -> int | None:
    """Return the producer ID derived from a key and a record, or None without a key."""
    key = command.text("once")
    if not key:
        return None
    sent = command.access.principal, command.topic().topic_id, key, record.key, record.value
    digest = hashlib.sha256(repr((*sent, record.headers)).encode()).digest()
    return KEYED_FROM | int.from_bytes(digest[:8], "big") >> 2


def _record(command: Command) -> Record:
    now_ms = command.broker.clock.now_ms()
    key, value = _bytes(command, "key"), _bytes(command, "value")
    return Record(0, now_ms, key, value, command.headers("headers"))


def _bytes(command: Command, side: str) -> bytes | None:
    """Return the bytes of key or value; null, as in a tombstone, is not an empty text."""
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
    """Return the named partition, else that of the key, or None for any."""
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
