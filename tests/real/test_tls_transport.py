"""Cases of a connection with TLS only; the others are in test_connection_over_tls.py."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import struct
import time

import pytest

from barnabas.broker.network import tls
from barnabas.broker.network.tls import HANDSHAKE_MAX_BYTES, whole_records
from barnabas.broker.network.tls_sending import REPLIES_MAX_BYTES
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.principals import ANONYMOUS, user
from tests.attack.records import APPLICATION_DATA, HANDSHAKE, KEY_UPDATE, Sealer12, Sealer13
from tests.attack.secure_peer import SecureWire
from tests.broker import toy
from tests.broker.tls.handshakes import anyone, with_certificate
from tests.broker.tls.listener import AUTHORITY, toy_tls, trusting_context
from tests.broker.toy import ECHO, FETCH, request, small_config
from tests.certificates import Authority
from tests.real.test_connection import Running
from tests.real.tls.peer import TlsPeer
from tests.waiting import until

BOTH_LOOPS = True

ALERT = b"\x15\x03\x03\x00\x02\x02\x50"
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def context_of(version) -> ssl.SSLContext:
    context = trusting_context()
    context.minimum_version = context.maximum_version = version
    return context


@pytest.fixture
def over_tls(monkeypatch):
    monkeypatch.setattr(toy, "TLS", toy_tls())


@pytest.fixture
async def running(over_tls):
    async with Running(small_config()) as running:
        yield running


class Server:
    """A toy server with TLS, and blocking clients of it on threads."""

    def __init__(self, monkeypatch, clock=None, *, tls_options=None, **config):
        monkeypatch.setattr(toy, "TLS", toy_tls(**(tls_options or {})))
        self.running = Running(small_config(**config), clock)

    async def __aenter__(self):
        await self.running.__aenter__()
        self.server = self.running.toy.server
        self.address = self.server.listeners[0].bound
        self.handshakes = self.server.tls.handshakes
        return self

    async def __aexit__(self, *arguments):
        await self.running.__aexit__(*arguments)
        assert self.handshakes.under_way == 0


async def on_thread(function, *arguments):
    return await asyncio.wait_for(asyncio.to_thread(function, *arguments), 60)


def answer_of(peer: TlsPeer) -> bytes:
    (size,) = struct.unpack(">i", peer.read(4))
    return peer.read(size)[4:]


# ---------------------------------------------------------------------------------------- records


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(4))
async def test_records_may_be_cut_anywhere(monkeypatch, version, seed):
    draw = random.Random(seed)

    def client(address):
        with TlsPeer(address, context_of(version)) as peer:
            most = draw.choice((3, 50, 1000, 5000))
            # Pieces of a few bytes are some thousand turns of the loop for each megabyte.
            small_left = 20_000

            def send(data: bytes) -> None:
                nonlocal small_left
                while data:
                    size = draw.randrange(1, most if small_left > 0 else 5000)
                    small_left -= size
                    peer.socket.sendall(data[:size])
                    data = data[size:]
                    if draw.random() < 0.05:
                        time.sleep(0.001)

            peer.shake(send)
            bodies = [draw.randbytes(draw.choice((0, 1, 100, 20_000))) for _ in range(40)]
            stream = b"".join(request(ECHO, body) for body in bodies)
            while stream:
                size = draw.choice((1, 7, 300, 16_384, 40_000))
                send(peer.seal(stream[:size]))
                stream = stream[size:]
            assert [answer_of(peer) for _ in bodies] == bodies

    async with Server(monkeypatch) as server:
        await on_thread(client, server.address)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_request_right_behind_the_handshake(monkeypatch, version):
    """In one piece with the client's last message, which has a step of its own on a thread."""

    def client(address):
        with TlsPeer(address, context_of(version)) as peer:
            while not peer.step():
                peer.socket.sendall(peer.take())
                peer.receive()
            peer.socket.sendall(peer.take() + peer.seal(request(ECHO, b"quick") * 500))
            assert [answer_of(peer) for _ in range(500)] == [b"quick"] * 500

    async with Server(monkeypatch) as server:
        await on_thread(client, server.address)


