"""Batches that are small on the wire and large inside, and batches whose records are none."""

from __future__ import annotations

import asyncio
import contextlib
import random
import struct
import time
import zlib
from collections.abc import Callable
from functools import cache

from barnabas.protocol import compression
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import HEADER, BatchHeader, seal, varint
from barnabas.storage.log.batch_rules import FEW_RECORDS
from tests.attack.neighbour import create_topic
from tests.attack.peer import Wire
from tests.attack.scenario import MIB, Limits, Scenario, Sent, Target
from tests.broker.data_plane import NOW_MS, Named, produce_request

PARTITIONS = 16
TOPICS = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact"},
    "bounded": {"message.timestamp.before.max.ms": "9000000000000"},
    "appended": {"message.timestamp.type": "LogAppendTime"},
    "recompressed": {"compression.type": "gzip"},
}
"""The settings of a topic decide how much of a batch the broker reads."""
RECORDS = 1_000_000
EXPANDED_BYTES = 4 << 30
PATIENCE_S = 120.0
OUTLASTING_S = 6.0
"""Longer than the neighbour may wait."""
PRODUCE_VERSION = 9


def batch_of(body: bytes, count: int, codec: int) -> memoryview:
    """A batch with a good header and checksum around any bytes."""
    fields = (0, 0, -1, 2, 0, codec, count - 1, NOW_MS, NOW_MS, -1, -1, -1, count)
    assert HEADER.size
    return memoryview(seal(BatchHeader(*fields), body))


@cache
def tiny_records(count: int = RECORDS) -> bytes:
    """The body of a batch of ``count`` records with empty keys and without values."""
    pieces = []
    for number in range(count):
        record = b"\0\0" + varint(number) + b"\0\1\0"
        pieces.append(varint(len(record)) + record)
    return b"".join(pieces)


