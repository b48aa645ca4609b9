"""Readers that ask for much and take little."""

from __future__ import annotations

import asyncio
import random
import time

from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.produce import PRODUCE
from tests.attack.neighbour import create_topic
from tests.attack.peer import Peer, frame
from tests.attack.scenario import MIB, Scenario, Sent, Target
from tests.broker.data_plane import Named, batch, fetch_request, produce_request

SMALL_RECEIVE_BUFFER_BYTES = 4096
STORED_VALUES, STORED_BYTES = 40, 500_000
VICTIM = "victim"


async def sip(peer: Peer, pause_s: float) -> None:
    """Read a byte at a time until the end."""
    while True:
        if not await peer.receive(1):
            return
        await asyncio.sleep(pause_s)


async def _store(target: Target) -> None:
    """Create a topic with 20 MB to fetch."""
    await create_topic(target.broker.port, VICTIM, 1)
    async with await target.wire() as wire:
        for _ in range(STORED_VALUES):
            request = produce_request(9, Named(VICTIM), (0, batch(bytes(STORED_BYTES))))
            await wire.ask(PRODUCE, request, 9)


async def read_slowly(target: Target, seed: int, duration_s: float) -> Sent:
    """Sixty-four connections ask for 20 MB a hundred times each; read nothing, or a byte a time."""
    await _store(target)
    asked = fetch_request(
        11, (Named(VICTIM), (0, 0)), max_bytes=50 * MIB, partition_max_bytes=50 * MIB
    )
    fetches = frame(FETCH, 11, asked) * 100
    until_s = time.monotonic() + max(duration_s, 3)
    sent = Sent()

    async def starve(rng: random.Random) -> None:
        small = SMALL_RECEIVE_BUFFER_BYTES
        async with await target.connect(receive_buffer_bytes=small) as peer:
            try:
                async with asyncio.timeout(until_s - time.monotonic()):
                    await peer.send(fetches)
                    sent["Fetches of 20 MB"] += 100
                    reads = rng.random() < 0.5
                    await (sip(peer, 0.01) if reads else asyncio.sleep(max(duration_s, 3)))
            except (OSError, TimeoutError):
                sent["connections that were full or hung up"] += 1
            rng.choice((peer.close, peer.reset))()

    await asyncio.gather(*(starve(random.Random(seed + each)) for each in range(64)))
    return sent


SCENARIOS = (Scenario("slow-readers", read_slowly),)
