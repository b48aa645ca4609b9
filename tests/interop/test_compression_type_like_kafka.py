"""Topics with a codec of their own (compression.type) beside Apache Kafka 4.3.0.

The same batches are for both brokers, over a raw socket. What both store is compared field by
field, and Kafka's own consumer reads from Barnabas what Barnabas has compressed.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import pytest

from barnabas.protocol.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD
from barnabas.protocol.records import Record, encode_batch, iterate_batches
from tests.broker.data_plane import NOW_MS, Named, Wire, unpack
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.kafka_tools import run_tool
from tests.interop.recorded_kafka import Barnabas, plain
from tests.interop.test_batches_like_kafka import LOG_APPEND_TIME_BIT, created

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
TYPES = ("producer", "uncompressed", *NAMES[1:])
LEVELS = {
    "gzip": (-1, 1, 6, 9),
    "lz4": (1, 2, 8, 9, 10, 17),
    "zstd": (-131072, -5, 1, 3, 19, 22),
}
RECORDS = 3000
LIKE = 0.05
"""Largest difference in size from Kafka's stored batch: libraries differ a little."""


@cache
def lines() -> list[bytes]:
    """Text that compresses to a third, of more than one block of any codec."""
    chance = random.Random(1)
    words = [chance.randbytes(3).hex() for _ in range(2000)]
    return [" ".join(chance.choice(words) for _ in range(12)).encode() for _ in range(RECORDS)]


@cache
def sent(codec: int, **fields: int) -> memoryview:
    records = [
        Record(at, NOW_MS + at % 50, b"key %d" % at, line, (("header", b"%d" % at),))
        for at, line in enumerate(lines())
    ]
    return memoryview(bytearray(encode_batch(records, compression=codec, **fields)))


class Stored(NamedTuple):
    """A stored batch: the fields that do not depend on a library or a broker's clock, its size,
    and a hash of its records."""

    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    size: int
    records: str


def stored(wire: Wire, topic: Named, batch: memoryview) -> Stored:
    produced = wire.produce(topic, batch)
    assert produced.error_code == 0, produced
    found = wire.fetch_one(topic, produced.base_offset).records
    ((_, header),) = iterate_batches(found)
    fields = [getattr(header, field) for field in Stored._fields[:-2]]
    records = unpack(found)
    assert len(records) == header.record_count
    batch_found = Stored(*fields, header.size, "")
    if header.attributes & LOG_APPEND_TIME_BIT:
        batch_found = batch_found._replace(max_timestamp=0)
        records = [each._replace(timestamp=0) for each in records]
    return batch_found._replace(records=hashlib.sha256(repr(records).encode()).hexdigest())


def settings(compression_type: str, **more: str) -> dict[str, str]:
    return {"compression.type": compression_type, "retention.ms": "-1", **more}


def stored_by_type(broker: BrokerProcess) -> dict[str, Stored]:
    found = {}
    with Wire((HOST, broker.port)) as wire:
        for kind, codec in product(TYPES, CODECS):
            topic = created(wire, f"codec-{kind}-{codec}", settings(kind))
            found[f"{kind} from {NAMES[codec]}"] = stored(wire, topic, sent(codec))
        for kind in ("message.timestamp.type", "cleanup.policy"):
            value = {"cleanup.policy": "compact"}.get(kind, "LogAppendTime")
            topic = created(wire, f"codec-{kind}", settings("zstd", **{kind: value}))
            found[f"zstd with {kind}"] = stored(wire, topic, sent(LZ4))
    return found


def stored_by_level(broker: BrokerProcess) -> dict[str, Stored]:
    found = {}
    with Wire((HOST, broker.port)) as wire:
        for kind, levels in LEVELS.items():
            for level in levels:
                configs = settings(kind, **{f"compression.{kind}.level": str(level)})
                topic = created(wire, f"level-{kind}-{level}", configs)
                found[f"{kind} {level}"] = stored(wire, topic, sent(NONE))
    return found


@pytest.fixture(scope="module")
def barnabas() -> Iterator[BrokerProcess]:
    with Barnabas() as running:
        yield running


def differences(
    ours: Mapping[str, Stored], recorded: Mapping[str, Mapping[str, Any]]
) -> dict[str, object]:
    """Return batches with other fields, other records, or sizes that no library explains."""
    found: dict[str, object] = {}
    for name, own in ours.items():
        other = Stored(**recorded[name])
        if abs(own.size - other.size) > LIKE * other.size:
            found[name] = f"{own.size} bytes, Kafka has {other.size}"
        elif own._replace(size=0) != other._replace(size=0):
            found[name] = own, other
    return found


def test_batches_are_stored_as_kafka_stores_them(barnabas, kafka):
    ours = stored_by_type(barnabas)
    assert len(ours) == len(TYPES) * len(CODECS) + 2
    assert differences(ours, kafka.observe("types", stored_by_type)) == {}


def test_levels_mean_what_they_mean_to_kafka(barnabas, kafka):
    recorded = kafka.observe("levels", stored_by_level)
    assert differences(stored_by_level(barnabas), recorded) == {}


def test_limits_and_retries_are_those_of_kafka(barnabas, kafka):
    def answers(broker: BrokerProcess) -> list[tuple[int, int]]:
        with Wire((HOST, broker.port)) as wire:
            small = created(
                wire, "small", settings("uncompressed", **{"max.message.bytes": "100000"})
            )
            retried = created(wire, "retried", settings("gzip"))
            batch = sent(ZSTD, producer_id=-1)
            again = sent(NONE, producer_id=4000, producer_epoch=0, base_sequence=0)
            found = [wire.produce(small, batch), wire.produce(small, sent(NONE))]
            found += [wire.produce(retried, again) for _ in range(3)]
            return [(each.error_code, each.base_offset) for each in found]

    expected = [[10, -1], [10, -1], [0, 0], [0, 0], [0, 0]]
    assert plain(answers(barnabas)) == kafka.observe("limits and retries", answers) == expected


def test_kafkas_consumer_reads_what_barnabas_compressed(barnabas):
    with Wire((HOST, barnabas.port)) as wire:
        for kind, codec in product(TYPES[1:], (NONE, ZSTD)):
            topic = created(wire, f"read-{kind}-{codec}", settings(kind))
            stored(wire, topic, sent(codec))
    topics = len(TYPES[1:]) * 2
    consumed = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", f"{HOST}:{barnabas.port}", "--include", "read-.*"),
        *("--from-beginning", "--max-messages", str(RECORDS * topics)),
        *("--timeout-ms", "60000"),
    )
    assert consumed.exit_code == 0, consumed.output
    expected = sorted(line.decode() for line in lines() * topics)
    known = set(expected)
    assert sorted(each for each in consumed.output.splitlines() if each in known) == expected
