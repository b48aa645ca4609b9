"""Doctored logs of transactions, each of which contradicts one invariant; sound ones, none."""

from __future__ import annotations

import pytest

from barnabas.broker.coordination.shard import java_hash
from barnabas.broker.metadata.topic_names import TRANSACTION_STATE
from barnabas.coordinator.transactions.state import State, TopicPartition, Transaction, record_of
from barnabas.protocol.records import Record, control_batch, encode_batch
from tests.history.logs import Broken, TransactionHistory

KEY, PRODUCER, EPOCH = "id", 7, 0
PLACES = [("t", 0), ("t", 1)]
STATES = 2
"""Partitions of ``__transaction_state``."""
ONGOING = State.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = State.PREPARE_COMMIT, State.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = State.COMPLETE_COMMIT, State.COMPLETE_ABORT


def data(value="v", *, epoch=EPOCH, transactional=True):
    fields = {"producer_id": PRODUCER, "producer_epoch": epoch, "base_sequence": 0}
    records = [Record(0, 0, None, value.encode(), ())]
    return bytes(encode_batch(records, **fields, transactional=transactional))


def marker(*, commit=True, epoch=EPOCH, coordinator_epoch=1):
    return bytes(
        control_batch(
            PRODUCER, epoch, commit=commit, coordinator_epoch=coordinator_epoch, timestamp=0
        )
    )


def state(now, *, places=PLACES, epoch=EPOCH):
    partitions = (
        frozenset() if now is State.EMPTY else frozenset(TopicPartition(*p) for p in places)
    )
    found = Transaction(KEY, PRODUCER, epoch, 1000, now, partitions)
    key, value = record_of(found, 1).encode()
    return bytes(encode_batch([Record(0, 0, key, value, ())]))


def logs(states, *partitions, state_partition=None):
    """The states of one transactional id, and the batches of the partitions of a topic."""
    home = java_hash(KEY) % STATES if state_partition is None else state_partition
    found = {(TRANSACTION_STATE, index): [] for index in range(STATES)}
    found[TRANSACTION_STATE, home] = list(states)
    return TransactionHistory(found | dict(zip(PLACES, partitions, strict=False)))


def committed(*more):
    return [state(each) for each in (State.EMPTY, ONGOING, PREPARE_COMMIT, *more)]


def test_a_whole_transaction_is_sound():
    whole = [data(), marker()]
    found = logs(committed(COMPLETE_COMMIT), whole, whole)
    found.check_complete()
    assert found.values("t") == {0: [b"v"], 1: [b"v"]}
    # A marker that is sent again changes nothing.
    logs(committed(COMPLETE_COMMIT), [*whole, marker(coordinator_epoch=2)], whole).check_complete()
    aborted = [data(), marker(commit=False)]
    found = logs(
        [state(each) for each in (State.EMPTY, ONGOING, PREPARE_ABORT, COMPLETE_ABORT)],
        aborted,
        aborted,
    )
    found.check_complete()
    assert found.values("t") == {0: [], 1: []}


def test_open_or_decided_transaction_is_sound_and_not_complete():
    logs(committed()[:2], [data()], []).check()
    decided = logs(committed(), [data(), marker()], [data()])
    decided.check()
    with pytest.raises(Broken, match="C6"):
        decided.check_complete()
    with pytest.raises(Broken, match=r"stays PREPARE_COMMIT.*C6"):
        logs(committed(), [data(), marker()], [data(), marker()]).check_complete()


WHOLE = [data(), marker()]


@pytest.mark.parametrize(
    ("id", "states", "partitions"),
    [
        ("P2", committed(COMPLETE_COMMIT), [[data(epoch=1), data(epoch=0)]]),
        ("P3", committed(COMPLETE_COMMIT), [[data(epoch=0), data(epoch=1)]]),
        ("C1", [state(ONGOING)], [[]]),
        ("C1", [state(State.EMPTY), state(PREPARE_COMMIT)], [[]]),
        ("C1", [*committed()[:2], state(ONGOING, places=PLACES[:1])], [[]]),
        ("C2", [state(State.EMPTY, epoch=1), state(ONGOING)], [[]]),
        ("C3", [*committed()[:2], state(PREPARE_COMMIT, places=PLACES[:1])], [[]]),
        ("P1", [state(State.EMPTY)], [[data()]]),
        ("P1", [state(State.EMPTY), state(ONGOING, places=PLACES[1:])], [[data()]]),
        ("P1", committed(COMPLETE_COMMIT), [[*WHOLE, *WHOLE], WHOLE]),
        ("M1", committed(COMPLETE_COMMIT), [WHOLE, [data()]]),
        ("D5", committed(COMPLETE_COMMIT), [WHOLE, []]),
        ("C3", committed(COMPLETE_COMMIT), [[data(), marker(commit=False)], WHOLE]),
        ("C3", committed(COMPLETE_COMMIT), [[*WHOLE, marker(commit=False)], WHOLE]),
        ("C3", committed()[:2], [WHOLE]),
        (
            "M3",
            committed(COMPLETE_COMMIT),
            [[*WHOLE[:1], marker(coordinator_epoch=2), marker()], WHOLE],
        ),
    ],
)
def test_doctored_logs_are_found(id, states, partitions):
    with pytest.raises(Broken, match=id):
        logs(states, *partitions).check()


def test_a_record_in_the_wrong_partition_is_found():
    elsewhere = (java_hash(KEY) + 1) % STATES
    with pytest.raises(Broken, match=f"{KEY} is in"):
        logs(committed(), state_partition=elsewhere)


def test_a_marker_of_another_shape_is_found():
    fields = {"producer_id": PRODUCER, "producer_epoch": EPOCH, "base_sequence": 5}
    key = b"\0\0\0\1"
    record = Record(0, 0, key, b"\0\0\0\0\0\1", ())
    wrong = bytes(encode_batch([record], **fields, transactional=True, control=True))
    with pytest.raises(Broken, match="M6"):
        logs(committed(COMPLETE_COMMIT), [data(), wrong], WHOLE)
