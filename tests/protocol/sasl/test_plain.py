"""PLAIN: one token, and Apache Kafka's words where it is wrong."""

import pytest

from barnabas.protocol.sasl.exchange import Accepted, SaslFailed
from barnabas.protocol.sasl.plain import PlainClient, PlainServer


def server():
    return PlainServer(lambda user, password: (user, password) == ("alice", "secret"))


def test_client_and_server_agree():
    assert server().step(PlainClient("alice", "secret").first()) == Accepted(b"", "alice")
    assert server().step(b"alice\0alice\0secret") == Accepted(b"", "alice")
    assert PlainClient("a", "b").step(b"") is None


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0bob\0secret", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"bob\0alice\0secret", "authorization id that is different from username"),
        (b"bob\0alice\0wrong", "Invalid username or password"),
        (b"", "expected 3 tokens, got 1"),
        (b"a\0b\0c\0d", "expected 3 tokens, got 4"),
        (bytes(500_000), "expected 3 tokens, got 500001"),
        (b"\0\xff\0x", "not UTF-8"),
    ],
)
def test_wrong_tokens(token, words):
    with pytest.raises(SaslFailed, match=words):
        server().step(token)
