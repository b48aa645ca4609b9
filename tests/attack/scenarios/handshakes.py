"""Strangers at listeners with TLS: thousands of incomplete handshakes, and misuse of TLS.

The neighbour uses a listener without TLS; a user with a login over TLS keeps working, and
reconnects.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
import time
from collections.abc import Awaitable, Callable

from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from tests.attack.peer import Peer, Wire, frame
from tests.attack.records import ALERT, APPLICATION_DATA, HANDSHAKE, Sealer13
from tests.attack.scenario import Scenario, Sent, Target
from tests.attack.scenarios.logins import LOGIN_TIMEOUT_S, SETTINGS, TIMED
from tests.attack.secure_peer import SecureWire, hello
from tests.counterparts.broker_process import HOST

ELSEWHERE = "127.0.0.2"
"""Another address of this machine, which strangers may come from."""
HALF_OPEN = 5000
AT_A_TIME = 20
PATIENCE_S = 60.0
LOGIN_BESIDE_S = 5.0
"""The longest that a login may take beside a flood from elsewhere, generous as all limits are."""
FLOOD_BYTES = 100_000
FLOODS = 20

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


async def log_in(port: int) -> Wire:
    """Return a user's connection; raise ConnectionError if the broker closes it."""
    wire = await SecureWire.connect(HOST, port)
    try:
        await wire.shake()
        await wire.ask(SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN"), 1)
        answer = await wire.ask(SASL_AUTHENTICATE, SaslAuthenticateRequest(b"\0alice\0secret"), 1)
    except BaseException:
        wire.close()
        raise
    if answer.error_code:
        wire.close()
        raise ConnectionError(f"the user was not let in: {answer.error_message}")
    return wire


async def beside_a_user(
    target: Target,
    sent: Sent,
    attack: Awaitable[None],
    *,
    refused_most: int = 20,
    login_most_s: float = PATIENCE_S,
) -> None:
    """Run a user during an attack, which logs in repeatedly on new connections.

    A handshake may have to make room for others of its address; then the user reconnects, as
    clients do. After the attack every handshake must succeed.
    """
    port = target.broker.login_port
    refused_in_a_row = most_refused = 0
    async with await log_in(port) as user:
        # After the user's own login, which is not repeated.
        attacking = asyncio.ensure_future(attack)
        while not attacking.done():
            found = await user.ask(METADATA, MetadataRequest([]), 9)
            target.expect(found.cluster_id, "the user was not served")
            try:
                async with asyncio.timeout(login_most_s):
                    (await log_in(port)).close()
            except ConnectionError:
                refused_in_a_row += 1
                most_refused = max(most_refused, refused_in_a_row)
            except TimeoutError:
                target.expect(False, f"a login of the user took more than {login_most_s:.0f} s")
            else:
                refused_in_a_row = 0
                sent["logins of the user"] += 1
            await asyncio.sleep(0.05)
    await attacking
    target.expect(
        most_refused <= refused_most, f"{most_refused} logins of the user failed in a row"
    )
    async with asyncio.timeout(PATIENCE_S):
        (await log_in(port)).close()


async def half_open(target: Target, seed: int, duration_s: float) -> Sent:
    """5,000 handshakes that stop: silent, in the first record, behind it, or a byte a second."""
    sent = Sent()
    rng = random.Random(seed)
    first = hello()
    peers: list[Peer] = []

    async def begin(beginning: bytes) -> None:
        peer = await Peer.connect(HOST, target.broker.login_port)
        peers.append(peer)
        with contextlib.suppress(OSError):
            await peer.send(beginning)
        sent["half handshakes"] += 1

    async def drip(until_s: float) -> None:
        while time.monotonic() < until_s:
            await asyncio.sleep(1)
            for peer in rng.sample(peers, HALF_OPEN // 5):
                with contextlib.suppress(OSError):
                    await peer.send(first[:1])

    async def attack() -> None:
        until_s = time.monotonic() + max(duration_s, LOGIN_TIMEOUT_S + 2)
        for _ in range(HALF_OPEN // AT_A_TIME):
            beginnings = rng.choices((b"", first[:1], first[:-1], first), k=AT_A_TIME)
            await asyncio.gather(*map(begin, beginnings))
        await drip(until_s)
        for peer in peers:
            hung_up, _ = await peer.hung_up(PATIENCE_S)
            target.expect(hung_up, "half a handshake is still there")
            peer.close()

    await beside_a_user(target, sent, attack())
    return sent


async def flood(target: Target, seed: int, duration_s: float) -> Sent:
    """First messages of handshakes without end, from clients that go at once, or reset, or stay."""
    sent = Sent()
    await beside_a_user(target, sent, _beginning(target, sent, seed, duration_s))
    return sent


async def flood_from_elsewhere(target: Target, seed: int, duration_s: float) -> Sent:
    """The same from one other address, where each costs the broker the most: the user gets in."""
    sent = Sent()
    attack = _beginning(target, sent, seed, duration_s, source=ELSEWHERE)
    await beside_a_user(target, sent, attack, refused_most=0, login_most_s=LOGIN_BESIDE_S)
    return sent


async def _beginning(
    target: Target, sent: Sent, seed: int, duration_s: float, *, source: str = ""
) -> None:
    first = hello()
    until_s = time.monotonic() + duration_s
    staying: list[Peer] = []

    async def begin(rng: random.Random) -> None:
        while time.monotonic() < until_s:
            port = target.broker.more_ports["SSL"]
            peer = await Peer.connect(HOST, port, source=source)
            with contextlib.suppress(OSError):
                await peer.send(first)
            sent["handshakes"] += 1
            rng.choice((peer.close, peer.reset, lambda peer=peer: staying.append(peer)))()
            if len(staying) > 500:
                staying.pop(0).reset()

    strangers = (begin(random.Random(seed + each)) for each in range(AT_A_TIME))
    await asyncio.gather(*strangers)
    for peer in staying:
        peer.close()


# --------------------------------------------------------------- of clients that have shaken hands

Misuse = Callable[[Target, random.Random, float], Awaitable[int]]
"""The actions of one client; returns the number of pieces that it could send."""


async def renew(target: Target, rng: random.Random, _until_s: float) -> int:
    """Renew keys (TLS 1.3) or ask for another handshake (1.2), reading the answers."""
    version = rng.choice(VERSIONS)
    async with await SecureWire.connect(HOST, target.broker.more_ports["SSL"]) as peer:
        sealer = await peer.sealer(version)
        reading = asyncio.create_task(peer.hung_up_sealed(PATIENCE_S))
        count = 0
        try:
            for _ in range(FLOODS):
                records = b""
                while len(records) < FLOOD_BYTES:
                    if isinstance(sealer, Sealer13):
                        records += sealer.key_update()
                    else:
                        records += sealer.seal(HANDSHAKE, hello()[5:])
                    count += 1
                await peer.send_sealed(records)
        except OSError:
            pass  # The expected result: the broker closed the connection.
        hung_up, _ = await reading
        target.expect(hung_up, f"one who renews keys of {version.name} was not hung up on")
        return count


async def nonsense(target: Target, rng: random.Random, until_s: float) -> int:
    """Well sealed records of nothing, of other kinds, of too much, or of messages out of place."""
    version = rng.choice(VERSIONS)
    count = 0
    while time.monotonic() < until_s:
        async with await SecureWire.connect(HOST, target.broker.more_ports["SSL"]) as peer:
            try:
                sealer = await peer.sealer(version)
                kind, data = rng.choice(
                    (
                        (APPLICATION_DATA, b""),
                        (APPLICATION_DATA, bytes(17_000)),
                        (ALERT, b"\x01\x5a"),
                        (HANDSHAKE, b"\x0b\x00\x00\x04" + rng.randbytes(4)),
                        (HANDSHAKE, b"\x18\x00\xff\xff" + bytes(16_000)),
                        (rng.randrange(256), rng.randbytes(200)),
                    )
                )
                for _ in range(rng.choice((1, 50))):
                    await peer.send_sealed(sealer.seal(kind, data))
                    count += 1
                peer.finish()
                hung_up, _ = await peer.hung_up_sealed(PATIENCE_S)
                target.expect(hung_up, f"{kind}, {data[:8]!r} was not hung up on")
            except OSError:
                continue  # The expected result: the broker closed the connection.
    return count


async def never_read(target: Target, rng: random.Random, until_s: float) -> int:
    """Send large requests, and read no response."""
    asked = rng.choice(
        (
            frame(API_VERSIONS, 3, ApiVersionsRequest("attack", "1")),
            frame(METADATA, 9, MetadataRequest(None)),
        )
    )
    port = target.broker.more_ports["SSL"]
    count = 0
    async with await SecureWire.connect(HOST, port, receive_buffer_bytes=4096) as peer:
        await peer.shake()
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + _left_s(until_s)):
                while True:
                    await peer.send(asked * 500)
                    count += 500
        except (OSError, TimeoutError):
            peer.reset()
    return count


def _left_s(until_s: float) -> float:
    return max(until_s - time.monotonic(), 0.0)


async def misuse(target: Target, seed: int, duration_s: float) -> Sent:
    """Clients with TLS that renew keys, send nonsense, and never read, all at once."""
    sent = Sent()
    until_s = time.monotonic() + duration_s
    kinds: tuple[Misuse, ...] = (renew, nonsense, never_read)

    async def one(kind: Misuse, number: int) -> None:
        rng = random.Random(seed + number)
        while time.monotonic() < until_s:
            sent[f"pieces of {kind.__name__}"] += await kind(target, rng, until_s)

    async def attack() -> None:
        await asyncio.gather(*(one(kinds[each % len(kinds)], each) for each in range(12)))

    await beside_a_user(target, sent, attack())
    return sent


SCENARIOS = (
    Scenario("half-handshakes", half_open, settings=TIMED, tls=True),
    Scenario("handshake-flood", flood, settings=SETTINGS, tls=True),
    Scenario(
        "handshake-flood-from-elsewhere",
        flood_from_elsewhere,
        settings=SETTINGS,
        tls=True,
        rsa_bits=4096,
    ),
    Scenario("misused-tls", misuse, settings=SETTINGS, tls=True),
)
