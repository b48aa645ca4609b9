"""Strangers at a listener that asks for a login: guesses, half logins, tokens without end.

The neighbour is at the other listener, and a user who is logged in works on beside the strangers.
"""

from __future__ import annotations

import asyncio
import random
import struct
import time

from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from tests.attack.peer import Peer, Wire, frame
from tests.attack.scenario import Scenario, Sent, Target
from tests.counterparts.broker_process import HOST

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.login.plain.sasl.jaas.config": f'{MODULE} required user_alice="secret";',
    "barnabas.scram.credentials": "SCRAM-SHA-256=[name=alice,password=secret]",
}
HALF_OPEN = 500
LOGIN_TIMEOUT_S = 3
PATIENCE_S = 60.0
"""Maximum time until the broker closes the connection; far more than it needs."""
TOKEN_BYTES = 500_000
LONG_TOKENS = 2000
TIMED = SETTINGS | {"barnabas.login.timeout.ms": str(LOGIN_TIMEOUT_S * 1000)}

VERSIONS = frame(API_VERSIONS, 3, ApiVersionsRequest("attack", "1"))
PLAIN = frame(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
PLAIN_BARE = frame(SASL_HANDSHAKE, 0, SaslHandshakeRequest("PLAIN"))
SCRAM = frame(SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-256"))


def token(data: bytes) -> bytes:
    return frame(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(data))


def bare(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def stranger(rng: random.Random) -> bytes:
    """Return the bytes of a client without valid credentials."""
    return rng.choice(
        (
            VERSIONS + PLAIN + token(b"\0alice\0" + rng.randbytes(8).hex().encode()),
            SCRAM + token(b"n,,n=" + rng.randbytes(8).hex().encode() + b",r=nonce") + token(b"c="),
            SCRAM + token(b"n,,n=alice,r=nonce") + token(b"c=biws,r=nonce,p=AAAA"),
            PLAIN + token(bytes(TOKEN_BYTES)),
            PLAIN_BARE + bare(rng.randbytes(100)),
            PLAIN_BARE + bare(b""),
            PLAIN + frame(METADATA, 9, MetadataRequest(None)),
            frame(METADATA, 9, MetadataRequest(None)),
            VERSIONS * 3,
            rng.randbytes(200),
        )
    )


async def guesses(target: Target, seed: int, duration_s: float) -> Sent:
    """Sixteen at a time, with and without waiting for the answer; a user works on beside them."""
    sent = Sent()
    until_s = time.monotonic() + duration_s
    port = target.broker.login_port

    async def guess(rng: random.Random) -> None:
        while time.monotonic() < until_s:
            async with await Peer.connect(HOST, port) as peer:
                try:
                    await peer.send(stranger(rng))
                    if rng.random() < 0.5:
                        hung_up, _ = await peer.hung_up(PATIENCE_S)
                        target.expect(hung_up, "a stranger was not hung up on")
                except OSError:
                    sent["hung up on"] += 1
            sent["strangers"] += 1

    async with await Wire.connect(HOST, port) as user:
        await user.ask(SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN"), 1)
        answer = await user.ask(SASL_AUTHENTICATE, SaslAuthenticateRequest(b"\0alice\0secret"), 1)
        target.expect(answer.error_code == 0, "the user was not let in")
        guessing = [asyncio.create_task(guess(random.Random(seed + each))) for each in range(16)]
        while not all(each.done() for each in guessing):
            found = await user.ask(METADATA, MetadataRequest([]), 9)
            target.expect(found.cluster_id, "the user was not served")
            sent["questions of the user"] += 1
            await asyncio.sleep(0.05)
        await asyncio.gather(*guessing)
    return sent


async def half_open(target: Target, seed: int, duration_s: float) -> Sent:
    """Logins that stop in the middle: silent, a byte a second, before the end of a long token."""
    sent = Sent()
    rng = random.Random(seed)
    port = target.broker.login_port
    long_token = PLAIN + token(bytes(TOKEN_BYTES))
    beginnings = (b"", VERSIONS, PLAIN, SCRAM + token(b"n,,n=alice,r=nonce"), long_token[:-1])
    until_s = time.monotonic() + max(duration_s, LOGIN_TIMEOUT_S + 2)
    peers = []
    for _ in range(HALF_OPEN):
        peer = await Peer.connect(HOST, port)
        peers.append(peer)
        try:
            await peer.send(rng.choice(beginnings))
            sent["half logins"] += 1
        except OSError:
            sent["hung up on"] += 1
    while time.monotonic() < until_s:
        await asyncio.sleep(1)
        for peer in rng.sample(peers, 50):
            try:
                await peer.send(b"\0")
            except OSError:
                sent["hung up on"] += 1
    for peer in peers:
        hung_up, _ = await peer.hung_up(PATIENCE_S)
        target.expect(hung_up, "half a login is still there")
        peer.close()
    return sent


async def long_tokens(target: Target, seed: int, duration_s: float) -> Sent:
    """2,000 tokens of 500 KB before any login, all but their end: a gigabyte if all were held."""
    sent = Sent()
    rng = random.Random(seed)
    begun_s = time.monotonic()

    async def one() -> None:
        mechanism = rng.choice((PLAIN, SCRAM))
        async with await Peer.connect(HOST, target.broker.login_port) as peer:
            try:
                async with asyncio.timeout(LOGIN_TIMEOUT_S):
                    await peer.send(mechanism + token(bytes(TOKEN_BYTES))[:-1])
                    sent["whole tokens but a byte"] += 1
            except TimeoutError:
                sent["tokens that were not received"] += 1
            except OSError:
                sent["hung up on"] += 1
            hung_up, _ = await peer.hung_up(PATIENCE_S)
            target.expect(hung_up, "half a login is still there")

    await asyncio.gather(*(one() for _ in range(LONG_TOKENS)))
    await asyncio.sleep(max(0.0, begun_s + duration_s - time.monotonic()))
    return sent


SCENARIOS = (
    Scenario("guessed-logins", guesses, settings=SETTINGS),
    Scenario("half-logins", half_open, settings=TIMED),
    Scenario("long-tokens", long_tokens, settings=TIMED),
)
