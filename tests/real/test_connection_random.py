"""Any mix of requests, cut anywhere, completed in any order: answers come whole and in order."""

from __future__ import annotations

import asyncio
import random

import pytest

from barnabas.broker.network.socket_server import SocketServer
from tests.broker.toy import ECHO, FETCH, PRODUCE, SLOW, RawClient, Toy, request, small_config
from tests.seeds import SEED
from tests.waiting import until

BOTH_LOOPS = True

REQUESTS = 400
KINDS = [
    (ECHO, b"echo", 6),
    (PRODUCE, b"produce", 6),
    (PRODUCE, b"at once", 1),
    (PRODUCE, b"acks=0", 1),
    (FETCH, b"fetch", 3),
    (FETCH, b"ready", 1),
    (SLOW, b"slow", 1),
]


class Plan:
    """A plan of requests, and the expected responses."""

    def __init__(self, rng: random.Random) -> None:
        self.frames = b""
        self.expected: list[tuple[int, tuple[bytes, ...]]] = []
        kinds = rng.choices(KINDS, [weight for *_, weight in KINDS], k=REQUESTS)
        for number, (key, kind, _) in enumerate(kinds):
            body = kind if kind in {b"at once", b"acks=0", b"ready"} else kind + b" %d" % number
            if kind == b"echo" and rng.random() < 0.05:
                body += b"." * rng.choice([3_000, 60_000, 300_000])
            version = 3 if key == PRODUCE else 0
            client = rng.choice([b"toy"] * 9 + [b"other"])
            self.frames += request(key, body, version=version, correlation_id=number, client=client)
            answers = {
                b"echo": (body,),
                b"produce": (b"done " + body,),
                b"at once": (b"done",),
                b"fetch": (b"early " + body, b"data " + body),
                b"ready": (b"data",),
                b"slow": (b"slow " + body,),
            }
            if kind in answers:
                self.expected.append((number, answers[kind]))


async def send(rng: random.Random, client: RawClient, frames: bytes) -> None:
    while frames:
        size = rng.choice([1, 3, 7, 40, 200, 5_000, 100_000])
        await client.send(frames[:size])
        frames = frames[size:]
        if rng.random() < 0.3:
            await asyncio.sleep(0)


def disturb(rng: random.Random, toy: Toy) -> None:
    """Do one of the things that happen beside a connection."""
    server: SocketServer = toy.server
    owed = [p for p in toy.produces + toy.fetches if p.response is None]
    choice = rng.random()
    if owed and choice < 0.6:
        for answer in rng.sample(owed, rng.randint(1, len(owed))):
            word = b"done " if answer in toy.produces else b"data "
            answer.complete(word + answer.request)
    elif choice < 0.7:
        toy.gate.set()
    elif choice < 0.8:
        toy.gate.clear()
    elif choice < 0.9:
        server.backlog.set(not server.backlog.is_behind)
    else:
        server.replace_route(server.routes.get(ECHO))


def finish(toy: Toy) -> None:
    toy.gate.set()
    toy.server.backlog.set(False)
    for answer in toy.produces + toy.fetches:
        if answer.response is None:
            word = b"done " if answer in toy.produces else b"data "
            answer.complete(word + answer.request)


@pytest.mark.parametrize("turn", range(4))
async def test_every_answer_comes_once_whole_and_in_order(turn):
    seed = SEED + turn
    rng = random.Random(seed)
    plan = Plan(rng)
    toy = Toy(small_config(connection_pipeline_max_requests=rng.choice([1, 7, 1000])))
    await toy.server.start()
    client = await RawClient.to(toy.server.listeners[0].bound)
    sending = asyncio.ensure_future(send(rng, client, plan.frames))
    answers = []

    async def read() -> None:
        while len(answers) < len(plan.expected):
            answers.append(await client.answer())

    reading = asyncio.ensure_future(read())
    try:
        for _ in range(20_000):
            if reading.done():
                break
            (finish if sending.done() and rng.random() < 0.1 else lambda t: disturb(rng, t))(toy)
            await asyncio.sleep(0 if rng.random() < 0.9 else 0.001)
        await asyncio.wait_for(reading, 60)
        for (number, bodies), (correlation_id, body) in zip(plan.expected, answers, strict=True):
            assert correlation_id == number, f"seed {seed}"
            assert body in bodies, f"seed {seed}: {number}"
        # Behind the last answer there may be requests without one, and something that holds them.
        await asyncio.wait_for(sending, 60)
        finish(toy)
        await until(lambda: len(toy.handled) >= REQUESTS)
        assert await client.silent(0.01)
        assert len(toy.handled) == REQUESTS
    finally:
        reading.cancel()
        sending.cancel()
        await client.close()
        await toy.server.abort()
    assert toy.server.ring_pool.borrowed == 0, f"seed {seed}"
    # A thread may still decode the frame of a client that has left.
    await until(lambda: toy.server.frame_budget.used_bytes == 0)