async def test_large_requests_and_answers(monkeypatch):
    def client(address):
        with TlsPeer(address) as peer:
            peer.shake()
            body = random.Random(7).randbytes(8 << 20)
            peer.socket.sendall(peer.seal(request(ECHO, body)))
            assert answer_of(peer) == body

    async with Server(monkeypatch) as server:
        await on_thread(client, server.address)


async def test_a_slow_reader_costs_little(monkeypatch):
    """Answers wait as they are; what is encrypted is what the socket has not taken of a batch."""
    size = 400_000

    def ask(peer):
        peer.shake()
        peer.socket.sendall(peer.seal(request(ECHO, b"size %d" % size) * 200))

    def read(peer):
        assert all(answer_of(peer) == b"x" * size for _ in range(200))

    async with Server(monkeypatch) as server:
        with TlsPeer(server.address) as peer:
            await on_thread(ask, peer)
            await until(lambda: server.server.connections)
            (connection,) = server.server.connections
            await until(lambda: connection.is_not_read)
            await asyncio.sleep(0.1)
            transport = connection._transport
            assert len(server.running.toy.handled) < 100
            assert transport._raw.get_write_buffer_size() <= 2 * 128 * 1024
            assert transport.get_write_buffer_size() < 3_000_000
            await on_thread(read, peer)


async def test_a_connection_that_receives_nothing_holds_little(monkeypatch):
    """A parked fetch: later bytes stay in the socket, except the ring and one arrival."""

    def send(peer):
        peer.shake()
        peer.socket.setblocking(False)
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        sealed = memoryview(peer.seal(request(FETCH) + request(FETCH, b"f" * 1000) * 8000))
        sent = 0
        while sent < len(sealed):
            try:
                sent += peer.socket.send(sealed[sent:])
            except BlockingIOError:
                time.sleep(0.2)
                try:
                    sent += peer.socket.send(sealed[sent:])
                except BlockingIOError:
                    return sent
        return sent

    async with Server(monkeypatch) as server:
        with TlsPeer(server.address) as peer:
            await on_thread(send, peer)
            (connection,) = server.server.connections
            transport = connection._transport
            await until(lambda: not transport._raw.is_reading())
            held = len(transport._held) + transport._incoming.pending
            assert held <= tls.RECEIVE_BYTES
            assert connection.received_bytes < 600_000


# ----------------------------------------------------------------------------------------- mistakes


async def test_plain_text_where_tls_is_wanted(monkeypatch, caplog):
    def client(address):
        with socket.create_connection(address, 20) as plain:
            plain.sendall(request(ECHO, b"hello"))
            return plain.recv(100), plain.recv(100)

    async with Server(monkeypatch) as server:
        assert await on_thread(client, server.address) == (ALERT, b"")
        await until(lambda: not server.server.connections)
    (line,) = [each.message for each in caplog.records if "SECURE" in each.message]
    assert line.startswith("connection closed: peer=127.0.0.1:")
    assert line.endswith(
        "listener=SECURE reason=the client does not speak TLS, which this listener wants"
    )


async def test_tls_where_plain_text_is_wanted(caplog):
    async with Running(small_config()) as running:
        address = running.toy.server.listeners[0].bound

        def client():
            with TlsPeer(address) as peer, pytest.raises(ConnectionError):
                peer.shake()

        await on_thread(client)
    (line,) = [each.message for each in caplog.records if "listener=" in each.message]
    assert line.endswith(
        "listener=PLAINTEXT reason=the client speaks TLS, which this listener does not"
    )


def hello() -> bytes:
    """The first message of a client."""
    outgoing = ssl.MemoryBIO()
    client = anyone().wrap_bio(ssl.MemoryBIO(), outgoing)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


GARBAGE = {
    "a byte": b"\x16",
    "noise": b"\x16" + bytes(range(255)) * 40,
    "zeros": b"\x16" + bytes(20_000),
    "an endless record": b"\x16\x03\x01\xff\xff" + b"x" * 70_000,
    "an empty record": b"\x16\x03\x01\x00\x00",
    "an alert": b"\x16\x03\x01\x00\x02\x02\x28" + b"\x15\x03\x01\x00\x02\x02\x28",
    "two hellos": hello() * 2,
}


