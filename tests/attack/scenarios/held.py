"""Frames that are announced and never complete: clients that claim memory without use."""

from __future__ import annotations

import asyncio
import random
import struct
import time
from collections.abc import Awaitable, Callable

from tests.attack.peer import Peer
from tests.attack.scenario import MIB, Limits, Scenario, Sent, Target

ANNOUNCED_BYTES = 100 * MIB - 1000
"""The size of a frame that never completes; just below the limit of one request."""
OUTLASTING_S = 6.0
"""Time for which clients hold memory that others need: longer than the neighbour may wait."""
NEIGHBOUR_S = 3.0
DRIP_BYTES, DRIP_S = 4000, 0.1

_LENGTH = struct.Struct(">i")
Life = Callable[[Peer], Awaitable[None]]


async def _keep_open(target: Target, count: int, duration_s: float, live: Life) -> int:
    """Keep ``count`` connections open, replace closed ones; return the number opened."""
    until_s = time.monotonic() + duration_s
    opened = 0

    async def keep() -> None:
        nonlocal opened
        while time.monotonic() < until_s:
            opened += 1
            try:
                async with asyncio.timeout(until_s - time.monotonic()):
                    async with await target.connect() as peer:
                        await live(peer)
            except (OSError, TimeoutError):
                await asyncio.sleep(0.01)

    await asyncio.gather(*(keep() for _ in range(count)))
    return opened


async def _wait_for_the_end(peer: Peer) -> None:
    while await peer.receive():
        pass


async def announce(target: Target, seed: int, duration_s: float) -> Sent:
    """Eight connections announce 100 MB, send a little or nothing, and fall silent."""
    rng = random.Random(seed)

    async def live(peer: Peer) -> None:
        await peer.send(_LENGTH.pack(ANNOUNCED_BYTES) + rng.randbytes(rng.choice((0, 10, 1000))))
        await _wait_for_the_end(peer)

    opened = await _keep_open(target, 8, max(duration_s, OUTLASTING_S), live)
    return Sent({"announced frames of 100 MB": opened})


async def drip(target: Target, seed: int, duration_s: float) -> Sent:
    """Some send a frame of 100 MB at 40 KB/s, others a small one at ten bytes a second."""
    rng = random.Random(seed)

    async def live(peer: Peer) -> None:
        is_large = rng.random() < 0.2
        size, piece = (ANNOUNCED_BYTES, DRIP_BYTES) if is_large else (2000, 1)
        await peer.send(_LENGTH.pack(size))
        while True:
            await peer.send(bytes(piece))
            await asyncio.sleep(DRIP_S)

    opened = await _keep_open(target, 40, max(duration_s, OUTLASTING_S), live)
    return Sent({"dripping connections": opened})


async def half_frames(target: Target, seed: int, duration_s: float) -> Sent:
    """Hundreds of frames of 1 to 4 MB of which the last bytes never come."""
    rng = random.Random(seed)

    async def live(peer: Peer) -> None:
        size = rng.randrange(1 * MIB, 4 * MIB)
        await peer.send(_LENGTH.pack(size) + bytes(size - rng.choice((1, 1000, size // 2))))
        await _wait_for_the_end(peer)

    opened = await _keep_open(target, 200, max(duration_s, OUTLASTING_S), live)
    return Sent({"half frames": opened})


HELD = Limits(neighbour_s=NEIGHBOUR_S)
SCENARIOS = (
    Scenario("announced-frames", announce, HELD),
    Scenario("dripping-frames", drip, HELD),
    Scenario("half-frames", half_frames, HELD),
)
