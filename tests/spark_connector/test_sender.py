"""Produce in order and once, against a partition leader in memory that misbehaves by a script."""

import collections
import random

import pytest

from barnabas.broker.client.deadline import Deadline
from barnabas.broker.client.errors import Unreachable
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import Record, check_batch, encode_batch, increment_sequence
from barnabas.spark_connector.cluster.cluster import NotYet
from barnabas.spark_connector.cluster.requests import Identity
from barnabas.spark_connector.cluster.sender import IN_FLIGHT_MAX, REQUEST_BYTES, Sender
from barnabas.spark_connector.errors import (
    BrokerUnreachable,
    Fenced,
    RecordTooLarge,
    SinkError,
    TransactionLost,
)
from barnabas.spark_connector.rows.encoded import EncodedBatch

OK = ErrorCode.NONE
LEADERS = 2


class Leader:
    """A connection and the broker behind it: what is sent is handled when its answer is taken."""

    def __init__(self, cluster, node_id):
        self.cluster = cluster
        self.node_id = node_id
        self.name = f"leader {node_id}"
        self.waiting = collections.deque()
        self.is_open = True

    @property
    def in_flight(self):
        return len(self.waiting)

    def send(self, api, request, at_most):
        assert (api, at_most) == (PRODUCE, self.cluster.version)
        self.cluster.most_in_flight = max(self.cluster.most_in_flight, len(self.waiting) + 1)
        batches = {}
        for topic in request.topic_data:
            for data in topic.partition_data:
                assert data.index not in batches, "one batch of a partition in a request"
                batches[data.index] = bytes(data.records)
        self.cluster.largest = max(self.cluster.largest, sum(map(len, batches.values())))
        self.waiting.append(batches)
        if self.cluster.fault(self.node_id) == "lost request":
            self.waiting.pop()
            raise self.broken()

    def ask(self, api, request, at_most):
        assert not self.waiting, "answers are on their way"
        self.send(api, request, at_most)
        return self.receive(api)

    def receive(self, api):
        assert api is PRODUCE
        fault = self.cluster.fault(self.node_id)
        if fault == "lost answer":
            while self.waiting:  # It received them all, but no acknowledgement arrives.
                self.cluster.append_all(self.node_id, self.waiting.popleft())
            raise self.broken()
        if fault == "lost on the way":
            raise self.broken()
        batches = self.waiting.popleft()
        answers = []
        for partition, batch in batches.items():
            code = fault if isinstance(fault, ErrorCode) else None
            if code is None:
                code = self.cluster.append(self.node_id, partition, batch)
            answers.append(PartitionProduceResponse(partition, code))
        return ProduceResponse([TopicProduceResponse("t", partition_responses=answers)])

    def close(self):
        self.is_open = False
        self.waiting.clear()

    def broken(self):
        self.close()
        return Unreachable("broken on purpose")


class Leaders:
    """The part of a Cluster that a sender uses; partitions are led by `partition % LEADERS`."""

    request_timeout_ms = 1000

    def __init__(self, faults=(), version=12, timeout_ms=60_000):
        self.version = version
        self.timeout_ms = timeout_ms
        self.faults = collections.deque(faults)
        self.connections = {}
        self.logs = collections.defaultdict(list)
        self.last = {}
        self.most_in_flight = 0
        self.largest = 0
        self.moved = 0

    def fault(self, _node_id):
        return self.faults.popleft() if self.faults else None

    def append(self, node_id, partition, batch):
        if self.lead(partition) != node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        header = check_batch(batch)
        assert header.is_transactional
        state = self.last.setdefault(partition, collections.deque(maxlen=5))
        if (header.base_sequence, header.record_count) in state:
            return OK
        expected = increment_sequence(state[-1][0], state[-1][1]) if state else 0
        if header.base_sequence != expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        state.append((header.base_sequence, header.record_count))
        values = [r.value for r in iterate_records(batch, limit_bytes=1 << 24)]
        self.logs[partition] += values
        return OK

    def append_all(self, node_id, batches):
        for partition, batch in batches.items():
            self.append(node_id, partition, batch)

    def lead(self, partition):
        return (partition + self.moved) % LEADERS

    def leader(self, topic, partition, deadline):
        assert topic == "t"
        return self.lead(partition)

    def node(self, node_id, lane):
        assert lane == "data"
        connection = self.connections.get(node_id)
        if connection is None or not connection.is_open:
            connection = self.connections[node_id] = Leader(self, node_id)
        return connection

    def deadline(self):
        return Deadline(self.timeout_ms)

    def forget(self):
        pass

    def until(self, what, deadline, attempt):
        while True:
            try:
                return attempt()
            except (Unreachable, NotYet) as problem:
                if deadline.is_over:
                    raise BrokerUnreachable(str(problem)) from None


def batch(partition, number, size=20):
    record = Record(0, 1, None, b"%d:" % number + b"x" * size)
    return EncodedBatch("t", partition, 1, bytearray(encode_batch([record])))


def numbers(values):
    return [int(value.split(b":")[0]) for value in values]


def sender_of(leaders, add=None):
    return Sender(leaders, "id", Identity(1, 0), add)


def test_everything_arrives_in_order_with_five_requests_on_their_way():
    leaders = Leaders()
    sender = sender_of(leaders)
    for number in range(40):
        sender.send(batch(number % 4, number))
    sender.flush()
    for partition in range(4):
        assert numbers(leaders.logs[partition]) == list(range(partition, 40, 4))
    assert leaders.most_in_flight == IN_FLIGHT_MAX


