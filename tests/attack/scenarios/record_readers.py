"""Clients of the HTTP port that request records and read nothing of the response.

The records are small on the disk and large in memory: a batch of 58 KB has one value of 60 MB.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from functools import cache

from barnabas.protocol import compression
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import Record, encode_batch, varint
from tests.attack.neighbour import create_topic
from tests.attack.scenario import Limits, Scenario, Sent, Target
from tests.attack.scenarios.bombs import PRODUCE_VERSION, RECORDS, batch_of, compressed_tiny
from tests.broker.data_plane import NOW_MS, Named, produce_request

TOPIC = "bombs"
VALUE_BYTES = 60_000_000
BOMBS = 8
"""Batches with one large value."""
HEADERS = 1_000_000
"""Headers of one record: two bytes each in the batch, an object of 80 each after decoding."""
KEY_BYTES = 40_000
READERS = 60
PAUSE_S = 0.2
OUTLASTING_S = 8.0
"""An attack lasts at least so long: the broker needs a second for the first responses."""
REQUESTS = (
    b"/records/export?limit=500&partition=0",
    b"/partitions/0/records/%d/raw",
    b"/partitions/0/records/%d",
    b"/records?limit=500&partition=0",
    b"/records/export?limit=500&order=oldest&partition=0&from=offset:%d",
)
RARE_REQUESTS = (
    b"/records?limit=500&partition=1",
    b"/records?limit=500&order=oldest&partition=1",
    b"/partitions/1/records/%d",
)
"""About a million records, or headers: they take the broker a long time."""
RARE = 0.05


@cache
def _bombs() -> tuple[tuple[int, bytes | memoryview], ...]:
    """Return pairs of partition and batch."""
    zeros = Record(0, NOW_MS, None, bytes(VALUE_BYTES))
    # Each control character is six characters of JSON, and the last one makes all of them wide.
    wide = Record(0, NOW_MS, None, b"\x01" * VALUE_BYTES + "\N{PILE OF POO}".encode())
    values = (encode_batch([zeros], compression=compression.GZIP),) * (BOMBS - 2)
    wides = (encode_batch([wide], compression=compression.GZIP),) * 2
    tiny = batch_of(compressed_tiny(), RECORDS, compression.ZSTD)
    return (*((0, each) for each in (*values, *wides)), (1, tiny), (1, _many_headers()))


def _many_headers() -> memoryview:
    """A batch of one record with a million headers without names and values.

    Its key does not compress, so that the broker checks the batch on a thread.
    """
    key = random.Random(0).randbytes(KEY_BYTES)
    headers = varint(HEADERS) + b"\0\1" * HEADERS
    record = b"\0\0\0" + varint(len(key)) + key + b"\1" + headers
    body = varint(len(record)) + record
    return batch_of(compression.compress(compression.GZIP, body), 1, compression.GZIP)


async def unread_records(target: Target, seed: int, duration_s: float) -> Sent:
    """Exports, downloads, records and pages, none of which is read."""
    await create_topic(target.broker.port, TOPIC, 2)
    sent = Sent()
    async with await target.wire() as wire:
        for partition, batch in _bombs():
            data = (partition, memoryview(batch))
            request = produce_request(PRODUCE_VERSION, Named(TOPIC), data)
            response = await wire.ask(PRODUCE, request, PRODUCE_VERSION)
            error = response.responses[0].partition_responses[0].error_code
            target.expect(not error, f"a batch was refused: {error}")
    until_s = time.monotonic() + max(duration_s, OUTLASTING_S)

    async def read_nothing(rng: random.Random) -> None:
        while time.monotonic() < until_s:
            path = rng.choice(RARE_REQUESTS if rng.random() < RARE else REQUESTS)
            path = path % rng.randrange(BOMBS) if b"%" in path else path
            with contextlib.suppress(OSError):
                async with await target.connect_http(receive_buffer_bytes=2048) as peer:
                    sent["requests"] += 1
                    await peer.send(
                        b"GET /api/v1/topics/%b%b HTTP/1.1\r\n\r\n" % (TOPIC.encode(), path)
                    )
                    await asyncio.sleep(min(rng.expovariate(0.25), until_s - time.monotonic()))
            await asyncio.sleep(PAUSE_S)

    await asyncio.gather(*(read_nothing(random.Random(seed + each)) for each in range(READERS)))
    return sent


# The broker returns freed memory 20 s after a load, and decodes a million records until then.
SCENARIOS = (Scenario("http-unread-records", unread_records, Limits(settle_s=120.0)),)
