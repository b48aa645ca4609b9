"""Handshakes of which a message was spoilt on the way: refused, and nothing else."""

from __future__ import annotations

import contextlib
import random
import ssl

import pytest

from tests.broker.tls.handshakes import with_certificate
from tests.broker.tls.listener import AUTHORITY, trusting_context
from tests.broker.toy import ECHO, request
from tests.protocol.mutilation import MUTATORS
from tests.real.test_tls_transport import VERSIONS, Server, on_thread
from tests.real.tls.peer import TlsPeer
from tests.seeds import SEED
from tests.waiting import until

BOTH_LOOPS = True

EACH = 100
HEAD_BYTES = 5
PATIENCE_S = 0.05


def records_of(flight: bytes) -> list[bytes]:
    found = []
    while flight:
        size = HEAD_BYTES + int.from_bytes(flight[3:5], "big")
        found.append(flight[:size])
        flight = flight[size:]
    return found


def spoilt(flight: bytes, draw: random.Random) -> bytes:
    """Spoil a record inside, with a length that fits, or the bytes as they come."""
    if draw.random() < 0.2:
        return draw.choice(MUTATORS)(flight, draw)
    records = records_of(flight)
    at = draw.randrange(len(records))
    body = records[at][HEAD_BYTES:]
    for _ in range(draw.choice((1, 1, 3))):
        body = draw.choice(MUTATORS)(body, draw) if body else b"?"
    records[at] = records[at][:3] + len(body).to_bytes(2, "big") + body
    return b"".join(records)


class Spoiler:
    """Sends the flights of one client, one of them spoilt."""

    def __init__(self, peer: TlsPeer, draw: random.Random) -> None:
        self.peer = peer
        self.draw = draw
        self.left = draw.randrange(2)

    def send(self, flight: bytes) -> None:
        is_spoilt = self.left == 0
        self.left -= 1
        self.peer.socket.sendall(spoilt(flight, self.draw) if is_spoilt else flight)
        if is_spoilt:
            # Of half a message the broker waits for the rest.
            self.peer.socket.settimeout(PATIENCE_S)


@pytest.mark.parametrize("kind", ["anonymous", "with a certificate"])
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_spoilt_handshake_is_refused(monkeypatch, caplog, version, kind):
    draw = random.Random(SEED)
    has_certificate = kind != "anonymous"
    context = (
        with_certificate(AUTHORITY.issue("CN=alice")) if has_certificate else trusting_context()
    )
    context.minimum_version = context.maximum_version = version

    def client(address):
        for _ in range(EACH):
            with TlsPeer(address, context) as peer, contextlib.suppress(ssl.SSLError, OSError):
                peer.shake(Spoiler(peer, draw).send)
                while peer.receive():
                    continue

    options = {"client_auth": "required" if has_certificate else "none"}
    async with Server(monkeypatch, tls_options=options) as server:
        await on_thread(client, server.address)
        await until(lambda: not server.server.connections)
        assert server.handshakes.failed > EACH // 10
        with TlsPeer(server.address, context) as peer:
            await on_thread(peer.shake)
            await on_thread(lambda: peer.socket.sendall(peer.seal(request(ECHO, b"good"))))
            await until(lambda: server.running.toy.handled == [b"good"])
    records = caplog.get_records("call")
    assert not [each for each in records if each.levelname == "ERROR" or each.exc_info]
