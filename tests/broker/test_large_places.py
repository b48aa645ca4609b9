"""The places of large requests, and the memory of their frames, while clients come and go."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.client.dialing import connect
from barnabas.broker.network.large import SLOTS_FOR_VERY_LARGE, VERY_LARGE_BYTES
from barnabas.protocol.client import ClientConnection
from barnabas.protocol.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.storage.runtime.threads import new_event
from barnabas.testing import Broker
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]


class HeldApi:
    """An API whose requests are decoded when a test lets them."""

    def __init__(self, api):
        self._api = api
        self.is_free = new_event()
        self.begun = 0

    def __getattr__(self, name):
        return getattr(self._api, name)

    def decode_request(self, frame, position, version):
        self.begun += 1
        self.is_free.wait()
        return self._api.decode_request(frame, position, version)


@pytest.fixture
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def held(broker):
    route = next(each for each in broker.server.routes if each.name == "Metadata")
    held = HeldApi(route.api)
    broker.call(lambda: setattr(route, "api", held))
    yield held
    held.is_free.set()


def very_large_frame():
    topics = [MetadataRequestTopic(name=f"none-{number}" + "x" * 200) for number in range(2000)]
    request = MetadataRequest(topics, allow_auto_topic_creation=False)
    frame = b"".join(ClientConnection("large").request(METADATA, 9, request)[1])
    assert len(frame) > VERY_LARGE_BYTES
    return frame


def free_places(broker):
    return broker.call(lambda: broker.server.sockets.large._very_large.slots._value)


def frame_bytes(broker):
    return broker.call(lambda: broker.server.sockets.frame_budget.used_bytes)


def leave(broker, *clients):
    for client in clients:
        client.close()
    wait_until(lambda: not broker.call(lambda: broker.server.sockets.connections))


def test_frame_of_a_client_that_left_counts_until_its_thread_is_done(broker, held):
    frame = very_large_frame()
    client = connect(broker.address, 60)
    client.sendall(frame)
    wait_until(lambda: held.begun)
    counted = frame_bytes(broker)
    assert counted > 0
    leave(broker, client)
    assert frame_bytes(broker) == counted
    assert free_places(broker) == SLOTS_FOR_VERY_LARGE - 1
    held.is_free.set()
    wait_until(lambda: free_places(broker) == SLOTS_FOR_VERY_LARGE)
    assert frame_bytes(broker) == 0


def test_frames_behind_a_busy_thread_are_free_once_their_clients_have_left(broker, held):
    frame = very_large_frame()
    clients = [connect(broker.address, 60) for _ in range(SLOTS_FOR_VERY_LARGE + 2)]
    for client in clients:
        client.sendall(frame)
    connections = broker.server.sockets.connections
    wait_until(
        lambda: (
            broker.call(lambda: sum(each._pipeline.is_parked for each in connections))
            == len(clients)
        )
    )
    counted = frame_bytes(broker)
    leave(broker, *clients)
    wait_until(lambda: frame_bytes(broker) < counted)
    wait_until(lambda: free_places(broker) == SLOTS_FOR_VERY_LARGE - 1)
    assert held.begun == 1
    held.is_free.set()
    wait_until(lambda: free_places(broker) == SLOTS_FOR_VERY_LARGE)
    assert (held.begun, frame_bytes(broker)) == (1, 0)


def test_request_that_waits_for_the_store_leaves_its_place(broker):
    waiting = []

    async def handle(_context, _request):
        waiting.append(asyncio.get_running_loop().create_future())
        return await waiting[-1]

    route = next(each for each in broker.server.routes if each.name == "Metadata")
    broker.call(lambda: setattr(route, "handler", handle))
    frame = very_large_frame()
    clients = [connect(broker.address, 60) for _ in range(SLOTS_FOR_VERY_LARGE + 1)]
    for client in clients:
        client.sendall(frame)
    wait_until(lambda: broker.call(lambda: len(waiting)) == len(clients))
    assert free_places(broker) == SLOTS_FOR_VERY_LARGE
    broker.call(lambda: [each.set_result(MetadataResponse()) for each in waiting])
    assert all(client.recv(4) for client in clients)
    leave(broker, *clients)
