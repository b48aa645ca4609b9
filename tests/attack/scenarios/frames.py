"""Frames that were valid once: every API in every version, spoilt in every way there is."""

from __future__ import annotations

import asyncio
import random
import struct
import time

from broker import handlers
from broker.dispatch import ROUTES
from tests.attack.peer import Peer, frame
from tests.attack.scenario import Scenario, Sent, Target
from tests.broker.sample_requests import SAMPLES
from tests.protocol.mutilation import MUTATORS

SENDERS = 8
"""Connections at a time."""
FRAMES_MOST = 4
"""Of one connection: a spoilt one is mostly the last."""
PATIENCE_S = 60.0
HEADER_BYTES = 14
"""Key, version, correlation id, length of the client's id, and its first characters."""
VICTIM = "victim"

assert handlers, "importing the package registers the routes"
_LENGTH = struct.Struct(">i")


def valid_frames(topic: str, topic_id: bytes = bytes(16)) -> list[bytes]:
    """One request of every API in every version that is served, without the length."""
    return [
        frame(route.api, version, SAMPLES[route.name](topic, topic_id, "gone", bytes(16)))[4:]
        for route in ROUTES
        for version in range(route.min_version, route.max_version + 1)
    ]


def spoilt(payload: bytes, rng: random.Random) -> bytes:
    """A frame whose payload, or only its header, was mutated once or twice; its length fits."""
    for _ in range(rng.choice((1, 1, 1, 2))):
        mutate = rng.choice(MUTATORS)
        if rng.random() < 0.2:
            payload = mutate(payload[:HEADER_BYTES], rng) + payload[HEADER_BYTES:]
        else:
            payload = mutate(payload or b"\0", rng)
    return _LENGTH.pack(len(payload)) + payload


async def mutate_frames(target: Target, seed: int, duration_s: float) -> Sent:
    """Every frame is answered or refused by closing: never a hang, never an error of ours."""
    frames = valid_frames(VICTIM)
    order = random.Random(seed)
    sent = Sent()
    until_s = time.monotonic() + duration_s
    first_round = iter(order.sample(frames, len(frames)))

    async def send_some(rng: random.Random) -> None:
        while True:
            # Each API and version at least once, however short the time.
            valid = [each for each in [next(first_round, None)] if each is not None]
            if not valid and time.monotonic() > until_s:
                return
            valid += [rng.choice(frames) for _ in range(rng.randrange(FRAMES_MOST))]
            data = b"".join(spoilt(each, rng) for each in valid)
            await _send(await target.connect(), data, target)
            sent["spoilt frames"] += len(valid)

    await asyncio.gather(*(send_some(random.Random(seed + 1 + each)) for each in range(SENDERS)))
    return sent


async def _send(peer: Peer, data: bytes, target: Target) -> None:
    async with peer:
        try:
            await peer.send(data)
        except ConnectionError:
            return
        peer.finish()
        ended, _ = await peer.hung_up(PATIENCE_S)
        target.expect(ended, f"neither answered nor refused: {data[:300].hex()}")


SCENARIOS = (Scenario("mutated-frames", mutate_frames, weight=4),)