@pytest.mark.parametrize("kind", GARBAGE)
async def test_garbage_in_place_of_a_handshake(monkeypatch, caplog, kind):
    def client(address):
        with socket.create_connection(address, 20) as plain:
            plain.sendall(GARBAGE[kind])
            plain.shutdown(socket.SHUT_WR)
            try:
                while plain.recv(1 << 16):
                    continue
            except ConnectionResetError:
                return

    async with Server(monkeypatch) as server:
        await on_thread(client, server.address)
        await until(lambda: not server.server.connections)
        assert not [each for each in caplog.records if each.levelname == "ERROR"]


@pytest.mark.parametrize("version", [b"\x03\x00", b"\x03\x01", b"\x03\x02"])
async def test_old_versions(monkeypatch, caplog, version):
    """SSL 3.0, TLS 1.0 and 1.1: a downgrade leads to an alert."""
    body = version + bytes(32) + b"\0" + b"\0\4\xc0\x13\x00\x2f" + b"\1\0"
    message = b"\1" + len(body).to_bytes(3, "big") + body
    record = b"\x16" + version + len(message).to_bytes(2, "big") + message

    def client(address):
        with socket.create_connection(address, 20) as plain:
            plain.sendall(record)
            return plain.recv(1 << 16)

    async with Server(monkeypatch) as server:
        answer = await on_thread(client, server.address)
    assert answer[:1] == b"\x15"
    assert answer[5:] in {b"\2\x46", b"\2\x28"}  # protocol_version, handshake_failure
    assert "listener=SECURE reason=TLS handshake failed: " in caplog.text


async def test_random_changes_of_a_handshake(monkeypatch, caplog):
    draw = random.Random(8446)
    good = hello()

    def client(address):
        for _ in range(150):
            changed = bytearray(good)
            for _ in range(draw.randrange(1, 6)):
                changed[draw.randrange(1, len(good))] = draw.randrange(256)
            with socket.create_connection(address, 20) as plain:
                plain.sendall(changed)
                plain.shutdown(socket.SHUT_WR)
                try:
                    while plain.recv(1 << 16):
                        continue
                except ConnectionResetError:
                    continue

    async with Server(monkeypatch) as server:
        await on_thread(client, server.address)
        await until(lambda: not server.server.connections)
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_record_that_was_changed_on_the_way(monkeypatch, caplog, version):
    def client(address):
        with TlsPeer(address, context_of(version)) as peer:
            peer.shake()
            peer.socket.sendall(peer.seal(request(ECHO, b"first")))
            assert answer_of(peer) == b"first"
            sealed = bytearray(peer.seal(request(ECHO, b"second")))
            sealed[-1] ^= 1
            peer.socket.sendall(sealed)
            with pytest.raises(ssl.SSLError, match="ALERT_BAD_RECORD_MAC"):
                peer.read(1)

    async with Server(monkeypatch) as server:
        await on_thread(client, server.address)
        await until(lambda: not server.server.connections)
        assert server.running.toy.handled == [b"first"]
    assert "listener=SECURE reason=TLS failed: decryption failed or bad record mac" in caplog.text


def renewals(peer: Sealer12 | Sealer13, version, count: int) -> bytes:
    """New keys, or handshakes, as often as that."""
    if version is ssl.TLSVersion.TLSv1_3:
        return b"".join(peer.key_update() for _ in range(count))
    return b"".join(peer.seal(HANDSHAKE, hello()[5:]) for _ in range(count))