def test_requests_are_bounded():
    leaders = Leaders()
    sender = sender_of(leaders)
    size = REQUEST_BYTES // 3
    for number in range(20):
        sender.send(batch(2 * number, number, size))
    sender.flush()
    assert leaders.largest <= REQUEST_BYTES
    assert sum(map(len, leaders.logs.values())) == 20


@pytest.mark.parametrize(
    "faults",
    [
        ["lost request"],
        ["lost answer"],
        [None, None, None, None, "lost answer"],
        [None] * 7 + ["lost request", "lost answer", "lost request"],
        [ErrorCode.NOT_ENOUGH_REPLICAS],
        [None] * 6 + [ErrorCode.NOT_LEADER_OR_FOLLOWER, "lost answer"],
        [None] * 5 + [ErrorCode.CONCURRENT_TRANSACTIONS] * 10,
    ],
    ids=range(7),
)
def test_transient_errors_lose_and_repeat_no_batch(faults):
    leaders = Leaders(faults)
    sender = sender_of(leaders)
    for number in range(40):
        sender.send(batch(number % 3, number))
    sender.flush()
    for partition in range(3):
        assert numbers(leaders.logs[partition]) == list(range(partition, 40, 3))
    assert not leaders.faults


def test_batch_lost_on_the_way_is_sent_again():
    leaders = Leaders([None] * 3 + ["lost on the way"])
    sender = sender_of(leaders)
    for number in range(3):
        sender.send(batch(0, number))
    sender.flush()
    assert numbers(leaders.logs[0]) == [0, 1, 2]
    assert not leaders.faults


def test_responses_for_a_sender_that_gave_up_are_ignored():
    leaders = Leaders()
    for number in range(IN_FLIGHT_MAX):
        batches = {5: b""}  # The sender would take it for the acknowledgement of its own request.
        leaders.node(0, "data").waiting.append(batches)
        sender = sender_of(leaders)
        leaders.last.clear()
        sender.send(batch(0, number))
        sender.flush()
    assert numbers(leaders.logs[0]) == list(range(IN_FLIGHT_MAX))


@pytest.mark.parametrize("seed", range(60))
def test_any_mixture_of_faults_changes_nothing(seed):
    print("seed", seed)
    draw = random.Random(seed)
    kinds = [None] * 6 + ["lost request", "lost answer", ErrorCode.REQUEST_TIMED_OUT]
    leaders = Leaders([draw.choice(kinds) for _ in range(80)])
    sender = sender_of(leaders)
    places = [draw.randrange(5) for _ in range(100)]
    for number, partition in enumerate(places):
        if draw.random() < 0.02:
            sender.flush()
            leaders.moved += 1
        sender.send(batch(partition, number))
    sender.flush()
    for partition in range(5):
        wanted = [number for number, place in enumerate(places) if place == partition]
        assert numbers(leaders.logs[partition]) == wanted


def test_a_new_leader_is_found():
    leaders = Leaders()
    sender = sender_of(leaders)
    for number in range(20):
        if number == 7:
            leaders.moved = 1
            leaders.last.update({})
        sender.send(batch(0, number))
    sender.flush()
    assert numbers(leaders.logs[0]) == list(range(20))


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, TransactionLost),
        (ErrorCode.INVALID_PRODUCER_EPOCH, Fenced),
        (ErrorCode.PRODUCER_FENCED, Fenced),
        (ErrorCode.INVALID_TXN_STATE, TransactionLost),
        (ErrorCode.TRANSACTION_ABORTABLE, TransactionLost),
        (ErrorCode.MESSAGE_TOO_LARGE, RecordTooLarge),
        (ErrorCode.INVALID_RECORD, SinkError),
    ],
    ids=lambda each: each.name if isinstance(each, ErrorCode) else None,
)
def test_permanent_error_is_raised_in_one_sentence(code, error):
    sender = sender_of(Leaders([None, code]))
    sender.send(batch(0, 0))
    with pytest.raises(error) as caught:
        sender.flush()
    assert "\n" not in str(caught.value)
    sender.settle()


def test_a_duplicate_is_a_success():
    sender = sender_of(Leaders([None, ErrorCode.DUPLICATE_SEQUENCE_NUMBER]))
    sender.send(batch(0, 0))
    sender.flush()


def test_sender_gives_up_after_its_timeout():
    sender = sender_of(Leaders([None] + [ErrorCode.REQUEST_TIMED_OUT] * 10**6, timeout_ms=1))
    sender.send(batch(0, 0))
    with pytest.raises(BrokerUnreachable):
        sender.flush()


def test_by_the_classic_protocol_partitions_are_named_once_ahead_of_their_data():
    added = []
    leaders = Leaders(version=11)
    sender = sender_of(leaders, added.append)
    for number in range(6):
        sender.send(batch(number % 2, number))
    sender.flush()
    assert sorted(added) == [[("t", 0)], [("t", 1)]]
    sender.begin_next(Identity(1, 0))
    sender.send(batch(0, 6))
    sender.flush()
    assert added[2:] == [[("t", 0)]]
    assert numbers(leaders.logs[0]) == [0, 2, 4, 6]


def test_a_new_epoch_counts_from_zero():
    leaders = Leaders()
    sender = sender_of(leaders)
    sender.send(batch(0, 0))
    sender.flush()
    leaders.last.clear()
    sender.begin_next(Identity(1, 1))
    sender.send(batch(0, 1))
    sender.flush()
    assert numbers(leaders.logs[0]) == [0, 1]
