"""Batches that do not add up, under checksums that are right: refused as Apache Kafka 4.3.0 does.

One table is for both brokers, over a raw socket. What Kafka takes or calls by another name is
listed, each with its reason, and must differ.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import lz4.frame
import pytest
import zstandard
from py4j.protocol import Py4JJavaError

from barnabas.broker.handlers.records.record_errors import RECORD_ERRORS_SINCE
from barnabas.protocol.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD, compress
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import (
    HEADER_BYTES,
    Record,
    encode_batch,
    iterate_batches,
    read_header,
    seal,
    varint,
)
from barnabas.storage.log.batch_rules import FEW_RECORDS
from tests.broker.data_plane import NOW_MS, Named, Wire
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.interop.recorded_kafka import Barnabas, plain
from tests.requests import create_topic
from tests.waiting import wait_until
from tests.workload.drivers.java import STRINGS, gateway

GOOD = [
    Record(0, NOW_MS, b"key", b"value", (("h", b"x"), ("i", None))),
    Record(1, NOW_MS + 1, b"k2", None),
    Record(2, NOW_MS, b"", b"v" * 100),
]
BODY = encode_batch(GOOD)[HEADER_BYTES:]


def record(fields: str, more: bytes = b"") -> bytes:
    """One record with its length; ``fields`` in hexadecimal."""
    body = bytes.fromhex(fields) + more
    return varint(len(body)) + body


def single(fields: str) -> Callable[[bytes], bytes]:
    """Put this record in the place of all others: for a batch of one."""
    return lambda _: record(fields)


OF_THREE: dict[str, Callable[[bytes], bytes]] = {
    "as it should be": lambda body: body,
    "noise": lambda body: random.Random(7).randbytes(len(body)),
    "zeros": lambda body: bytes(len(body)),
    "nothing": lambda _: b"",
    "a byte less": lambda body: body[:-1],
    "a byte more": lambda body: body + b"\0",
    "a record less": lambda body: body[: 1 + (body[0] >> 1)],
    "a record more": lambda body: body + record("00 00 06 01 01 00"),
    "the first too long": lambda body: bytes([body[0] + 2]) + body[1:],
    "the first too short": lambda body: bytes([body[0] - 2]) + body[1:],
    "the first of negative length": lambda body: b"\1" + body[1:],
    "a length without end": lambda body: b"\xff" * 6 + body,
    "offsets backwards": lambda _: b"".join(record(f"00 00 0{at} 01 01 00") for at in (4, 2, 0)),
    "offsets with a gap": lambda _: b"".join(record(f"00 00 0{at} 01 01 00") for at in (0, 2, 6)),
}
OF_ONE = {
    "one as it should be": single("00 00 00 02 61 02 62 00"),
    "a key too long": single("00 00 00 20 61 02 62 00"),
    "a key of length -2": single("00 00 00 03 02 62 00"),
    "a value too long": single("00 00 00 01 20 62 00"),
    "a value of length -2": single("00 00 00 01 03 00"),
    "headers that are not there": single("00 00 00 01 01 04"),
    "minus one header": single("00 00 00 01 01 01"),
    "a header without a name": single("00 00 00 01 01 02 01 01"),
    "a header's name that is not UTF-8": single("00 00 00 01 01 02 02 ff 01"),
    "a header's value too long": single("00 00 00 01 01 02 02 61 20"),
    "bytes behind its headers": single("00 00 00 01 01 00 00"),
    "attributes nobody knows": single("7f 00 00 01 01 00"),
    "a timestamp's delta without end": single("00 ff ff ff ff ff ff ff ff ff ff 01 00 01 01 00"),
}
CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)

LINKED = "blocks that refer to each other (lz4)"
CUT = "without the end of its checksum (zstd)"
NULL = "Kafka takes it for a null; clients differ"
GAPS = "readers go by a record's offset; Kafka does not look, or has no error for it"
LENGTHS = "Kafka does not look at the length of a compressed record, and its readers fail"
NO_ERROR = "Kafka has no error for it: UNKNOWN_SERVER_ERROR"
EVERYWHERE = {
    "a key of length -2": NULL,
    "a value of length -2": NULL,
    "offsets backwards": GAPS,
    "offsets with a gap": GAPS,
}
COMPRESSED = {
    "the first too long": LENGTHS,
    "the first too short": LENGTHS,
    "the first of negative length": LENGTHS,
    "not compressed at all": NO_ERROR,
    "cut off": NO_ERROR,
}
ON_PURPOSE = {
    f"{label} ({NAMES[codec]})"
    for codec in CODECS
    for label in (EVERYWHERE | COMPRESSED if codec else [*EVERYWHERE, "a length without end"])
} | {LINKED, CUT}
"""Refused here with INVALID_RECORD."""


def batches() -> Iterator[tuple[str, memoryview]]:
    for codec in CODECS:
        for table, count in ((OF_THREE, 3), (OF_ONE, 1)):
            header = read_header(encode_batch(GOOD[:count], compression=codec))
            for label, change in table.items():
                body = compress(codec, change(BODY))
                yield f"{label} ({NAMES[codec]})", memoryview(bytearray(seal(header, body)))
        if codec:
            header = read_header(encode_batch(GOOD, compression=codec))
            damaged = compress(codec, BODY)
            for label, body in {
                "not compressed at all": BODY,
                "cut off": damaged[: len(damaged) // 2],
            }.items():
                yield f"{label} ({NAMES[codec]})", memoryview(bytearray(seal(header, body)))
    yield LINKED, with_body(LZ4, lambda body: lz4.frame.compress(body, block_linked=True))
    checked = zstandard.ZstdCompressor(write_checksum=True)
    yield CUT, with_body(ZSTD, lambda body: checked.compress(body)[:-2])


def with_body(codec: int, compressed: Callable[[bytes], bytes]) -> memoryview:
    """A batch of more than one block of LZ4."""
    large = encode_batch([Record(at, NOW_MS, b"key", b"v" * 1000) for at in range(100)])
    header = read_header(large)._replace(attributes=codec)
    return memoryview(bytearray(seal(header, compressed(large[HEADER_BYTES:]))))


LARGE = FEW_RECORDS + 1
LOG_APPEND_TIME_BIT = 0x08


def claims() -> Iterator[tuple[str, memoryview]]:
    """Batches whose headers claim what their records do not say, each with its name."""
    for codec in CODECS:
        for count in (1, 3, LARGE):
            records = [Record(at, NOW_MS + at, None, b"v") for at in range(count)]
            batch = encode_batch(records, compression=codec)
            header = read_header(batch)
            for field, value in (
                ("max_timestamp", -1),
                ("max_timestamp", 0),
                ("max_timestamp", NOW_MS - 1),
                ("max_timestamp", NOW_MS + 10_000),
                ("attributes", codec | LOG_APPEND_TIME_BIT),
                ("partition_leader_epoch", 77),
            ):
                claimed = seal(header._replace(**{field: value}), batch[HEADER_BYTES:])
                name = f"{NAMES[codec]}, {count} records, {field} {value}"
                yield name, memoryview(bytearray(claimed))


HOUR_MS = 3_600_000
RULES = {
    "compacted": {"cleanup.policy": "compact", "message.timestamp.before.max.ms": str(HOUR_MS)},
    "bounded": {"message.timestamp.before.max.ms": str(HOUR_MS)},
    "stamped": {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"},
    "small": {"max.message.bytes": "100"},
}


def rule_breakers(now_ms: int) -> Iterator[tuple[str, str, memoryview]]:
    """Sound batches of which a rule of their topic refuses some records: topic, name, batch."""
    keyed = [(b"k", 0)] * 3
    cases: dict[str, list[tuple[bytes | None, int]]] = {
        "nothing": keyed,
        "one without a key": [*keyed, (None, 0), *keyed],
        "five without a key": [(None, 0)] * 5,
        "an old one": [(b"k", 0), (b"k", -2 * HOUR_MS)],
        "new ones": [(b"k", 2 * HOUR_MS), (b"k", 0), (b"k", 3 * HOUR_MS)],
        "old, new, and without a key": [(None, 0), (b"k", -2 * HOUR_MS), (None, 2 * HOUR_MS)],
        "below zero": [(b"k", 0), (b"k", -now_ms - 5)],
        "no time": [(b"k", -now_ms - 1), (b"k", 0)],
        "many without a key": [(None, 0)] * 500,
        "the last of many": [*keyed * 100, (None, 5 * HOUR_MS)],
    }
    for topic, (name, records), codec in product(RULES, cases.items(), (NONE, LZ4)):
        batch = encode_batch(
            [Record(at, now_ms + each, key, b"v") for at, (key, each) in enumerate(records)],
            compression=codec,
        )
        yield topic, f"{name} ({NAMES[codec]})", memoryview(bytearray(batch))


class Refused(NamedTuple):
    """All that a Produce response says of one partition."""

    error_code: int
    base_offset: int
    log_start_offset: int
    error_message: str | None
    record_errors: dict[str, list[int]]
    """Indexes of records by message."""


def whole_answers(broker: BrokerProcess, now_ms: int, version: int) -> dict[str, Refused]:
    """Return the responses to ``rule_breakers``, without times of a broker's clock."""
    found = {}
    with Wire((HOST, broker.port)) as wire:
        topics = {
            name: created(wire, f"rules-{version}-{name}", {"retention.ms": "-1", **configs})
            for name, configs in RULES.items()
        }
        for topic, name, batch in rule_breakers(now_ms):
            result = wire.produce(topics[topic], batch, version=version)
            errors: dict[str, list[int]] = {}
            for each in result.record_errors:
                message = clockless(each.batch_index_error_message, now_ms)
                errors.setdefault(message, []).append(each.batch_index)
            found[f"{topic}: {name}"] = Refused(
                result.error_code,
                min(result.base_offset, 0),
                result.log_start_offset,
                clockless(result.error_message, now_ms),
                errors,
            )
    return found


