"""Everything that a connection does without TLS it does with it: the same tests once more."""

import pytest

from barnabas.broker.network import pipeline, tls_sending
from tests.broker import toy
from tests.broker.tls.listener import toy_tls
from tests.broker.toy import ECHO, request
from tests.real.test_connection import *  # noqa: F403  each test of it
from tests.waiting import until

BOTH_LOOPS = True


@pytest.fixture(autouse=True)
def over_tls(monkeypatch):
    monkeypatch.setattr(toy, "TLS", toy_tls())


async def test_nothing_is_handled_for_a_peer_that_cannot_be_sent_to(running, monkeypatch):
    """The sending function over TLS is another one."""

    def broken(_descriptor, _chunks):
        raise ConnectionResetError

    monkeypatch.setattr(tls_sending, "send", broken)
    monkeypatch.setattr(pipeline, "WRITE_BYTES", 1)  # each answer by itself
    await (client := await running.client()).send(request(ECHO, b"x") * 20)
    await until(lambda: running.toy.contexts and not running.toy.server.connections)
    assert len(running.toy.contexts) == 1
    await client.closed()
