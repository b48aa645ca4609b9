"""Requests that are incomplete, or complete and not handled, until memory is full of them."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import time
from collections.abc import Awaitable, Callable

from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.fetch import FETCH
from tests.attack.neighbour import create_topic
from tests.attack.peer import Peer, frame
from tests.attack.scenario import MIB, Limits, Scenario, Sent, Target
from tests.broker.data_plane import Named, fetch_request

LARGEST_MIB = 100
"""The largest request that is received by default."""
HELLO = frame(API_VERSIONS, 0, ApiVersionsRequest())
PAUSE_S = 0.1
WAIT_MS = 8000
"""The maximum wait of a Fetch; the broker sees a client's end only after reading all that
it sent."""
VICTIM = "victim"
AT_A_TIME = 200
"""Connections that are opened at a time: more would only wait for each other."""

Begin = Callable[[Peer], Awaitable[None]]


async def all_but_one_byte(target: Target, seed: int, duration_s: float) -> Sent:
    """A few of the largest requests that lack nothing but their last byte."""

    async def begin(peer: Peer) -> None:
        await _greet(peer)
        await peer.send(struct.pack(">i", LARGEST_MIB * MIB))
        for _ in range(LARGEST_MIB - 1):
            await peer.send(bytes(MIB))
        await peer.send(bytes(MIB - 1))

    return await _hold(target, duration_s, "requests without their last byte", 4, begin)


async def small_halves(target: Target, seed: int, duration_s: float) -> Sent:
    """Incomplete requests just too small for memory of their own, on thousands of connections."""
    part = struct.pack(">i", 255_000) + bytes(250_000)

    async def begin(peer: Peer) -> None:
        await _greet(peer)
        await peer.send(part)

    return await _hold(target, duration_s, "small halves", 2000, begin)


async def behind_parked_fetches(target: Target, seed: int, duration_s: float) -> Sent:
    """Send whole requests behind a waiting Fetch: the broker only reads them ahead."""
    await create_topic(target.broker.port, VICTIM, 1)
    asked = fetch_request(11, (Named(VICTIM), (0, 0)), max_wait_ms=WAIT_MS, min_bytes=MIB)
    parked = frame(FETCH, 11, asked)

    async def begin(peer: Peer) -> None:
        await peer.send(parked * (250_000 // len(parked)))

    return await _hold(target, duration_s, "connections behind a Fetch", 1500, begin)


async def _greet(peer: Peer) -> None:
    """Complete a request, so as not to be a stranger any more."""
    await peer.send(HELLO)
    await peer.receive()


async def _hold(target: Target, duration_s: float, what: str, number: int, begin: Begin) -> Sent:
    """Keep ``number`` connections as ``begin`` leaves them; a closed one is replaced."""
    sent = Sent()
    until_s = time.monotonic() + duration_s
    opening = asyncio.Semaphore(AT_A_TIME)

    async def again_and_again() -> None:
        while time.monotonic() < until_s:
            with contextlib.suppress(OSError, TimeoutError):
                async with opening:
                    peer = await target.connect()
                async with peer, asyncio.timeout(max(0.0, until_s - time.monotonic())):
                    sent[what] += 1
                    await begin(peer)
                    await peer.hung_up(duration_s)
            await asyncio.sleep(PAUSE_S)

    await asyncio.gather(*(again_and_again() for _ in range(number)))
    return sent


SCENARIOS = (
    Scenario("all-but-one-byte", all_but_one_byte),
    Scenario("small-half-requests", small_halves),
    Scenario("behind-parked-fetches", behind_parked_fetches, Limits(peak_bytes=200 * MIB)),
)
