"""Rows of APIs that write, read and find records."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.protocol import compression
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest
from barnabas.protocol.messages.describe_producers import TopicRequest as ProducersOfTopic
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.records import BatchHeader, Record, encode_batch, seal, varint
from tests.attack.peer import frame
from tests.attack.scenarios.bombs import (
    batch_of,
    compressed_tiny,
    gzip_bomb,
    lz4_bomb,
    snappy_bomb,
    tiny_records,
    zstd_bomb,
)
from tests.attack.shapes.building import NAMES_MOST, Message, Row, arrays, one, route_of, unread
from tests.attack.shapes.shape import Shape
from tests.attack.shapes.size import part
from tests.attack.shapes.world import (
    ABORTED,
    BATCHES,
    COMPACTED,
    HUGE,
    JSON_VALUES,
    PARTITIONS,
    PRODUCERS,
    RECORDS,
    SCRATCH,
    TINY,
    WIDE,
    WIDE_PARTITIONS,
    World,
)
from tests.broker.data_plane import NOW_MS, Named, fetch_request, produce_request

PRODUCE_VERSION, FETCH_VERSION = 12, 12
"""The last ones that name topics."""
BATCH_BYTES = 1_000_000
MILLION = part(1_000_000)
LONG_NAMES = part(90_000)
EMPTY_PARTITIONS = part(WIDE_PARTITIONS)
EVERYTHING_BYTES = 1 << 30
MAX_TIMESTAMP = -3


def _produce(topic: str, make: Callable[[], bytes], partitions: int = 1) -> Message:
    """Return a Produce of the same batch to some partitions."""

    def message(_world: object) -> ProduceRequest:
        batch = make()
        places = range(SCRATCH, SCRATCH + partitions)
        return produce_request(
            PRODUCE_VERSION, Named(topic), *((each, memoryview(batch)) for each in places)
        )

    return message


def _tiny_uncompressed() -> bytes:
    count = 100_000
    return bytes(batch_of(tiny_records(count), count, 0))


def _tiny_compressed() -> bytes:
    return compressed_tiny(MILLION)


def _headers() -> bytes:
    headers = [("", None)] * 300_000
    return encode_batch([Record(0, NOW_MS, b"", b"", headers)])


def _bomb(body: Callable[[], bytes], codec: int, count: int = 1) -> Callable[[], bytes]:
    return lambda: bytes(batch_of(body(), count, codec))


def _produced() -> list[Shape]:
    many = PARTITIONS - SCRATCH
    bodies: dict[str, tuple[Callable[[], bytes], int, int]] = {
        "4 GiB in zstd": (zstd_bomb, compression.ZSTD, 1),
        "256 MiB in gzip": (gzip_bomb, compression.GZIP, 1),
        "64 MiB in lz4": (lz4_bomb, compression.LZ4, 1),
        "64 MiB in snappy": (snappy_bomb, compression.SNAPPY, 1),
    }
    shapes = [
        one(f"{name}, to {topic}", "Produce", _produce(topic, _bomb(*body), many), PRODUCE_VERSION)
        for topic in (RECORDS, COMPACTED)
        for name, body in bodies.items()
    ]
    plain: dict[str, Callable[[], bytes]] = {
        "100,000 tiny records": _tiny_uncompressed,
        "300,000 headers": _headers,
        "one large record": lambda: encode_batch([Record(0, NOW_MS, b"k", bytes(BATCH_BYTES))]),
    }
    shapes += [
        one(f"{name}, to {topic}", "Produce", _produce(topic, make, many), PRODUCE_VERSION)
        for topic in (RECORDS, COMPACTED)
        for name, make in plain.items()
    ]
    shapes += [
        one(
            f"{MILLION:,} records in zstd, to {topic}",
            "Produce",
            _produce(topic, _bomb(_tiny_compressed, compression.ZSTD, MILLION), many),
            PRODUCE_VERSION,
            is_part=True,
        )
        for topic in (RECORDS, COMPACTED)
    ]
    small = encode_batch([Record(0, NOW_MS, b"k", b"v")])
    return [
        *shapes,
        one(
            "a batch for each of 10,000 partitions",
            "Produce",
            lambda _: produce_request(
                PRODUCE_VERSION,
                Named(WIDE),
                *((each, memoryview(small)) for each in range(WIDE_PARTITIONS)),
            ),
            PRODUCE_VERSION,
        ),
        unread(
            "4,000 requests with 1,000 unknown partitions each, unread",
            "Produce",
            lambda _: produce_request(
                PRODUCE_VERSION,
                Named("gone"),
                *((each, memoryview(small)) for each in range(1000)),
            ),
            4_000,
            PRODUCE_VERSION,
        ),
    ]


def _fetch(topic: str, *partitions: int, isolation: int = 0) -> Message:
    return lambda _world: fetch_request(
        FETCH_VERSION,
        (Named(topic), *((each, 0) for each in partitions)),
        max_bytes=EVERYTHING_BYTES,
        partition_max_bytes=EVERYTHING_BYTES,
        isolation=isolation,
    )


def _fetch_one_often(_world: object) -> FetchRequest:
    return fetch_request(
        FETCH_VERSION,
        (Named(RECORDS), *[(BATCHES, 0)] * 50_000),
        max_bytes=EVERYTHING_BYTES,
        partition_max_bytes=EVERYTHING_BYTES,
    )


def _fetched() -> list[Shape]:
    written = (TINY, BATCHES, HUGE, JSON_VALUES, ABORTED)
    shapes = {
        "thousands of tiny batches": _fetch(RECORDS, BATCHES),
        "everything of each partition": _fetch(RECORDS, *written),
        "aborted transactions": _fetch(RECORDS, *written, isolation=1),
        "10,000 empty partitions": _fetch(WIDE, *range(WIDE_PARTITIONS)),
        "one partition 50,000 times": _fetch_one_often,
    }
    read = [one(name, "Fetch", message, FETCH_VERSION) for name, message in shapes.items()]
    return [
        *read,
        unread(
            "1,000 requests for everything, unread", "Fetch", _fetch(RECORDS, *written), 1000, 12
        ),
        unread(
            "1,000 requests for 10,000 partitions, unread",
            "Fetch",
            shapes["10,000 empty partitions"],
            1000,
            12,
        ),
    ]


def _offsets_at(topic: str, timestamp: int, *partitions: int) -> Message:
    return lambda _world: ListOffsetsRequest(
        -1,
        0,
        [
            ListOffsetsTopic(
                topic, [ListOffsetsPartition(each, -1, timestamp) for each in partitions]
            )
        ],
    )


def _late(world: World) -> Iterable[bytes]:
    """Write the batch where a time has to be sought record by record, then seek it everywhere."""
    places = range(SCRATCH, SCRATCH + 2)
    written = _produce(RECORDS, _late_records, len(places))(world)
    yield frame(route_of("Produce").api, PRODUCE_VERSION, written)
    sought = _offsets_at(RECORDS, NOW_MS + 1, *places)(world)
    yield frame(route_of("ListOffsets").api, 9, sought)


def _listed() -> list[Shape]:
    every = range(EMPTY_PARTITIONS)
    looked_up = {
        f"the end of {MILLION:,} tiny records": _offsets_at(RECORDS, NOW_MS, TINY),
        "a time in each partition with records": _offsets_at(RECORDS, NOW_MS, *range(PARTITIONS)),
        "the latest record of each": _offsets_at(RECORDS, MAX_TIMESTAMP, TINY, BATCHES),
        f"a time in {EMPTY_PARTITIONS:,} empty partitions": _offsets_at(WIDE, NOW_MS, *every),
        f"the latest record of {EMPTY_PARTITIONS:,} empty ones": _offsets_at(
            WIDE, MAX_TIMESTAMP, *every
        ),
        f"the ends of {EMPTY_PARTITIONS:,}": _offsets_at(WIDE, -1, *every),
    }
    found = [one(name, "ListOffsets", message, is_part=True) for name, message in looked_up.items()]
    return [*found, Shape(f"the last of {MILLION:,} records", _late, is_part=True)]


def _metadata() -> list[Shape]:
    every: Message = lambda _world: MetadataRequest(None)  # noqa: E731
    wide = MetadataRequestTopic(name=WIDE)
    again: Message = lambda _world: MetadataRequest([wide] * NAMES_MOST)  # noqa: E731
    long_names: Message = lambda _world: MetadataRequest(  # noqa: E731
        [MetadataRequestTopic(name=f"{number:08d}" + "x" * 150) for number in range(LONG_NAMES)],
        allow_auto_topic_creation=True,
    )
    return [
        one("every topic", "Metadata", every),
        one("a topic of 10,000 partitions, 10,000 times", "Metadata", again),
        one(f"{LONG_NAMES:,} long names", "Metadata", long_names, is_part=True),
        unread("every topic 1,000 times, unread", "Metadata", every, 1000),
        unread("10,000 partitions 10,000 times, unread", "Metadata", again, 20),
    ]


def _producers(_world: object) -> DescribeProducersRequest:
    return DescribeProducersRequest([ProducersOfTopic(RECORDS, [PRODUCERS] * 90_000)])


def _producers_once(_world: object) -> DescribeProducersRequest:
    return DescribeProducersRequest([ProducersOfTopic(RECORDS, [PRODUCERS])])


def _wide_partitions(_world: object) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest([TopicRequest(WIDE)], 2000)


def _late_records() -> bytes:
    """Return MILLION records of which only the last one is a millisecond later."""
    count = MILLION
    last = b"\0\2" + varint(count - 1) + b"\0\1\0"
    before = tiny_records(count)[: -len(last) - 1]
    body = compression.compress(compression.ZSTD, before + varint(len(last)) + last)
    fields = (0, 0, -1, 2, 0, compression.ZSTD, count - 1, NOW_MS, NOW_MS + 1, -1, -1, -1, count)
    return bytes(seal(BatchHeader(*fields), body))


DATA: dict[str, Row] = {
    "Produce": [*_produced(), *arrays("Produce")],
    "Fetch": [*_fetched(), *arrays("Fetch")],
    "ListOffsets": [*_listed(), *arrays("ListOffsets")],
    "OffsetForLeaderEpoch": arrays("OffsetForLeaderEpoch"),
    "Metadata": [*_metadata(), *arrays("Metadata")],
    "DescribeTopicPartitions": [
        unread(
            "10,000 partitions 2,000 times, unread",
            "DescribeTopicPartitions",
            _wide_partitions,
            2_000,
        ),
        *arrays("DescribeTopicPartitions"),
    ],
    "DescribeProducers": [
        one("2,000 producers, 90,000 times", "DescribeProducers", _producers),
        unread("2,000 producers 2,000 times, unread", "DescribeProducers", _producers_once, 2_000),
        *arrays("DescribeProducers"),
    ],
    "DeleteRecords": arrays("DeleteRecords"),
}
