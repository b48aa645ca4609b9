"""Permissions of a transaction, each removed at each of its steps, in both protocol versions.

No request hangs, and no data of the transaction becomes visible. It can be aborted or times out,
``read_committed`` consumers continue, and a producer with the permission again starts a new
transaction.
"""

from __future__ import annotations

import pytest

from barnabas.broker.security.acls.operations import Operation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import (
    ADD_OFFSETS_TO_TXN,
    AddOffsetsToTxnRequest,
)
from barnabas.protocol.messages.end_txn import END_TXN
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from tests.broker.committed_reader import committed_records
from tests.broker.data_plane import Wire
from tests.broker.raw_producer import TIMEOUT_MS, RawProducer
from tests.broker.security.changing_rights import (
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    controlled_broker,
    right,
    topic_of,
)
from tests.requests import codes_of, commit_in_transaction_request, fetch_offsets_request
from tests.waiting import wait_until

CLASSIC, IMPLICIT = 11, 12
RIGHTS = {
    "write the id": right(Operation.WRITE, TRANSACTIONAL_ID, "id"),
    "write the topic": right(Operation.WRITE, TOPIC, "out"),
    "read the group": right(Operation.READ, GROUP, "g"),
    "read the source": right(Operation.READ, TOPIC, "in"),
}
READER = (right(Operation.READ, TOPIC, "out"), right(Operation.DESCRIBE, GROUP, "g"))
ID, OUT, GROUP_CODE, IN = (
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
STEPS = ("init", "write", "add offsets", "commit offsets", "end")
NEEDED = {
    ("init", "write the id"): ID,
    ("write", "write the id"): ID,
    ("write", "write the topic"): OUT,
    ("add offsets", "write the id"): ID,
    ("add offsets", "read the group"): GROUP_CODE,
    ("commit offsets", "write the id"): ID,
    ("commit offsets", "read the group"): GROUP_CODE,
    ("commit offsets", "read the source"): IN,
    ("end", "write the id"): ID,
}
"""Permission that each step needs, and its error without it."""


class Unborn(RawProducer):
    """A producer that gets its id when the test says so."""

    def init(self) -> None:
        """Start without a producer."""


class Transaction:
    """One transaction that consumes, produces and commits what it has consumed, step by step."""

    def __init__(self, wire: Wire, version: int) -> None:
        self._wire = wire
        self.producer = Unborn(wire, "id", version)

    def do(self, step, topic):
        """Take a step; returns the error, if any."""
        return getattr(self, step.replace(" ", "_"))(topic)

    def init(self, _topic):
        answer = self._wire.ask(INIT_PRODUCER_ID, InitProducerIdRequest("id", TIMEOUT_MS), 4)
        self.producer.producer_id, self.producer.epoch = answer.producer_id, answer.producer_epoch
        return answer.error_code

    def write(self, topic):
        code = self.producer.add(topic, 0)
        return code or self.producer.send(topic, b"half").error_code

    def add_offsets(self, _topic):
        if not self.producer.is_classic:
            return 0  # The commit adds them; the request itself is tested with the others.
        request = AddOffsetsToTxnRequest("id", self.producer.producer_id, self.producer.epoch, "g")
        return self._wire.ask(ADD_OFFSETS_TO_TXN, request, 3).error_code

    def commit_offsets(self, _topic):
        identity = self.producer.producer_id, self.producer.epoch
        request = commit_in_transaction_request("id", "g", identity, {("in", 0): 7})
        version = 4 if self.producer.is_classic else 5
        return codes_of(self._wire.ask(TXN_OFFSET_COMMIT, request, version))[0]

    def end(self, _topic, *, commit=True):
        request = self.producer.end_request(commit=commit)
        answer = self._wire.ask(END_TXN, request, 4 if self.producer.is_classic else 5)
        return answer.error_code


def committed_offset(wire):
    request = fetch_offsets_request("g", stable=True)
    (found,) = wire.ask(OFFSET_FETCH, request, 9).groups
    assert not found.error_code
    return [each.committed_offset for topic in found.topics for each in topic.partitions]


def committed(wire, topic):
    """The values that readers of committed records see."""
    seen, position = [], 0
    while position < wire.fetch_one(topic, position, isolation=1).last_stable_offset:
        data = wire.fetch_one(topic, position, isolation=1)
        more, position = committed_records(data, position)
        seen += [each.value for each in more]
    return seen


def is_held_up(wire, topic):
    """Whether readers of committed records wait for something."""
    data = wire.fetch_one(topic, 0, isolation=1)
    return data.last_stable_offset < data.high_watermark


@pytest.mark.parametrize("lost", RIGHTS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("version", [CLASSIC, IMPLICIT])
def test_a_right_is_lost_in_front_of_a_step(version, step, lost):
    acls = (*RIGHTS.values(), *READER)
    with controlled_broker(*acls) as (broker, rights), Wire(broker.address) as wire:
        topic_of(broker, "in")
        topic = topic_of(broker, "out")
        for kind, name in ((0, "g"), (1, "id")):
            wire.ask(FIND_COORDINATOR, FindCoordinatorRequest(name, kind), 3)
        transaction = Transaction(wire, version)
        for before in STEPS[: STEPS.index(step)]:
            assert transaction.do(before, topic) == 0, before
        # READ of the source allows DESCRIBE, which committed offsets are shown by.
        rights.give(right(Operation.DESCRIBE, TOPIC, "in"))
        rights.take(RIGHTS[lost])
        left = STEPS[STEPS.index(step) :]
        needing = [each for each in left if (each, lost) in NEEDED]
        if version == IMPLICIT and "add offsets" in needing:
            needing.remove("add offsets")  # The commit asks for the same.
        denied = needing[0] if needing else None
        for each in left:
            code = transaction.do(each, topic)
            assert code == (NEEDED[each, lost] if each == denied else 0), each
            if each == denied:
                break
        if denied is None:
            assert (committed(wire, topic), committed_offset(wire)) == ([b"half"], [7])
        else:
            _check_that_nothing_is_left(broker, wire, topic, transaction, rights, lost)


def _check_that_nothing_is_left(broker, wire, topic, transaction, rights, lost):
    """Abort the transaction, as far as permitted, and start a new one."""
    code = transaction.end(topic, commit=False)
    if lost == "write the id":
        assert code == ID
    else:
        assert code in {0, ErrorCode.INVALID_TXN_STATE}, "there may be none yet"
    if _is_open(broker):
        assert lost == "write the id"
        broker.clock.advance(milliseconds=TIMEOUT_MS + 1)
    wait_until(lambda: not _is_open(broker), "the transaction is over")
    wait_until(lambda: not is_held_up(wire, topic), "readers of committed records go on")
    assert (committed(wire, topic), committed_offset(wire)) == ([], [])
    rights.give(RIGHTS[lost])
    again = Transaction(wire, transaction.producer.version)
    for step in STEPS:
        assert again.do(step, topic) == 0, step
    assert (committed(wire, topic), committed_offset(wire)) == ([b"half"], [7])


def _is_open(broker):
    transactions = broker.server.transactions

    def look():
        return None if transactions.refusal("id") else transactions.transaction("id")

    found = broker.call(look)
    return found is not None and bool(found.partitions)
