"""The HTTP port held by those who ask for nothing and those who do not read what they asked for."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable

from tests.attack.peer import Peer
from tests.attack.scenario import Limits, Scenario, Sent, Target

HELD = 500
"""Connections that are held open at a time."""
DRIP_S = 0.2
HALVES = (b"", b"G", b"GET /livez HTTP/1.1", b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 4000)
WHOLE = b"GET /metrics HTTP/1.1\r\n\r\n"


async def half_questions(target: Target, seed: int, duration_s: float) -> Sent:
    """Questions that never end: some silent, some growing by a byte now and then."""
    rng = random.Random(seed)

    async def ask(peer: Peer) -> None:
        await peer.send(rng.choice(HALVES))
        while rng.random() < 0.9:
            await asyncio.sleep(DRIP_S)
            await peer.send(b"x")

    return await _hold(target, duration_s, "half questions", target.connect_http, ask)


async def slow_readers(target: Target, seed: int, duration_s: float) -> Sent:
    """Whole questions for the longest page, whose answers are read by a few bytes or not at all."""
    rng = random.Random(seed)

    async def connect() -> Peer:
        return await target.connect_http(receive_buffer_bytes=2048)

    async def ask(peer: Peer) -> None:
        await peer.send(WHOLE)
        while rng.random() < 0.9:
            await asyncio.sleep(DRIP_S)
            await peer.receive(10)

    return await _hold(target, duration_s, "unread answers", connect, ask)


async def _hold(
    target: Target,
    duration_s: float,
    what: str,
    connect: Callable[[], Awaitable[Peer]],
    ask: Callable[[Peer], Awaitable[None]],
) -> Sent:
    """Keep HELD connections open; who loses its own comes again. The neighbour asks meanwhile."""
    sent = Sent()
    until_s = time.monotonic() + duration_s

    async def again_and_again() -> None:
        while time.monotonic() < until_s:
            with contextlib.suppress(OSError):
                async with await connect() as peer:
                    sent[what] += 1
                    await ask(peer)
                    await peer.hung_up(max(0.0, until_s - time.monotonic()))
            await asyncio.sleep(DRIP_S)

    await asyncio.gather(*(again_and_again() for _ in range(HELD)))
    return sent


SCENARIOS = (
    Scenario("http-half-questions", half_questions, Limits(livez_s=3.0)),
    Scenario("http-slow-readers", slow_readers, Limits(livez_s=3.0)),
)
