"""Hellos at a broker: the permission to send one, and the connections that it ends (R10)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from barnabas.broker.handlers.transactions import transaction_markers
from barnabas.broker.handlers.transactions.transaction_markers import MARKERS_PER_TURN
from barnabas.protocol.api import Chunks
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.header import RequestHeader, request_frame
from barnabas.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionsRequest,
    ApiVersionsResponse,
    PeerHello,
)
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.protocol.records import read_header
from barnabas.testing import Broker
from tests.broker.security.access_users import ADMIN, EVERYTHING, NOBODY, UserClient, settings
from tests.broker.toy import RawClient
from tests.crash.transaction_life import batches_of
from tests.seeds import SEED
from tests.waiting import until

TOPIC = "t"
PID = 5000
NONE = ErrorCode.NONE


def frame(api, version, request, correlation_id=1) -> bytes:
    header = RequestHeader(api.key, version, correlation_id, "peer")
    chunks: Chunks = request_frame(api, header, request)
    return b"".join(chunks)


def hello(number, node_id=2, session=1, purpose="markers") -> ApiVersionsRequest:
    return ApiVersionsRequest("barnabas", "1", PeerHello(node_id, session, purpose, number))


def hello_frame(number, **key) -> bytes:
    return frame(API_VERSIONS, 3, hello(number, **key))


def markers(producer_id, count) -> WriteTxnMarkersRequest:
    """Return a request with ``count`` markers of one producer for one partition."""
    topics = [WritableTxnMarkerTopic(TOPIC, [0])]
    return WriteTxnMarkersRequest([WritableTxnMarker(producer_id, 1, True, topics, 0, 0)] * count)


def markers_frame(producer_id, count=1) -> bytes:
    return frame(WRITE_TXN_MARKERS, 1, markers(producer_id, count))


@pytest.fixture
async def broker():
    async with Broker() as running:
        await running.create_topic(TOPIC, 1)
        yield running


@pytest.fixture
async def connect(broker):
    """Open raw connections, closed at the end."""
    opened = []

    async def new() -> RawClient:
        opened.append(await RawClient.to(broker.address))
        return opened[-1]

    yield new
    for each in opened:
        await each.close()


def written(broker) -> list[int]:
    """Return the producer IDs of the partition's markers, in their order."""
    log = broker.server.catalogue.partition(TOPIC, 0).log
    return [read_header(batch).producer_id for batch in batches_of(log)]


async def versions(client) -> ApiVersionsResponse:
    _, body = await client.answer()
    return API_VERSIONS.decode_response(memoryview(body), 0, 3)


async def test_a_hello_is_answered_like_any_request_for_versions(broker, connect):
    first, second = await connect(), await connect()
    await first.send(frame(API_VERSIONS, 3, ApiVersionsRequest("me", "1")))
    await second.send(hello_frame(1))
    assert await versions(first) == await versions(second)
    assert len(broker.server.sockets.peer_sessions) == 1


async def test_a_newer_connection_closes_the_one_before_it_is_answered(broker, connect):
    first, second = await connect(), await connect()
    await first.send(hello_frame(1), markers_frame(PID))
    await versions(first)
    await first.answer()
    await second.send(hello_frame(2))
    await versions(second)
    assert await first.closed() == b""
    await second.send(markers_frame(PID + 1))
    await second.answer()
    assert written(broker) == [PID, PID + 1]


async def test_an_older_hello_that_comes_late_is_refused(broker, connect):
    late, newer = await connect(), await connect()
    await newer.send(hello_frame(2))
    await versions(newer)
    await late.send(hello_frame(1), markers_frame(PID))
    assert await late.closed() == b""
    await newer.send(markers_frame(PID + 1))
    await newer.answer()
    assert written(broker) == [PID + 1]


async def test_a_connection_says_hello_once(broker, connect):
    client = await connect()
    await client.send(hello_frame(1), hello_frame(2, purpose="verification"))
    await versions(client)
    assert await client.closed() == b""


@pytest.mark.parametrize("is_lost", [False, True], ids=["closed by the newer", "lost before"])
async def test_newer_hello_ends_running_request_of_older_connection(
    broker, connect, monkeypatch, is_lost
):
    """The markers of a request are written in slices: none is written after the newer hello."""
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def turn() -> None:
        begun.set()
        await goes_on.wait()

    monkeypatch.setattr(transaction_markers, "turn_over", turn)
    older, newer = await connect(), await connect()
    absent = list(range(100, 100 + MARKERS_PER_TURN))
    topics = [WritableTxnMarkerTopic(TOPIC, [0, *absent])]
    first = WritableTxnMarker(PID, 1, True, topics, 0, 0)
    request = WriteTxnMarkersRequest([first, *markers(PID, 1).markers])
    await older.send(hello_frame(1), frame(WRITE_TXN_MARKERS, 1, request))
    await begun.wait()
    await until(lambda: written(broker) == [PID])
    if is_lost:
        older.writer.transport.abort()
        await until(lambda: len(broker.server.sockets.connections) == 1)
    await newer.send(hello_frame(2), markers_frame(PID + 1))
    await versions(newer)
    await newer.answer()
    goes_on.set()
    await until(lambda: not broker.server.sockets.at_work)
    await newer.send(markers_frame(PID + 2))
    await newer.answer()
    assert written(broker) == [PID, PID + 1, PID + 2]


