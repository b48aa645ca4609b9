"""Every API and version that is served: a request of a real encoder gets its answer."""

from __future__ import annotations

import itertools
import struct

import pytest

from barnabas.broker import handlers
from barnabas.broker.api.dispatch import PRODUCE_KEY, ROUTES
from barnabas.broker.client.dialing import connect
from barnabas.broker.handlers.api_versions import advertised
from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.header import RequestHeader, encode_request_header
from barnabas.protocol.messages import ENTRIES, api_for_key
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.testing import Broker
from tests.broker.sample_requests import (
    REFUSED,
    SAMPLES,
    TRANSACTIONAL,
    error_codes,
    identify,
)
from tests.protocol.random_messages import Case
from tests.protocol.schemas import SCHEMAS
from tests.protocol.test_codec_against_oracles import kio_cases, through_kio
from tests.worlds import world

__all__ = ["world"]

assert handlers

KNOWN_TO_KIO = {(case.module, case.version) for case in kio_cases() if case.section == "request"}
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def running():
    # With two-phase commit every version is served that there is.
    with Broker(config={"transaction.two.phase.commit.enable": "true"}) as broker:
        broker.create_topic("committed")
        topic_id = broker.call(lambda: broker.server.catalogue.topic("committed").topic_id)
        # A group exists after a commit, its coordinator after FindCoordinator.
        for name, version in (("FindCoordinator", 4), ("OffsetCommit", 9)):
            route = next(route for route in ROUTES if route.name == name)
            request = SAMPLES[name]("committed", topic_id, "", b"")
            ask(broker.address, route.api, version, request)
        yield broker


def as_kio_writes_it(api, request, version) -> bytes:
    """The body as an independent encoder writes it; every one of these is in its reach."""
    module = ENTRIES[api.key].module
    ours = b"".join(api.encode_request(request, version))
    assert (module, version) in KNOWN_TO_KIO
    return through_kio(Case(module, "request", SCHEMAS[module], api.request, version), ours)


def ask(address, api, version, request):
    connection = ClientConnection("sample")
    connection.request(api, version, request)  # notes what is expected back
    body = as_kio_writes_it(api, request, version)
    header = encode_request_header(RequestHeader(api.key, version, 0, "sample"))
    with connect(address, 60) as sock:
        sock.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        while (answer := connection.next_response()) is NEED_DATA:
            data = sock.recv(65536)
            assert data, "the broker hung up"
            connection.receive_data(data)
    return answer[1]


def begin_transaction(running, topic):
    """Open a transaction of everything that the samples use; answers who has it."""
    routes = {route.name: route for route in ROUTES}
    api = routes["InitProducerId"].api
    begun = ask(running.address, api, 5, InitProducerIdRequest(topic, 60_000))
    identity = {
        "transactional_id": topic,
        "producer_id": begun.producer_id,
        "producer_epoch": begun.producer_epoch,
    }
    for name in ("AddPartitionsToTxn", "AddOffsetsToTxn"):
        request = SAMPLES[name](topic, bytes(16), "", b"")
        identify(request, **identity)
        assert set(error_codes(ask(running.address, routes[name].api, 3, request))) == {0}
    return identity


@pytest.mark.parametrize("route", [*ROUTES], ids=lambda route: route.name)
def test_a_request_of_every_api_and_version_is_answered_with_success(running, route):
    for version in range(route.min_version, route.max_version + 1):
        topics = []
        for kind in ("kept", "deleted"):
            topic = f"{kind}-{next(numbers)}"
            running.create_topic(topic)
            topic_id = running.call(lambda t=topic: running.server.catalogue.topic(t).topic_id)
            topics += [topic, topic_id]
        request = SAMPLES[route.name](*topics)
        if route.name in TRANSACTIONAL:
            identify(request, **begin_transaction(running, topics[0]))
        response = ask(running.address, route.api, version, request)
        assert set(error_codes(response)) <= REFUSED.get(route.name, {0}), version


def test_advertised_versions_are_registered_and_have_a_codec():
    ranges = {each.api_key: (each.min_version, each.max_version) for each in advertised(ROUTES)}
    assert set(ranges) == {route.key for route in ROUTES}
    for route in ROUTES:
        low, high = ranges[route.key]
        assert high == route.max_version
        assert low == (0 if route.key == PRODUCE_KEY else route.min_version)
        assert route.api is api_for_key(route.key)
        assert route.api.min_version <= route.min_version <= route.max_version
        assert route.max_version <= route.api.max_version


def test_every_registered_api_has_a_sample():
    assert {route.name for route in ROUTES} == set(SAMPLES)
