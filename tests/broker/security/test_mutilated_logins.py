"""Logins with damaged frames, over real sockets: refused or disconnected, without an internal error
in the log.

A wrong password, proof or key never succeeds by accident.
"""

from __future__ import annotations

import logging
import random
import struct
from socket import SHUT_WR

import pytest

from barnabas.protocol.client import ClientConnection
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.protocol.sasl.oauthbearer import OAuthBearerClient
from barnabas.testing import Broker
from tests.broker.security.wire import Wire
from tests.issuer import AUDIENCE, ISSUER, rsa_key, standard_set, token
from tests.protocol.mutilation import MUTATORS
from tests.seeds import SEED
from tests.waiting import wait_until

OAUTH = "sasl.oauthbearer"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
EACH = 120
"""Spoilt logins of each kind."""

LENGTH = struct.Struct(">i")
PROOF = b"c=biws,r=nonce,p=" + b"A" * 43 + b"="

WRONG = {
    "PLAIN": [b"\0alice\0wrong"],
    "SCRAM-SHA-256": [b"n,,n=alice,r=nonce", PROOF],
    "OAUTHBEARER": [OAuthBearerClient(token(key=rsa_key("mine"))).first(), b"\1"],
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    path.write_bytes(standard_set())
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": ",".join(WRONG),
        "barnabas.scram.credentials": "SCRAM-SHA-256=[name=alice,password=secret]",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{MODULE} required user_alice="secret";'
        ),
        f"{OAUTH}.jwks.endpoint.url": f"file://{path}",
        f"{OAUTH}.expected.issuer": ISSUER,
        f"{OAUTH}.expected.audience": AUDIENCE,
        "connection.failed.authentication.delay.ms": "0",
        "barnabas.login.failures.per.address.max": "1000000",
    }
    with Broker(config=settings) as broker:
        yield broker


def messages(mechanism, tokens, *, is_bare):
    """Return the messages of a client's login, and a request after them."""
    client = ClientConnection("test")

    def request(api, version, asked):
        return b"".join(map(bytes, client.request(api, version, asked)[1]))

    yield request(SASL_HANDSHAKE, 0 if is_bare else 1, SaslHandshakeRequest(mechanism))
    for each in tokens:
        if is_bare:
            yield LENGTH.pack(len(each)) + each
        else:
            yield request(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(each))
    yield request(METADATA, 12, MetadataRequest())


def spoilt(message, draw):
    """Return a frame with other contents, its length as before or corrected."""
    contents = draw.choice(MUTATORS)(message[4:], draw) if len(message) > 4 else b"?"
    size = len(contents) if draw.random() < 0.8 else draw.choice((-1, 0, 1, 524_288, 1 << 30))
    return LENGTH.pack(size) + contents


@pytest.mark.parametrize("is_bare", [False, True], ids=["requests", "bare"])
@pytest.mark.parametrize("mechanism", WRONG)
def test_a_wrong_login_stays_wrong_however_it_is_spoilt(broker, caplog, mechanism, is_bare):
    draw = random.Random(SEED)
    with Wire(broker) as wire:
        assert wire.log_in().error_code == 0
        cluster_id = wire.ask(METADATA, 12, MetadataRequest()).cluster_id.encode()
    for _ in range(EACH):
        sent = list(messages(mechanism, WRONG[mechanism], is_bare=is_bare))
        at = draw.randrange(len(sent) - 1)
        sent[at] = spoilt(sent[at], draw)
        with Wire(broker) as wire:
            found = answered(wire.socket, sent)
        assert cluster_id not in found, f"seed {SEED}: {sent}"
    connections = broker.server.sockets.connections
    wait_until(lambda: broker.call(lambda: not connections))
    records = caplog.get_records("call")
    assert not [each for each in records if each.levelno > logging.WARNING or each.exc_info]
    with Wire(broker) as wire:
        assert wire.log_in().error_code == 0


def answered(connection, sent):
    """Send all messages, and read until the broker closes the connection, which it may do early."""
    found = b""
    try:
        for each in sent:
            connection.sendall(each)
        connection.shutdown(SHUT_WR)
        while data := connection.recv(1 << 16):
            found += data
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise
    return found
