"""Wiretap: requests by wire, moments of faults, rejections of a loading coordinator."""

from __future__ import annotations

import signal
import tracemalloc

import pytest

from barnabas.broker.cli.proving import calls as names
from barnabas.broker.cli.proving.calls import Call, Topics
from barnabas.broker.cli.proving.instances import is_of
from barnabas.broker.cli.proving.proxy import Act
from barnabas.broker.cli.proving.timeline import Timeline
from barnabas.broker.cli.proving.wiretap import CALLS_MAX, ConnectionTap, Moment, Wiretap
from barnabas.protocol.client import ClientConnection
from barnabas.protocol.header import response_frame
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.protocol.messages.init_producer_id import (
    INIT_PRODUCER_ID,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.protocol.records import Record, encode_batch

COMMIT_REQUEST = EndTxnRequest("invoicing-1", 4, 2, True)


@pytest.fixture
def wiretap() -> Wiretap:
    return Wiretap(Topics("orders", "invoices", {}), dict, Timeline())


@pytest.fixture
def tap(wiretap) -> ConnectionTap:
    return ConnectionTap(wiretap, lambda: "1b")


def sent(api, version: int, request: object) -> bytes:
    _, chunks = ClientConnection("client").request(api, version, request)
    return b"".join(chunks)


def produce(acks: int = -1) -> bytes:
    batch = encode_batch(
        [Record(index, 0, b"k", b"v", ()) for index in range(3)],
        producer_id=4, producer_epoch=2, base_sequence=0, transactional=True,
    )  # fmt: skip
    data = [PartitionProduceData(1, memoryview(batch))]
    topic = TopicProduceData(name="invoices", partition_data=data)
    return sent(PRODUCE, 9, ProduceRequest("invoicing-1", acks, 1000, [topic]))


def test_produce_has_its_producer_and_the_offsets_of_the_response(wiretap, tap):
    assert tap.requests(produce()) == (Act.FORWARD, b"")
    (call,) = wiretap.calls
    assert (call.process, call.transactional_id, call.acks) == ("1b", "invoicing-1", -1)
    assert (call.producer_id, call.epoch, call.is_idempotent) == (4, 2, True)
    assert (call.counts, call.written, call.is_answered) == ({1: 3}, {}, False)
    result = PartitionProduceResponse(1, base_offset=17)
    response = ProduceResponse(
        [TopicProduceResponse(name="invoices", partition_responses=[result])]
    )
    forwarded = b"".join(response_frame(PRODUCE, 9, 0, response))
    assert tap.responses(forwarded) == forwarded
    assert (call.written, call.is_answered, call.errors) == ({1: (17, 19)}, True, ())


def test_request_in_pieces_is_one_call(wiretap, tap):
    data = sent(END_TXN, 3, COMMIT_REQUEST)
    for index in range(len(data)):
        assert tap.requests(data[index : index + 1]) == (Act.FORWARD, b"")
    (call,) = wiretap.calls
    assert (call.api, call.commits, call.transactional_id) == (names.END, True, "invoicing-1")
    failed = EndTxnResponse(error_code=47)
    tap.responses(b"".join(response_frame(END_TXN, 3, 0, failed)))
    assert call.errors == ("INVALID_PRODUCER_EPOCH",)


def test_commit_of_offsets_has_those_of_the_input_only(wiretap, tap):
    topics = [
        OffsetCommitRequestTopic(name, partitions=[OffsetCommitRequestPartition(0, 12, -1, "")])
        for name in ("orders", "others")
    ]
    tap.requests(sent(OFFSET_COMMIT, 8, OffsetCommitRequest("g", 5, "m-1", topics=topics)))
    (call,) = wiretap.calls
    assert (call.group, call.generation, call.member, call.offsets) == ("g", 5, "m-1", {0: 12})


def test_last_process_owns_a_transactional_id(wiretap):
    for process in ("1", "1b"):
        begin_producer(ConnectionTap(wiretap, [process].pop))
    assert wiretap.owners == {"invoicing-1": "1b"}


def test_process_that_is_not_found_leaves_its_transactional_id_without_an_owner(wiretap):
    for process in ("1", ""):
        begin_producer(ConnectionTap(wiretap, [process].pop))
    assert not wiretap.owners, "transactions of dead owners are aborted"


def begin_producer(tap: ConnectionTap) -> None:
    tap.requests(sent(INIT_PRODUCER_ID, 4, InitProducerIdRequest("invoicing-1", 1000)))
    response = InitProducerIdResponse(producer_id=4, producer_epoch=0)
    tap.responses(b"".join(response_frame(INIT_PRODUCER_ID, 4, 0, response)))


def test_moment_waits_for_its_request_and_instance(wiretap, tap):
    signals = []
    wiretap.on_moment = lambda *arguments: signals.append(arguments)
    moment = Moment(names.END, 1, Act.SWALLOW, signal.SIGKILL, "after EndTxn")
    assert wiretap.arm(moment)
    assert not wiretap.arm(Moment(names.PRODUCE, 1, Act.CUT)), "its instance has one"
    assert tap.requests(produce())[0] is Act.FORWARD
    other = ConnectionTap(wiretap, lambda: "2")
    assert other.requests(sent(END_TXN, 3, COMMIT_REQUEST))[0] is Act.FORWARD
    assert tap.requests(sent(END_TXN, 3, COMMIT_REQUEST))[0] is Act.SWALLOW
    assert signals == [("1b", signal.SIGKILL, "after EndTxn")]
    assert not wiretap.is_armed(moment)
    assert not wiretap.disarm(moment)
    assert tap.requests(sent(END_TXN, 3, COMMIT_REQUEST))[0] is Act.FORWARD


def test_each_instance_has_a_moment_of_its_own(wiretap, tap):
    first, second = (Moment(names.END, number, Act.CUT) for number in (1, 2))
    assert wiretap.arm(first)
    assert wiretap.arm(second)
    assert tap.requests(sent(END_TXN, 3, COMMIT_REQUEST))[0] is Act.CUT
    assert not wiretap.is_armed(first)
    assert wiretap.is_armed(second)


def test_moment_of_a_commit_leaves_out_an_abort(wiretap, tap):
    wiretap.arm(Moment(names.END, 1, Act.CUT))
    abort = EndTxnRequest("invoicing-1", 4, 2, False)
    assert tap.requests(sent(END_TXN, 3, abort))[0] is Act.FORWARD
    assert tap.requests(sent(END_TXN, 3, COMMIT_REQUEST))[0] is Act.CUT


def test_moment_of_a_process_leaves_out_other_processes_of_its_instance(wiretap, tap):
    assert wiretap.arm(Moment(names.END, 1, Act.CUT, process="1c"))
    assert tap.requests(sent(END_TXN, 3, COMMIT_REQUEST))[0] is Act.FORWARD
    successor = ConnectionTap(wiretap, lambda: "1c")
    assert successor.requests(sent(END_TXN, 3, COMMIT_REQUEST))[0] is Act.CUT


def test_chosen_request_is_one_that_the_program_sends(wiretap, tap):
    assert wiretap.chosen(0.9, Act.CUT) == names.PRODUCE
    tap.requests(produce())
    tap.requests(sent(END_TXN, 3, COMMIT_REQUEST))
    chosen = {wiretap.chosen(share / 10, Act.CUT) for share in range(10)}
    assert chosen == {names.PRODUCE, names.END}


def test_chosen_requests_take_turns_for_each_fault(wiretap, tap):
    tap.requests(produce())
    tap.requests(sent(END_TXN, 3, COMMIT_REQUEST))
    for number in range(1, 7):
        wiretap.arm(Moment(wiretap.chosen(0.0, Act.CUT), number, Act.CUT))
    tried = [each.api for each in map(wiretap.taken, of_instances(6)) if each]
    assert sorted(tried) == [names.END] * 3 + [names.PRODUCE] * 3
    assert wiretap.chosen(0.0, Act.SWALLOW) == names.END
    assert wiretap.chosen(0.99, Act.SWALLOW) == names.PRODUCE


def of_instances(count: int) -> list[Call]:
    """Return a write and a commit of each instance."""
    return [
        Call(api, str(number), 0.0, commits=True)
        for number in range(1, count + 1)
        for api in (names.PRODUCE, names.END)
    ]


def test_program_has_read_all_when_its_living_processes_fetch_the_ends(wiretap):
    wiretap.read_from("1", {0: 7, 1: 3})
    wiretap.read_from("2b", {1: 9})
    assert wiretap.has_read_all({0: 7, 1: 8}, ["1", "2b"])
    assert not wiretap.has_read_all({0: 7, 1: 8}, ["1", "2c"]), "2b has ended"
    assert not wiretap.has_read_all({0: 8, 1: 8}, ["1", "2b"])
    assert not wiretap.has_read_all({0: 7, 2: 0}, ["1", "2b"]), "nobody has fetched partition 2"


def test_works_are_writes_that_succeeded(wiretap, tap):
    begin_producer(tap)
    assert wiretap.works == 0
    for number, error in enumerate((0, 3)):
        wiretap.answered(Call(names.PRODUCE, "1", 0.0, counts={0: 1}, errors=("E",) * error))
        assert wiretap.works == 1, number
    wiretap.answered(Call(names.COMMIT, "", 0.0, offsets={0: 1}))
    assert wiretap.works == 1, "the command's own"


def test_fetch_shows_the_position_of_its_process(wiretap, tap):
    partition = FetchPartition(partition=1, fetch_offset=12, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="orders", partitions=[partition])]
    tap.requests(sent(FETCH, 11, FetchRequest(topics=topics)))
    assert wiretap.has_read_all({1: 12}, ["1b"])
    assert not wiretap.has_read_all({1: 13}, ["1b"])