@pytest.mark.parametrize("version", VERSIONS)
async def test_renewals_without_end(monkeypatch, caplog, version):
    """The client reads every response: a few renewals are served, or rejected (TLS 1.2)."""
    most = 2 * REPLIES_MAX_BYTES // len(KEY_UPDATE)

    async with Server(monkeypatch) as server:
        async with await SecureWire.connect(*server.address) as peer:
            sealer = await peer.sealer(version)
            await peer.send_sealed(renewals(sealer, version, 50))
            await peer.send_sealed(sealer.seal(APPLICATION_DATA, request(ECHO, b"served")))
            await until(lambda: server.running.toy.handled == [b"served"])
            await peer.send_sealed(renewals(sealer, version, most))
            hung_up, received = await peer.hung_up_sealed(20)
            assert hung_up
            assert received < 2 * REPLIES_MAX_BYTES
        await until(lambda: not server.server.connections)
    assert "reason=the client renews keys or handshakes without end" in caplog.text


async def test_a_handshake_without_end(monkeypatch, caplog):
    """Whole records that never become one message: OpenSSL or the limit ends it."""
    fragment = b"\x16\x03\x01\x3f\xff" + b"\x01\x00\xff\xff" + b"\x03\x03" + bytes(0x3FFF - 6)

    def client(address):
        with socket.create_connection(address, 20) as plain:
            try:
                for _ in range(2 * HANDSHAKE_MAX_BYTES // len(fragment)):
                    plain.sendall(fragment)
                    time.sleep(0.001)
                return plain.recv(1 << 16)
            except ConnectionError:
                return b""

    async with Server(monkeypatch) as server:
        await on_thread(client, server.address)
        await until(lambda: not server.server.connections)
    assert "listener=SECURE reason=" in caplog.text


# ------------------------------------------------------------------------------------------- limits


def ended(client: socket.socket) -> bool:
    """Return whether the other end has disconnected."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


async def test_silent_clients_cost_no_tls(monkeypatch):
    async with Server(monkeypatch) as server:
        silent = [socket.create_connection(server.address) for _ in range(20)]
        await until(lambda: len(server.server.connections) == 20)
        for each in silent[:10]:
            each.sendall(hello()[:-1])
        await until(lambda: server.handshakes.under_way == 10)
        transports = [each._transport for each in server.server.connections]
        assert all(each._ssl is None for each in transports)
        assert not server.handshakes._threads._executor._threads
        for each in silent:
            each.close()
        await until(lambda: not server.server.connections)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01", "all"])
async def test_a_handshake_has_limited_time(monkeypatch, caplog, sent):
    clock = ManualClock()
    async with Server(monkeypatch, clock, login_timeout_ms=10_000) as server:
        with socket.create_connection(server.address) as client:
            client.sendall(hello() if sent == "all" else sent)
            await until(lambda: server.server.connections)
            await until(lambda: bool(server.handshakes.under_way) == bool(sent))
            clock.advance(seconds=8)
            assert server.server.connections
            clock.advance(seconds=5)
            await until(lambda: not server.server.connections)
    assert "reason=no TLS handshake after 10 s" in caplog.text


async def test_time_to_shake_hands_is_not_time_to_log_in(monkeypatch):
    clock = ManualClock()
    async with Server(monkeypatch, clock, login_timeout_ms=10_000) as server:
        client = await server.running.client()
        clock.advance(seconds=30)
        await client.send(request(ECHO, b"still here"))
        assert (await client.answer())[1] == b"still here"


async def test_one_handshake_too_many_takes_the_place_of_the_oldest(monkeypatch, caplog):
    async with Server(monkeypatch, tls_handshakes_max=5) as server:
        half_open = []
        for number in range(5):
            half_open.append(socket.create_connection(server.address))
            half_open[-1].sendall(hello()[:50])
            await until(lambda number=number: server.handshakes.under_way == number + 1)
        assert not caplog.records
        good = await server.running.client()
        await good.send(request(ECHO, b"hello"))
        assert (await good.answer())[1] == b"hello"
        assert server.handshakes.displaced == 1
        assert await on_thread(half_open[0].recv, 1) == b""
        assert "reason=more handshakes than barnabas.tls.handshakes.max" in caplog.text
        assert server.handshakes.under_way == 4
        for each in half_open:
            each.close()
        await until(lambda: len(server.server.connections) == 1)


async def test_limits_on_connections_act_before_tls(monkeypatch):
    async with Server(monkeypatch, max_connections_per_ip=1) as server:
        await server.running.client()
        with socket.create_connection(server.address) as refused:
            refused.sendall(hello())
            assert await on_thread(ended, refused)
        assert server.handshakes.completed == 1
        assert server.server.connections_refused == 1


# ------------------------------------------------------------------------------------------ the end


async def test_both_ends_say_goodbye(monkeypatch):
    def goodbye(peer):
        with pytest.raises(ssl.SSLWantReadError):
            peer.tls.unwrap()
        peer.socket.sendall(peer.take())
        while peer.receive():
            continue
        peer.tls.unwrap()  # SSLEOFError if the other end closed only the socket

    async with Server(monkeypatch) as server:
        with TlsPeer(server.address) as peer:
            await on_thread(peer.shake)
            peer.socket.sendall(peer.seal(request(ECHO, b"hello")))
            assert await on_thread(answer_of, peer) == b"hello"
            await on_thread(goodbye, peer)
        await until(lambda: not server.server.connections)


def end_of(peer: TlsPeer) -> bytes:
    """Return the last bytes; raise SSLEOFError if the other end closed only the socket."""
    while True:
        try:
            return peer.tls.read(1)
        except ssl.SSLWantReadError:
            peer.receive()


async def test_a_stop_says_goodbye(monkeypatch):
    async with Server(monkeypatch) as server:
        with TlsPeer(server.address) as peer:
            await on_thread(peer.shake)
            await until(lambda: server.handshakes.completed)
            stopping = asyncio.ensure_future(server.server.stop(5000))
            assert await on_thread(end_of, peer) == b""
            await stopping


async def test_written_bytes_leave_before_the_close_notify(monkeypatch):
    """A request that breaks a rule behind one with a long answer, to a reader that is late."""
    size = 5_000_000

    def ask(peer):
        peer.shake()
        bad = struct.pack(">i", -1)
        peer.socket.sendall(peer.seal(request(ECHO, b"size %d" % size) + bad))

    async with Server(monkeypatch) as server:
        with TlsPeer(server.address) as peer:
            await on_thread(ask, peer)
            await until(lambda: server.running.toy.handled)
            await asyncio.sleep(0.05)
            assert await on_thread(answer_of, peer) == b"x" * size
            assert await on_thread(lambda: peer.is_closed)
        await until(lambda: not server.server.connections)


STATES = ("silent", "hello", "half a hello", "no answer read", "open", "half a request", "parked")


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("state", STATES)
async def test_clients_may_vanish_at_any_time(monkeypatch, caplog, state, reset):
    def client(address):
        with TlsPeer(address) as peer:
            if reset:
                option = struct.pack("ii", 1, 0)
                peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
            if state in {"hello", "half a hello"}:
                peer.step()
                data = peer.take()
                peer.socket.sendall(data if state == "hello" else data[:20])
            elif state != "silent":
                peer.shake()
                bodies = {
                    "no answer read": request(ECHO, b"size 9000000"),
                    "half a request": request(ECHO, b"x" * 100_000)[:50_000],
                    "parked": request(FETCH),
                }
                peer.socket.sendall(peer.seal(bodies.get(state, request(ECHO))))
            if state != "silent":
                time.sleep(0.02)

    async with Server(monkeypatch) as server:
        for _ in range(3):
            await on_thread(client, server.address)
        await until(lambda: server.server.connections_accepted == 3)
        await until(lambda: not server.server.connections)
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


async def test_a_stop_in_the_middle_of_handshakes(monkeypatch):
    async with Server(monkeypatch) as server:
        clients = [socket.create_connection(server.address) for _ in range(30)]
        for each in clients:
            each.sendall(hello())
        await until(lambda: server.handshakes.under_way)
        await server.server.abort()
        for each in clients:
            each.close()


# ------------------------------------------------------------------------------ client certificates


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("DEFAULT", "CN=alice,OU=eng,O=Barn"),
        ("RULE:^CN=(.*?),.*$/$1/U", "ALICE"),
        ("RULE:^CN=(.*?),OU=sales.*$/$1/,RULE:.*O=Barn/barn/", "barn"),
    ],
)
@pytest.mark.parametrize("client_auth", ["requested", "required"])
async def test_users_by_certificates(monkeypatch, client_auth, rules, expected):
    alice = with_certificate(AUTHORITY.issue("CN=alice,OU=eng,O=Barn"))
    options = {"client_auth": client_auth, "rules": rules}
    async with Server(monkeypatch, tls_options=options) as server:
        with TlsPeer(server.address, alice) as peer:
            await on_thread(peer.shake)
            await until(lambda: server.handshakes.completed == 1)
            (connection,) = server.server.connections
            assert connection.session.principal == user(expected)


async def test_a_user_that_no_rule_makes(monkeypatch, caplog):
    alice = with_certificate(AUTHORITY.issue("CN=alice,OU=eng"))
    options = {"client_auth": "required", "rules": "RULE:^CN=(.*?),OU=sales$/$1/"}
    async with Server(monkeypatch, tls_options=options) as server:
        with TlsPeer(server.address, alice) as peer:
            await on_thread(peer.shake)
            assert await on_thread(lambda: peer.is_closed)
        await until(lambda: not server.server.connections)
    assert "certificate: no rule of ssl.principal.mapping.rules applies" in caplog.text


async def test_names_in_certificates_cannot_forge_log_lines(monkeypatch, caplog):
    forged = "CN=x\\0A2026-11-25 01:00:00.000 INFO    login: user=admin"
    mallory = with_certificate(AUTHORITY.issue(forged))
    options = {"client_auth": "required", "rules": "RULE:^CN=alice$/alice/"}
    async with Server(monkeypatch, tls_options=options) as server:
        with TlsPeer(server.address, mallory) as peer:
            await on_thread(peer.shake)
            assert await on_thread(lambda: peer.is_closed)
        await until(lambda: not server.server.connections)
    assert all("\n" not in each.getMessage() for each in caplog.records)
    assert "no rule of ssl.principal.mapping.rules applies" in caplog.text


async def test_without_a_certificate(monkeypatch, caplog):
    async with Server(monkeypatch, tls_options={"client_auth": "requested"}) as server:
        with TlsPeer(server.address) as peer:
            await on_thread(peer.shake)
            await until(lambda: server.handshakes.completed == 1)
            (connection,) = server.server.connections
            assert connection.session.principal == ANONYMOUS
    async with Server(monkeypatch, tls_options={"client_auth": "required"}) as server:
        refused = pytest.raises(ssl.SSLError, match="ALERT_CERTIFICATE_REQUIRED")
        with TlsPeer(server.address) as peer, refused:
            await on_thread(lambda: (peer.shake(), peer.read(1)))
        await until(lambda: not server.server.connections)
        assert server.handshakes.failed == 1
    assert "TLS handshake failed: the client has sent no certificate" in caplog.text


@pytest.mark.parametrize("client_auth", ["requested", "required"])
async def test_certificate_of_another_authority_is_rejected(monkeypatch, caplog, client_auth):
    mallory = with_certificate(Authority("CN=Other CA").issue("CN=alice"))
    async with Server(monkeypatch, tls_options={"client_auth": client_auth}) as server:
        refused = pytest.raises(ssl.SSLError, match="ALERT_UNKNOWN_CA")
        with TlsPeer(server.address, mallory) as peer, refused:
            await on_thread(lambda: (peer.shake(), peer.read(1)))
        await until(lambda: not server.server.connections)
    assert "the client's certificate: unable to get local issuer certificate" in caplog.text


# ------------------------------------------------------------------------------------------ records


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"", 0),
        (b"\x16\x03\x01\x00", 0),
        (b"\x16\x03\x01\x00\x02a", 0),
        (b"\x16\x03\x01\x00\x02ab", 7),
        (b"\x16\x03\x01\x00\x02ab\x14", 7),
        (b"\x16\x03\x01\x00\x02ab\x14\x03\x03\x00\x00", 12),
        (b"\x16\x03\x01\xff\xffab", 7),
    ],
)
def test_whole_records(data, size):
    assert whole_records(bytearray(data)) == size
