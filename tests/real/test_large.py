"""Large requests of every API: answered or refused, and the loop is never held for long."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import struct
import uuid

import pytest

from barnabas.broker.api.dispatch import LARGE_BYTES, PRODUCE_KEY, ROUTES
from barnabas.broker.api.division import count_elements
from barnabas.broker.client.dialing import connect
from barnabas.broker.network.large import SLOTS
from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ENTRIES
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.testing import Broker
from tests.attack.loop_lag import loop_lag
from tests.broker.large_requests import fillings, large_requests, one_drawn
from tests.broker.sample_requests import SAMPLES, error_codes
from tests.garbage import collector_of_a_daemon
from tests.products import case
from tests.requests import commit_request, fetch_offsets_request, produce_request
from tests.seeds import SEED
from tests.waiting import wait_until

HELD_MS_MOST = 250
"""Processor time of the loop. On a quiet machine it is a tenth; tests run on a busy one."""
DIVIDED, UNDIVIDED = 80_000, 39_900
"""Elements: a little below what is allowed."""
ABSURD = 300_000
PARTITIONS = 3000
UNREAD = 500
"""Pipelined requests; of far fewer the responses fit into the buffers of a socket."""

APIS = [route.name for route in ROUTES if route.key != PRODUCE_KEY]
DRAWN = random.Random(SEED).sample(APIS, len(APIS) // 12)
"""The APIs of `make test`, each with one request. All have all of their requests at night."""
CASES = [
    *(case(name, one_drawn, in_test=True) for name in DRAWN),
    *(case(name, fillings, in_test=False) for name in APIS),
]


@pytest.fixture(scope="module")
def running():
    config = {"transaction.two.phase.commit.enable": "true"}
    with collector_of_a_daemon(), Broker(config=config) as broker:
        broker.create_topic("kept", partitions=3)
        yield broker


def frame_of(api, version, message):
    return b"".join(ClientConnection("large").request(api, version, message)[1])


def exchange(address, frame):
    """Send a frame; return the size of the response, or None if the connection closes."""
    with connect(address, 120) as sock:
        try:
            sock.sendall(frame)
            head = sock.recv(4, socket.MSG_WAITALL)
            if len(head) < 4:
                return None
            (left,) = (size,) = struct.unpack(">i", head)
            while left:
                left -= len(sock.recv(min(left, 1 << 20)))
        except ConnectionError:
            return None
        return size


def ask(broker, api, version, message):
    """The response to ``message``, None where the connection closes."""
    connection = ClientConnection("large")
    frame = b"".join(connection.request(api, version, message)[1])
    with connect(broker.address, 120) as sock:
        sock.sendall(frame)
        while (answer := connection.next_response()) is NEED_DATA:
            data = sock.recv(1 << 20)
            if not data:
                return None
            connection.receive_data(data)
    return answer[1]


@pytest.mark.parametrize(("name", "choose"), CASES)
def test_no_array_of_any_api_holds_the_loop(running, name, caplog, choose):
    route = next(route for route in ROUTES if route.name == name)
    topic_id = running.call(lambda: running.server.catalogue.topic("kept").topic_id)
    module, version = ENTRIES[route.key].module, route.max_version

    def sample():
        return SAMPLES[name]("kept", topic_id, "gone", bytes(16))

    can_be_cut = route.in_slices
    elements = DIVIDED if can_be_cut else UNDIVIDED
    chosen = choose(module, version)
    for what, message in large_requests(module, version, sample, elements, chosen):
        count = count_elements(message)
        frame = frame_of(route.api, version, message)
        with loop_lag(running, f"{name} {what} x {count}") as lag:
            answered = exchange(running.address, frame)
        assert answered is not None, what
        assert lag.busy_ms < HELD_MS_MOST, what
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@pytest.mark.parametrize(("name", "choose"), CASES)
def test_an_absurd_array_of_any_api_is_refused(running, name, caplog, choose):
    route = next(route for route in ROUTES if route.name == name)
    topic_id = running.call(lambda: running.server.catalogue.topic("kept").topic_id)
    module, version = ENTRIES[route.key].module, route.max_version

    def sample():
        return SAMPLES[name]("kept", topic_id, "gone", bytes(16))

    chosen = dict.fromkeys(each._replace(is_alike=True) for each in choose(module, version))
    for what, message in large_requests(module, version, sample, ABSURD, chosen):
        caplog.clear()
        with loop_lag(running, f"{name} {what} x {ABSURD}") as lag:
            response = ask(running, route.api, version, message)
        if response is None:
            assert "are allowed by barnabas.request.elements.max" in caplog.text
        else:
            assert ErrorCode.INVALID_REQUEST in set(error_codes(response))
        assert lag.busy_ms < HELD_MS_MOST, what
        assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def test_a_produce_of_absurdly_many_partitions_is_refused(running, caplog):
    data = [PartitionProduceData(index, memoryview(b"")) for index in range(ABSURD)]
    topic_id = running.call(lambda: running.server.catalogue.topic("kept").topic_id)
    message = ProduceRequest(
        None, -1, 1000, [TopicProduceData(topic_id=topic_id, partition_data=data)]
    )
    with loop_lag(running, f"Produce x {ABSURD}") as lag:
        assert ask(running, PRODUCE, 13, message) is None
    assert "300000 elements in arrays, 40000 are allowed" in caplog.text
    assert lag.busy_ms < HELD_MS_MOST


def test_single_decision_has_its_own_limit(running):
    route = next(route for route in ROUTES if route.name == "LeaveGroup")
    assert not route.in_slices
    for count, refused in ((39_900, False), (40_100, True)):
        ((what, message), *_) = large_requests(
            "leave_group", 5, lambda: SAMPLES["LeaveGroup"]("kept", b"", "", b""), count
        )
        response = ask(running, route.api, 5, message)
        assert (response.error_code == ErrorCode.INVALID_REQUEST) is refused, what


def test_more_bytes_than_a_request_may_have_are_refused(running, caplog):
    name = "x" * 30_000
    message = MetadataRequest([MetadataRequestTopic(name=name) for _ in range(600)])
    response = ask(running, METADATA, 13, message)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert ask(running, METADATA, 12, message) is None  # It had no error for the whole request.
    assert "barnabas.request.max.bytes" in caplog.text


@pytest.fixture(scope="module")
def wide(running):
    """Topics that have many partitions together."""
    for number in range(3):
        running.create_topic(f"wide-{number}", partitions=PARTITIONS // 3)
    return [(f"wide-{n}", index) for n in range(3) for index in range(PARTITIONS // 3)]


def topics_of(wide):
    names = sorted({name for name, _ in wide})
    return [(name, [index for each, index in wide if each == name]) for name in names]


def test_a_divided_request_is_answered_whole_and_in_order(running, wide):
    request = ListOffsetsRequest(
        topics=[
            ListOffsetsTopic(name, [ListOffsetsPartition(index, -1, -2) for index in indexes])
            for name, indexes in topics_of(wide)
        ]
    )
    assert len(frame_of(LIST_OFFSETS, 10, request)) > LARGE_BYTES
    response = ask(running, LIST_OFFSETS, 10, request)
    assert [topic.name for topic in response.topics] == ["wide-0", "wide-1", "wide-2"]
    found = [
        (topic.name, each.partition_index) for topic in response.topics for each in topic.partitions
    ]
    assert found == wide
    assert set(error_codes(response)) == {0}


def test_offsets_of_many_partitions_are_committed_and_read(running, wide):
    ask_coordinator(running, "many")
    commit = commit_request("many", {place: 1000 + place[1] for place in sorted(wide)})
    response = ask(running, OFFSET_COMMIT, 9, commit)
    committed = [
        (topic.name, each.partition_index) for topic in response.topics for each in topic.partitions
    ]
    assert sorted(committed) == sorted(wide)
    assert set(error_codes(response)) == {0}
    (group,) = ask(running, OFFSET_FETCH, 9, fetch_offsets_request("many")).groups
    read = {
        (topic.name, each.partition_index): each.committed_offset
        for topic in group.topics
        for each in topic.partitions
    }
    assert read == {key: 1000 + key[1] for key in wide}


def ask_coordinator(running, group):
    route = next(route for route in ROUTES if route.name == "FindCoordinator")
    request = SAMPLES["FindCoordinator"](group, b"", "", b"")
    ask(running, route.api, 4, request)


def test_a_fetch_of_many_partitions_waits_and_is_woken(running, wide):
    request = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[
            FetchTopic(name, partitions=[FetchPartition(i, partition_max_bytes=1000) for i in some])
            for name, some in topics_of(wide)
        ],
    )
    connection = ClientConnection("large")
    frame = b"".join(connection.request(FETCH, 11, request)[1])
    with connect(running.address, 120) as sock:
        sock.sendall(frame)
        sock.settimeout(0.3)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        sock.settimeout(60)
        running.call(lambda: None)
        produce_one(running, "wide-1", 7)
        while (answer := connection.next_response()) is NEED_DATA:
            connection.receive_data(sock.recv(1 << 20))
    data = {
        (topic.topic, each.partition_index)
        for topic in answer[1].responses
        for each in topic.partitions
        if each.records
    }
    assert data == {("wide-1", 7)}


def produce_one(running, topic, partition):
    from barnabas.protocol.messages.produce import (
        PRODUCE,
    )
    from tests.broker.sample_requests import batch

    request = produce_request({(topic, partition): batch()})
    assert set(error_codes(ask(running, PRODUCE, 9, request))) == {0}


def test_a_client_that_leaves_while_its_fetch_waits_leaves_nothing(running, wide):
    topics = [
        FetchTopic(name, partitions=[FetchPartition(i, partition_max_bytes=1000) for i in some])
        for name, some in topics_of(wide)[2:]
    ]
    request = FetchRequest(max_wait_ms=600_000, min_bytes=1 << 20, max_bytes=1 << 21, topics=topics)
    waits = running.server.fetch_waits
    with connect(running.address, 120) as sock:
        sock.sendall(frame_of(FETCH, 11, request))
        running.call(lambda: None)
        wait_until(lambda: running.call(lambda: len(waits)) > 0)
    wait_until(lambda: running.call(lambda: len(waits)) == 0)
    wait_until(lambda: running.call(lambda: len(running.server.sockets.at_work)) == 0)


def test_a_request_behind_a_large_one_is_answered_after_it(running, wide):
    connection = ClientConnection("large")
    topics = [MetadataRequestTopic(name=f"none-{n}") for n in range(3000)]
    large = MetadataRequest(topics, allow_auto_topic_creation=False)
    frames = b"".join(connection.request(METADATA, 9, large)[1])
    frames += b"".join(
        connection.request(METADATA, 9, MetadataRequest([MetadataRequestTopic(name="kept")]))[1]
    )
    answers = []
    with connect(running.address, 120) as sock:
        sock.sendall(frames)
        while len(answers) < 2:
            answer = connection.next_response()
            if answer is NEED_DATA:
                connection.receive_data(sock.recv(1 << 20))
            else:
                answers.append(answer[1])
    assert [len(each.topics) for each in answers] == [3000, 1]


@pytest.mark.parametrize(
    "name", [case("Metadata", in_test=False), case("OffsetFetch", in_test=True)]
)
def test_unread_long_responses_to_small_requests_come_one_at_a_time(running, wide, name):
    """A client that reads nothing has a few of them in memory, and no queue at the encoder."""
    test_offsets_of_many_partitions_are_committed_and_read(running, wide)
    topics = [MetadataRequestTopic(name=each) for each, _ in topics_of(wide)]
    api, version, message = {
        "Metadata": (METADATA, 9, MetadataRequest(topics)),
        "OffsetFetch": (OFFSET_FETCH, 9, fetch_offsets_request("many")),
    }[name]
    route = next(each for each in running.server.routes if each.name == name)
    connection = ClientConnection("unread")
    frames = [b"".join(connection.request(api, version, message)[1]) for _ in range(UNREAD)]
    before = running.call(lambda: route.requests)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(running.address)
        sock.sendall(b"".join(frames))
        handled = [before, before + UNREAD]
        while handled[-1] - handled[-2] not in {0, 1}:
            # The response to another client is encoded behind those that are queued there.
            assert ask(running, api, version, message) is not None
            handled.append(running.call(lambda: route.requests))
        assert handled[-1] - before < UNREAD // 2


def test_many_connections_with_large_requests_take_turns(running):
    """Twenty at once are one slice for each turn of the loop, not twenty."""
    topics = [MetadataRequestTopic(name=f"none-{n}") for n in range(20_000)]
    message = MetadataRequest(topics, allow_auto_topic_creation=False)
    frame = frame_of(METADATA, 9, message)

    async def all_at_once():
        await asyncio.gather(
            *(asyncio.to_thread(exchange, running.address, frame) for _ in "x" * 20)
        )

    with loop_lag(running, "20 x Metadata x 20000") as lag:
        asyncio.run(all_at_once())
    assert lag.busy_ms < HELD_MS_MOST


def session_fetch(session_id, epoch, *topics):
    return FetchRequest(
        max_wait_ms=0,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(name, partitions=[FetchPartition(i, partition_max_bytes=1000) for i in some])
            for name, some in topics
        ],
    )


def test_sessions_of_what_does_not_exist_are_not_kept(running):
    sessions = running.server.fetch_sessions
    before = running.call(lambda: sessions.partitions)
    for _ in range(3):
        response = ask(running, FETCH, 11, session_fetch(0, 0, ("nowhere", range(39_000))))
        assert response.session_id == 0
        assert set(error_codes(response)) == {0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert running.call(lambda: sessions.partitions) == before


def test_a_topic_made_later_is_found_in_a_session_that_named_it_before(running):
    running.create_topic("empty")
    first = ask(running, FETCH, 11, session_fetch(0, 0, ("empty", [0]), ("later", [0])))
    assert first.session_id > 0
    again = ask(running, FETCH, 11, session_fetch(first.session_id, 1))
    (missing,) = again.responses
    assert missing.topic == "later"
    assert missing.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    running.create_topic("later")
    produce_one(running, "later", 0)
    (found,) = ask(running, FETCH, 11, session_fetch(first.session_id, 2)).responses
    assert (found.topic, found.partitions[0].error_code) == ("later", 0)
    assert found.partitions[0].records


def test_assignments_of_300_members_are_decoded_on_the_loop():
    """All members wait for this request of their leader."""
    member_id = f"consumer-group-1-{uuid.UUID(int=0)}"
    assignments = [SyncGroupRequestAssignment(member_id, bytes(40)) for _ in range(300)]
    request = SyncGroupRequest("group", 1, member_id, assignments=assignments)
    route = ROUTES.get(SYNC_GROUP.key)
    assert LARGE_BYTES < len(frame_of(SYNC_GROUP, 3, request)) <= route.large_bytes


def test_members_with_long_subscriptions_do_not_wait_for_each_other():
    """More of them than requests are worked on at a time: the group is complete with the last."""
    protocols = [JoinGroupRequestProtocol("range", memoryview(bytes(2 * LARGE_BYTES)))]
    request = JoinGroupRequest("g", 60_000, 60_000, "", protocol_type="t", protocols=protocols)
    connections = [ClientConnection(f"member-{number}") for number in range(SLOTS + 4)]
    config = {"group.initial.rebalance.delay.ms": "1000"}
    with Broker(config=config) as broker, contextlib.ExitStack() as opened:
        ask_coordinator(broker, "g")
        sockets = [opened.enter_context(connect(broker.address, 120)) for _ in connections]
        for connection, sock in zip(connections, sockets, strict=True):
            sock.sendall(b"".join(connection.request(JOIN_GROUP, 3, request)[1]))
        answers = []
        for connection, sock in zip(connections, sockets, strict=True):
            while (answer := connection.next_response()) is NEED_DATA:
                connection.receive_data(sock.recv(1 << 20))
            answers.append(answer[1])
    assert {(each.error_code, each.generation_id) for each in answers} == {(0, 1)}
    assert max(len(each.members) for each in answers) == len(connections)