def test_loading_coordinator_rejects_in_the_form_of_the_api(wiretap, tap):
    wiretap.load_coordinator(1)
    connection = ClientConnection("client")
    _, chunks = connection.request(END_TXN, 3, COMMIT_REQUEST)
    act, response = tap.requests(b"".join(chunks))
    assert act is Act.FORWARD
    connection.receive_data(response)
    _, decoded = connection.next_response()
    assert decoded.error_code == 14
    wiretap.end_loading()
    assert tap.requests(sent(END_TXN, 3, COMMIT_REQUEST)) == (Act.FORWARD, b"")


def test_loading_coordinator_rejects_no_request_with_others_outstanding(wiretap, tap):
    wiretap.load_coordinator(1)
    tap.requests(produce())
    assert tap.requests(sent(END_TXN, 3, COMMIT_REQUEST)) == (Act.FORWARD, b"")
    assert not wiretap.calls[-1].is_answered, "the broker's own response is still to come"


def test_loading_coordinator_rejects_no_request_in_pieces(wiretap, tap):
    wiretap.load_coordinator(1)
    data = sent(END_TXN, 3, COMMIT_REQUEST)
    tap.requests(data[:9])
    assert tap.requests(data[9:]) == (Act.FORWARD, b"")
    assert not wiretap.calls[-1].is_answered, "the broker's own response is still to come"