@cache
def zstd_bomb(expanded_bytes: int = EXPANDED_BYTES) -> bytes:
    """A zstd frame of blocks that each repeat one byte 131,072 times: four bytes for each."""
    block_bytes = 1 << 17
    header = struct.pack("<I", block_bytes << 3 | 1 << 1)[:3]
    last = struct.pack("<I", block_bytes << 3 | 1 << 1 | 1)[:3]
    blocks = (header + b"\0") * (expanded_bytes // block_bytes - 1)
    return bytes.fromhex("28b52ffd") + b"\0\x50" + blocks + last + b"\0"


@cache
def gzip_bomb(expanded_bytes: int = 256 * MIB) -> bytes:
    """A gzip stream of zeros, a thousand to one."""
    squeeze = zlib.compressobj(9, wbits=31)
    piece = bytes(1 * MIB)
    pieces = [squeeze.compress(piece) for _ in range(expanded_bytes // len(piece))]
    return b"".join([*pieces, squeeze.flush()])


@cache
def lz4_bomb(expanded_bytes: int = 64 * MIB) -> bytes:
    """An lz4 frame of zeros, 250 to one."""
    return compression.compress(compression.LZ4, bytes(expanded_bytes))


@cache
def snappy_bomb(expanded_bytes: int = 64 * MIB) -> bytes:
    """Snappy blocks of zeros, in Java's framing."""
    return compression.compress(compression.SNAPPY, bytes(expanded_bytes))


def snappy_lie() -> bytes:
    """Return a bare snappy block with a declared size of four gigabytes."""
    return b"\xff\xff\xff\xff\x0f" + b"\0" * 100


Made = tuple[bytes, int, int]
"""Body, number of records, codec."""


def _bombs(rng: random.Random) -> Made:
    count = rng.choice((1, 1000, RECORDS))
    made: tuple[Callable[[], Made], ...] = (
        lambda: (zstd_bomb(), count, compression.ZSTD),
        lambda: (zstd_bomb(256 * MIB), count, compression.ZSTD),
        lambda: (zstd_bomb()[: rng.randrange(100_000)], count, compression.ZSTD),
        lambda: (gzip_bomb(), count, compression.GZIP),
        lambda: (lz4_bomb(), count, compression.LZ4),
        lambda: (snappy_bomb(), count, compression.SNAPPY),
        lambda: (snappy_lie(), count, compression.SNAPPY),
    )
    return rng.choice(made)()


@cache
def compressed_tiny(count: int = RECORDS) -> bytes:
    """Just within what one batch may have: the other codecs need more bytes."""
    return compression.compress(compression.ZSTD, tiny_records(count))


def _garbage(rng: random.Random) -> Made:
    codec = rng.choice((0, 0, compression.ZSTD, compression.GZIP, compression.LZ4))
    # The broker reads more of them uncompressed only if the topic requires it.
    count = rng.choice((1, 2, FEW_RECORDS, 100, RECORDS) if codec else (1, 2, FEW_RECORDS))
    whole = tiny_records(10)
    body = rng.choice(
        (
            rng.randbytes(rng.randrange(1, 5000)),
            b"",
            # Nine records and a piece, under a header with another count.
            whole[: rng.randrange(len(whole) - 3, len(whole))],
            whole + b"\0" * 50,
            b"\xff" * 100,
            varint(1 << 30) + whole,
            bytes(12_000),
        )
    )
    # Left as it is now and then: what says it is compressed, and is not.
    packed = body if rng.random() < 0.2 else compression.compress(codec, body)
    return packed, count, codec


async def _produce(
    target: Target,
    seed: int,
    duration_s: float,
    make: Callable[[random.Random], Made],
    *,
    at_once: int,
) -> Sent:
    """Send the batches of ``make`` to all kinds of topics; return the count of each error."""
    for topic, configs in TOPICS.items():
        await create_topic(target.broker.port, topic, PARTITIONS, configs)
    sent = Sent()
    until_s = time.monotonic() + duration_s
    topics = iter(list(TOPICS))

    async def produce(rng: random.Random) -> None:
        while True:
            # To each kind of topic once, however short the time.
            topic = next(topics, None)
            if topic is None and time.monotonic() > until_s:
                return
            count = at_once if topic else rng.choice((1, 2, at_once))
            partitions = rng.sample(range(PARTITIONS), count)
            data = [(partition, batch_of(*make(rng))) for partition in partitions]
            named = Named(topic or rng.choice(list(TOPICS)))
            request = produce_request(PRODUCE_VERSION, named, *data)
            async with await target.wire() as wire:
                await _answered(target, wire, request, sent)

    await asyncio.gather(*(produce(random.Random(seed + each)) for each in range(2)))
    return sent


async def _answered(target: Target, wire: Wire, request: object, sent: Sent) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            response = await wire.ask(PRODUCE, request, PRODUCE_VERSION)
    except TimeoutError:
        target.violations.append("a Produce was not answered")
        return
    for answer in response.responses[0].partition_responses:
        sent[ErrorCode(answer.error_code).name] += 1


async def bombs(target: Target, seed: int, duration_s: float) -> Sent:
    """Some hundred KB that expand to gigabytes, in every codec."""
    return await _produce(target, seed, duration_s, _bombs, at_once=4)


async def tiny(target: Target, seed: int, duration_s: float) -> Sent:
    """Sixteen batches of a million records without a byte in one Produce, one after the other.

    The client leaves before the broker reads them: that may take longer than a small attack.
    """
    rng = random.Random(seed)
    for topic, configs in TOPICS.items():
        await create_topic(target.broker.port, topic, PARTITIONS, configs)
    one = batch_of(compressed_tiny(), RECORDS, compression.ZSTD)
    data = [(partition, one) for partition in range(PARTITIONS)]
    sent = Sent()
    until_s = time.monotonic() + max(duration_s, OUTLASTING_S)

    async def produce(topic: str) -> None:
        while (left_s := until_s - time.monotonic()) > 0:
            request = produce_request(PRODUCE_VERSION, Named(topic), *data)
            with contextlib.suppress(TimeoutError):
                async with (
                    asyncio.timeout(left_s * rng.uniform(0.5, 1)),
                    await target.wire() as wire,
                ):
                    sent["Produces of 16 million records"] += 1
                    await wire.ask(PRODUCE, request, PRODUCE_VERSION)
                    sent["of these answered"] += 1

    await asyncio.gather(*map(produce, TOPICS))
    return sent


async def garbage(target: Target, seed: int, duration_s: float) -> Sent:
    """Bodies that are no records, or another number of them, under a good checksum."""
    sent = await _produce(target, seed, duration_s, _garbage, at_once=PARTITIONS)
    accepted = sent[ErrorCode.NONE.name]
    target.expect(not accepted, f"{accepted} batches that nobody can read were acknowledged")
    return sent


FILES = PARTITIONS * len(TOPICS) + 32
"""Every partition that was written to keeps its segment open, and the journal has more files."""
SCENARIOS = (
    Scenario("compression-bombs", bombs, Limits(descriptors_left=FILES)),
    Scenario("tiny-records", tiny, Limits(descriptors_left=FILES)),
    Scenario("garbage-records", garbage, Limits(descriptors_left=FILES)),
)
