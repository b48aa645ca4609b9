"""Frames that were valid once: every API in every version, spoilt in every way there is."""

from __future__ import annotations

import asyncio
import random
import struct
import time

from barnabas.broker import handlers
from barnabas.broker.api.dispatch import ROUTES
from barnabas.protocol.messages import ENTRIES
from tests.attack.peer import Peer, frame
from tests.attack.scenario import Limits, Scenario, Sent, Target
from tests.broker.sample_requests import SAMPLES
from tests.protocol.mutilation import MUTATORS
from tests.protocol.random_messages import RandomMessages, all_cases

SENDERS = 8
"""Connections at a time."""
FRAMES_MOST = 4
"""The number of frames on one connection: a spoilt one is mostly the last."""
PATIENCE_S = 60.0
HEADER_BYTES = 14
"""Key, version, correlation id, length of the client's id, and its first characters."""
VICTIM = "victim"
KEYS = {entry.module: key for key, entry in ENTRIES.items()}

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
        begin = HEADER_BYTES if rng.random() < 0.2 else len(payload)
        payload = mutate(payload[:begin] or b"\0", rng) + payload[begin:]
    return _LENGTH.pack(len(payload)) + payload


async def mutate_frames(target: Target, seed: int, duration_s: float) -> Sent:
    """Send mutated frames: each gets a response or a closed connection, without a hang."""
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


async def make_up_requests(target: Target, seed: int, duration_s: float) -> Sent:
    """Send well-formed requests of every API and version, with random values."""
    messages = RandomMessages(seed)
    rng = random.Random(seed)
    served = {route.key: route for route in ROUTES}
    cases = [
        case
        for case in all_cases()
        if case.section == "request"
        and (route := served.get(KEYS[case.module])) is not None
        and route.min_version <= case.version <= route.max_version
    ]
    sent = Sent()
    until_s = time.monotonic() + duration_s

    async def send_some() -> None:
        while time.monotonic() < until_s:
            chosen = rng.choices(cases, k=rng.randrange(1, FRAMES_MOST))
            frames = [
                frame(served[KEYS[case.module]].api, case.version, messages.message(case))
                for case in chosen
            ]
            sent["made-up requests"] += len(frames)
            await _send(await target.connect(), b"".join(frames), target)

    await asyncio.gather(*(send_some() for _ in range(SENDERS)))
    return sent


SCENARIOS = (
    Scenario("mutated-frames", mutate_frames, Limits(descriptors_left=500), weight=4),
    Scenario("made-up-requests", make_up_requests, Limits(descriptors_left=500), weight=2),
)