@pytest.mark.parametrize("is_lost", [False, True], ids=["closed by the newer", "lost before"])
async def test_a_large_request_of_an_older_connection_ends_too(broker, connect, is_lost):
    count = 40 * MARKERS_PER_TURN
    older, newer = await connect(), await connect()
    await older.send(hello_frame(1), frame(WRITE_TXN_MARKERS, 1, markers(PID, count)))
    await until(lambda: written(broker))
    if is_lost:
        older.writer.transport.abort()
    await newer.send(hello_frame(2), markers_frame(PID + 1))
    await versions(newer)
    await newer.answer()
    await until(lambda: not broker.server.sockets.at_work)
    assert written(broker)[-1] == PID + 1, "nothing follows what the newer one has written"


# ---------------------------------------------------------------------------------- who may say it


@pytest.fixture(scope="module")
def controlled():
    users = (ADMIN, EVERYTHING, NOBODY)
    with Broker(config=settings(users)) as running:
        yield running


@pytest.mark.parametrize("version", [3, 4])
def test_hello_without_cluster_action_is_refused(controlled, version):
    with UserClient(controlled.address, NOBODY) as client:
        answer = client.ask(API_VERSIONS, hello(version), version)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert not client.ask(API_VERSIONS, ApiVersionsRequest("me", "1"), version).error_code


def test_a_super_user_is_one(controlled):
    with UserClient(controlled.address, ADMIN) as client:
        assert not client.ask(API_VERSIONS, hello(10), 3).error_code
        with UserClient(controlled.address, ADMIN) as other:
            assert not other.ask(API_VERSIONS, hello(11), 3).error_code
        with pytest.raises(ConnectionError):
            client.ask(API_VERSIONS, ApiVersionsRequest("me", "1"), 3)


async def test_a_hello_before_the_login_closes_the_connection():
    async with Broker(config=settings((ADMIN,))) as broker:
        client = await RawClient.to(broker.address)
        await client.send(hello_frame(1))
        assert await client.closed() == b""
        assert len(broker.server.sockets.peer_sessions) == 0
        await client.close()


# ------------------------------------------------------------------------------------ random orders


@pytest.mark.parametrize("offset", range(12))
async def test_markers_of_an_older_connection_never_follow_those_of_a_newer(
    broker, connect, offset
):
    """Random connections, sizes, orders, cuts; the partition has the order of what was handled."""
    chance = random.Random(SEED + offset)
    keys = [{"node_id": node, "purpose": purpose} for node in (2, 3) for purpose in "mv"]
    scripts = []
    for which, key in enumerate(keys):
        for number in range(1, 5):
            producer_id = PID + 10 * which + number
            sizes = [
                chance.choice((1, 3, MARKERS_PER_TURN, 3 * MARKERS_PER_TURN))
                for _ in range(chance.randrange(1, 4))
            ]
            frames = [markers_frame(producer_id, size) for size in sizes]
            scripts.append((await connect(), [hello_frame(number, **key), *frames]))
    running = list(scripts)
    while running:
        script = chance.choice(running)
        client, frames = script
        if chance.random() < 0.05:
            client.writer.transport.abort()
            frames.clear()
        elif not client.writer.is_closing():
            client.writer.write(frames.pop(0))
        if not frames or client.writer.is_closing():
            running.remove(script)
        for _ in range(chance.choice((0, 0, 1, 5, 30))):
            await asyncio.sleep(0)
    for which, key in enumerate(keys):
        last = await connect()
        await last.send(hello_frame(9, **key), markers_frame(PID + 10 * which + 9))
        await versions(last)
        await last.answer()
    await until(lambda: not broker.server.sockets.at_work, "requests are still handled")
    seen: Counter[int] = Counter()
    for producer_id in written(broker):
        which, number = divmod(producer_id - PID, 10)
        assert number >= seen[which], f"seed {SEED + offset}: {number} after {seen[which]}"
        seen[which] = number
    assert seen == dict.fromkeys(range(len(keys)), 9)