def test_produce_without_acks_waits_for_no_response(wiretap, tap):
    tap.requests(produce(acks=0))
    wiretap.load_coordinator(1)
    _, response = tap.requests(sent(END_TXN, 3, COMMIT_REQUEST))
    assert response, "nothing is outstanding"


def kept_bytes(tap: ConnectionTap, data: bytes, count: int) -> int:
    """Return the memory that a connection keeps of ``count`` times the same bytes."""
    tracemalloc.start()
    try:
        for _ in range(count):
            tap.requests(data)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def fetched(tap: ConnectionTap, records: bytes) -> None:
    """Read the input, with these records in the response."""
    tap.requests(sent(FETCH, 12, FetchRequest(isolation_level=1)))
    data = [PartitionData(0, high_watermark=9, records=memoryview(records))]
    response = FetchResponse(responses=[FetchableTopicResponse("orders", partitions=data)])
    tap.responses(b"".join(response_frame(FETCH, 12, 0, response)))


def beaten(tap: ConnectionTap, epoch: int) -> None:
    """Send a heartbeat of the KIP-848 protocol, which returns the epoch of the member."""
    tap.requests(sent(CONSUMER_GROUP_HEARTBEAT, 0, ConsumerGroupHeartbeatRequest("g", "m")))
    response = ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=epoch)
    tap.responses(b"".join(response_frame(CONSUMER_GROUP_HEARTBEAT, 0, 0, response)))


def test_requests_that_no_story_needs_are_not_kept(wiretap, tap):
    fetched(tap, b"")
    fetched(tap, encode_batch([Record(0, 0, b"k", b"v", ())]))
    for epoch in (3, 3, 4):
        beaten(tap, epoch)
    assert [(each.api, each.generation) for each in wiretap.calls] == [
        (names.FETCH, -1),
        (names.NEW_BEAT, 3),
        (names.NEW_BEAT, 4),
    ]


def test_kept_requests_are_bounded(wiretap, tap):
    count = 2000
    data = produce()
    per_call = kept_bytes(tap, data, count) / count
    assert len(wiretap.calls) == count
    assert per_call * CALLS_MAX < 32 << 20


@pytest.mark.parametrize(
    "begin",
    [b"\x00\x00\x00\x04\x00\x00\xff\xff", b"\x06\x00\x00\x00", b"\xff\xff\xff\xff"],
    ids=["not Kafka's", "100 MB", "4 GB"],
)
def test_connection_that_cannot_be_read_keeps_no_bytes(wiretap, begin):
    tap = ConnectionTap(wiretap, lambda: "1")
    tap.requests(begin)
    assert kept_bytes(tap, bytes(1 << 20), 8) < 1 << 20


def test_bytes_that_are_not_kafkas_pass_unread(wiretap, tap):
    assert tap.requests(b"\x00\x00\x00\x04\x00\x00\xff\xff") == (Act.FORWARD, b"")
    assert tap.requests(produce()) == (Act.FORWARD, b"")
    assert not wiretap.calls


@pytest.mark.parametrize(
    ("process", "number", "expected"),
    [("1", 1, True), ("1b", 1, True), ("11", 1, False), ("11c", 11, True), ("1.26", 1, True)],
)
def test_process_belongs_to_the_instance_of_its_number(process, number, expected):
    assert is_of(process, number) is expected
