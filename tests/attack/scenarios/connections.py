"""Connections that take a place, or memory, and give little for it."""

from __future__ import annotations

import asyncio
import random
import struct
import time

from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE
from tests.attack.peer import Peer, frame
from tests.attack.scenario import Scenario, Sent, Target
from tests.broker.data_plane import Named, batch, produce_request

SMALL_RECEIVE_BUFFER_BYTES = 4096

_LENGTH = struct.Struct(">i")


async def storm(target: Target, seed: int, duration_s: float) -> Sent:
    """Connections are opened, closed, reset in every stage, and left alone, as fast as it goes."""
    echo = frame(API_VERSIONS, 3, ApiVersionsRequest("storm", "1"))
    sent = Sent()
    until_s = time.monotonic() + duration_s
    idle: list[Peer] = []

    async def visit(rng: random.Random) -> None:
        while time.monotonic() < until_s:
            try:
                peer = await target.connect()
                await peer.send(rng.choice((b"", echo[:3], echo[:9], echo, echo * 20)))
            except (OSError, TimeoutError):
                sent["refused connections"] += 1
                continue
            sent["connections"] += 1
            if rng.random() < 0.1:
                idle.append(peer)
            else:
                rng.choice((peer.close, peer.reset))()
            if len(idle) > 1000:
                idle.pop(0).reset()

    await asyncio.gather(*(visit(random.Random(seed + each)) for each in range(16)))
    for peer in idle:
        peer.close()
    return sent


async def pipeline(target: Target, seed: int, duration_s: float) -> Sent:
    """Send thousands of requests before reading a response; each gets its response.

    Another connection does the same and reads nothing at all.
    """
    requests = [
        frame(API_VERSIONS, 3, ApiVersionsRequest("pipeline", "1")),
        frame(METADATA, 9, MetadataRequest(None)),
        frame(PRODUCE, 9, produce_request(9, Named("nowhere"), (0, batch()))),
    ]
    sent = Sent()
    until_s = time.monotonic() + duration_s
    rng = random.Random(seed)
    chosen = b"".join(rng.choices(requests, k=2000))

    async def never_read() -> None:
        async with await target.connect(receive_buffer_bytes=SMALL_RECEIVE_BUFFER_BYTES) as peer:
            try:
                async with asyncio.timeout(duration_s):
                    while True:
                        await peer.send(chosen)
                        sent["requests"] += 2000
            except (OSError, TimeoutError):
                peer.reset()

    async def read_late() -> None:
        while time.monotonic() < until_s:
            async with await target.connect() as peer:
                sending = asyncio.create_task(peer.send(chosen))
                await asyncio.sleep(0.2)
                answers = await count_answers(peer, 2000)
                await sending
                target.expect(answers == 2000, f"{answers} of 2000 requests were answered")
                sent["requests"] += 2000

    await asyncio.gather(never_read(), never_read(), read_late(), read_late())
    return sent


async def count_answers(peer: Peer, most: int) -> int:
    """Read whole answers until there are ``most``, or the end; how many there were."""
    data = bytearray()
    count = position = 0
    while count < most:
        piece = await peer.receive()
        if not piece:
            break
        data += piece
        while len(data) - position >= 4:
            (size,) = _LENGTH.unpack_from(data, position)
            if len(data) - position < 4 + size:
                break
            position += 4 + size
            count += 1
        del data[:position]
        position = 0
    return count


SCENARIOS = (
    Scenario("connection-storm", storm),
    Scenario("pipelines", pipeline),
)
