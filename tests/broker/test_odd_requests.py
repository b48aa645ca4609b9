"""A value that makes no sense in a good request of any API: an answer or a hang-up."""

from __future__ import annotations

import logging
from socket import SHUT_WR

import pytest

from barnabas.broker.api.dispatch import ROUTES
from barnabas.broker.client.dialing import connect
from barnabas.protocol.client import ClientConnection
from barnabas.protocol.messages import ENTRIES
from barnabas.testing import Broker
from tests.broker.odd_requests import odd_requests
from tests.broker.sample_requests import SAMPLES
from tests.worlds import world

__all__ = ["world"]

APIS = sorted(SAMPLES)


@pytest.fixture(scope="module")
def running():
    with Broker(config={"transaction.two.phase.commit.enable": "true"}) as broker:
        broker.create_topic("kept")
        yield broker


@pytest.mark.parametrize("name", APIS)
def test_no_odd_value_in_a_request_of_any_api_is_a_bug(running, name, caplog):
    route = next(route for route in ROUTES if route.name == name)
    topic_id = running.call(lambda: running.server.catalogue.topic("kept").topic_id)
    module = ENTRIES[route.key].module
    for version in sorted({route.min_version, route.max_version}):
        for odd, message in odd_requests(
            module, version, lambda: SAMPLES[name]("kept", topic_id, "gone", bytes(16))
        ):
            frame = b"".join(ClientConnection("odd").request(route.api, version, message)[1])
            with connect(running.address, 60) as sock:
                sock.sendall(frame)
                sock.shutdown(SHUT_WR)
                while sock.recv(65536):
                    pass
            bugs = [record for record in caplog.records if record.levelno >= logging.ERROR]
            assert not bugs, f"{name} v{version} {odd}: {bugs[0].getMessage()} {bugs[0].exc_text}"