KEYLESS_AND_LATE = {
    (
        f"compacted: {name} ({codec})",
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_RECORD,
    )
    for name in ("the last of many",)
    for codec in ("none", "lz4")
}
"""Our error before the names of records are part of the response, and Kafka's."""


def clockless(message: str | None, now_ms: int) -> str:
    """Return a message without the time; timestamps of records are relative to ``now_ms``."""
    bounded = re.sub(r"within \[-?\d+, \d+\]", "within the bounds", message or "")
    return re.sub(
        r"Timestamp (\d{12,})", lambda found: f"Timestamp now{int(found[1]) - now_ms:+}", bounded
    )


class Stored(NamedTuple):
    """The fields of a stored batch that tell something of its records."""

    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    record_count: int


def stored(broker: BrokerProcess) -> dict[str, Stored]:
    """The headers that consumers get of each of ``claims``."""
    with Wire((HOST, broker.port)) as wire:
        topic = created(wire, "claims", {"retention.ms": "-1"})
        headers = {}
        for name, batch in claims():
            produced = wire.produce(topic, batch)
            assert produced.error_code == 0, (name, produced)
            found = wire.fetch_one(topic, produced.base_offset).records
            _, header = next(iterate_batches(found))
            headers[name] = Stored(*(getattr(header, field) for field in Stored._fields))
    return headers


