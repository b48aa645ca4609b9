"""The HTTP port under connections that send nothing, send too much, or do not read the response."""

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
WATCH = b"GET /api/v1/live?watch=overview,transactions HTTP/1.1\r\n\r\n"
PATIENCE_S = 60


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


async def tabs(target: Target, seed: int, duration_s: float) -> Sent:
    """Watch as 500 tabs of a browser would at a time; some read the events."""
    rng = random.Random(seed)

    async def ask(peer: Peer) -> None:
        await peer.send(WATCH)
        while rng.random() < 0.9:
            await asyncio.sleep(DRIP_S)
            if rng.random() < 0.5:
                await peer.receive(1000)

    return await _hold(target, duration_s, "tabs", target.connect_http, ask)


async def _hold(
    target: Target,
    duration_s: float,
    what: str,
    connect: Callable[[], Awaitable[Peer]],
    ask: Callable[[Peer], Awaitable[None]],
) -> Sent:
    """Keep HELD connections open, replace closed ones; the neighbour sends requests, too."""
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


def _abuse(rng: random.Random) -> bytes:
    """Something that is no question, or more than one."""
    header = b"x-%d: " % rng.randrange(1000)
    return rng.choice(
        (
            rng.randbytes(rng.randrange(1, 2000)),
            WHOLE * rng.randrange(2, 2000),
            b"GET /" + b"a" * rng.randrange(100, 1 << 20) + b" HTTP/1.1\r\n\r\n",
            b"GET /livez HTTP/1.1\r\n" + (header + b"y" * 60 + b"\r\n") * 20_000 + b"\r\n",
            b"POST /config HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"
            + b"x" * 70_000,
            b"GET /livez HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
            b"GET http://[::1/livez HTTP/9.9\r\n\r\n",
            b"GET /%ff%00%2e%2e/livez?" + b"&" * 4000 + b" HTTP/1.0\r\n\r\n",
            b"\r\n" * rng.randrange(1, 10_000),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET /livez HTTP/1.1\nHost: x\n\n",
            WHOLE[: rng.randrange(len(WHOLE))],
        )
    )


async def abuse(target: Target, seed: int, duration_s: float) -> Sent:
    """Send malformed requests: each gets an error response or a closed connection."""
    sent = Sent()
    until_s = time.monotonic() + duration_s

    async def ask(rng: random.Random) -> None:
        while time.monotonic() < until_s:
            with contextlib.suppress(ConnectionError):
                async with await target.connect_http() as peer:
                    sent["questions"] += 1
                    data = _abuse(rng)
                    with contextlib.suppress(ConnectionError):
                        await peer.send(data)
                    peer.finish()
                    ended, _ = await peer.hung_up(PATIENCE_S)
                    target.expect(ended, f"neither answered nor closed: {data[:100]!r}")

    await asyncio.gather(*(ask(random.Random(seed + each)) for each in range(6)))
    return sent


SCENARIOS = (
    Scenario("http-half-questions", half_questions, Limits(livez_s=3.0)),
    Scenario("http-slow-readers", slow_readers, Limits(livez_s=3.0)),
    Scenario("http-tabs", tabs, Limits(livez_s=3.0)),
    Scenario("http-abuse", abuse),
)