def answers(broker: BrokerProcess) -> dict[str, str]:
    """Return a broker's error for each batch of the table, by label."""
    address = (HOST, broker.port)
    # Looked at in every batch, as Kafka does.
    configs = {"retention.ms": "-1", "barnabas.record.validation.enable": "true"}
    if isinstance(broker, ApacheKafka):
        configs.popitem()
    found = {}
    with Wire(address) as wire:
        topic = created(wire, "batches", configs)
    for label, records in batches():
        with Wire(address) as wire:
            try:
                code = wire.produce(topic, records).error_code
            except ConnectionError:
                found[label] = "hung up"
                continue
        found[label] = ErrorCode(code).name
    return found


def created(wire: Wire, name: str, configs: dict[str, str]) -> Named:
    """A new topic of one partition that is led."""
    topic = Named(name, create_topic(wire, name, configs=configs))
    wait_until(lambda: wire.fetch((topic, (0, 0))).responses[0].partitions[0].error_code == 0)
    return topic


@pytest.fixture(scope="module")
def barnabas() -> Iterator[BrokerProcess]:
    with Barnabas() as running:
        yield running


@pytest.fixture(scope="module")
def ours(barnabas: BrokerProcess) -> dict[str, str]:
    return answers(barnabas)


def test_only_valid_batches_are_accepted(ours):
    taken = {label.partition(" (")[0] for label, code in ours.items() if code == "NONE"}
    assert taken == {
        "as it should be",
        "one as it should be",
        "a header's name that is not UTF-8",
        "attributes nobody knows",
    }
    assert set(ours.values()) == {"NONE", "INVALID_RECORD"}


def test_batches_are_refused_as_kafka_refuses_them(ours, kafka):
    theirs = kafka.observe("batches", answers)
    differing = {
        label: (theirs[label], code) for label, code in ours.items() if theirs[label] != code
    }
    assert differing.keys() == ON_PURPOSE, differing
    assert {kafkas for kafkas, _ in differing.values()} == {"NONE", "UNKNOWN_SERVER_ERROR"}


def test_headers_are_corrected_as_kafka_corrects_them(barnabas, kafka):
    assert plain(stored(barnabas)) == kafka.observe("headers", stored)


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
def test_responses_name_bad_records_as_kafkas_do(barnabas, kafka, version):
    now_ms = int(time.time() * 1000)
    answers_to = lambda broker: whole_answers(broker, now_ms, version)  # noqa: E731
    recorded = kafka.observe(f"bad records v{version}", answers_to)
    ours, theirs = answers_to(barnabas), {name: Refused(**each) for name, each in recorded.items()}
    too_large = ErrorCode.MESSAGE_TOO_LARGE
    differing = {
        name: (answer, theirs[name])
        for name, answer in ours.items()
        # Kafka does not say there which limit it was.
        if answer.error_code != too_large and answer != theirs[name]
    }
    # Before that version the broker does not look at single records.
    expected = set() if version >= RECORD_ERRORS_SINCE else KEYLESS_AND_LATE
    codes = {
        (name, mine.error_code, kafkas.error_code) for name, (mine, kafkas) in differing.items()
    }
    assert codes == expected
    named = sum(len(indexes) for each in ours.values() for indexes in each.record_errors.values())
    assert (named > 1000) == (version >= RECORD_ERRORS_SINCE)
    for large in (
        ours["small: many without a key (none)"],
        theirs["small: many without a key (none)"],
    ):
        assert large._replace(error_message="") == Refused(too_large, -1, -1, "", {})


@pytest.mark.nightly  # By the responses above, which `make test` has.
def test_kafkas_producer_blames_the_bad_record_alone(barnabas, live_kafka):
    def errors(broker: BrokerProcess) -> list[str]:
        with Wire((HOST, broker.port)) as wire:
            topic = created(wire, "blamed", {"cleanup.policy": "compact"})
        settings = {
            "bootstrap.servers": f"{HOST}:{broker.port}",
            "key.serializer": STRINGS,
            "value.serializer": STRINGS,
            "linger.ms": "60000",  # All records go in one batch, with the flush.
        }
        clients = gateway().jvm.org.apache.kafka.clients.producer
        producer = clients.KafkaProducer(settings)
        try:
            sent = [
                producer.send(clients.ProducerRecord(topic.name, key, "v"))
                for key in ("a", None, "c")
            ]
            producer.flush()
            return [outcome(each) for each in sent]
        finally:
            producer.close()

    ours, theirs = map(errors, (barnabas, live_kafka))
    assert ours == theirs
    assert "InvalidRecordException: Compacted topic cannot accept message" in ours[1]
    assert all("it was part of a batch which had one more" in ours[at] for at in (0, 2))


def outcome(future: Any) -> str:
    """Return the result of a send with Kafka's producer."""
    try:
        return str(future.get().toString())
    except Py4JJavaError as error:
        return str(error.java_exception.getCause().toString())
