"""Memory of batches after a retriable error."""

from __future__ import annotations

import pytest

from barnabas.broker.metadata.pending_retries import KEPT_S, PRODUCERS_MAX, RefusedBatches
from barnabas.protocol.records import MAX_SEQUENCE, BatchHeader, read_header
from barnabas.storage.log.producers import ProducerState
from tests.broker.data_plane import batch

PRODUCER = 7


def header(sequence: int, epoch: int = 0) -> BatchHeader:
    claim = {"producer_id": PRODUCER, "producer_epoch": epoch, "base_sequence": sequence}
    return read_header(batch(**claim))


def state(*placed: BatchHeader) -> ProducerState:
    producers = ProducerState()
    for number, each in enumerate(placed):
        producers.placed(each, number, 0, 0)
    return producers


def noted(*refused: tuple[int, int]) -> RefusedBatches:
    """Epochs and sequences, in the order in which they were refused."""
    batches = RefusedBatches()
    for epoch, sequence in refused:
        batches.note(PRODUCER, epoch, sequence, 0.0)
    return batches


@pytest.mark.parametrize(
    ("refused", "placed", "came", "is_held_back"),
    [
        ([(0, 3)], [], (0, 4), True),
        ([(0, 3)], [], (0, 3), False),
        ([(0, 3)], [], (0, 2), False),
        ([(0, 4), (0, 3)], [], (0, 4), True),
        ([(0, 3), (0, 4)], [], (0, 4), True),
        ([(0, 3)], [], (1, 4), False),
        ([(0, 3), (1, 0)], [], (1, 1), True),
        ([(1, 0), (0, 3)], [], (1, 1), True),
        ([(0, 3)], [(0, 2)], (0, 4), True),
        ([(0, 3)], [(0, 2)], (0, 3), False),
        ([(0, 3)], [(0, 3), (0, 4)], (0, 4), False),
        ([(0, 3)], [(0, 3)], (0, 4), False),
        ([(0, 3)], [(1, 0)], (0, 4), False),
        ([(0, MAX_SEQUENCE)], [], (0, 0), True),
        ([(0, 0)], [], (0, MAX_SEQUENCE), False),
    ],
)
def test_batches_after_refused_one_are_refused(refused, placed, came, is_held_back):
    known = state(*(header(sequence, epoch) for epoch, sequence in placed))
    epoch, sequence = came
    assert noted(*refused).holds_back(known, header(sequence, epoch)) is is_held_back


def test_record_is_dropped_after_refused_batch_arrives():
    batches = noted((0, 3))
    assert not batches.holds_back(state(header(2)), header(3))
    assert len(batches) == 1, "it may be refused again"
    assert not batches.holds_back(state(header(2), header(3)), header(4))
    assert len(batches) == 0


def test_refused_batch_record_expires():
    batches = noted((0, 3))
    batches.forget_old(KEPT_S - 1)
    assert batches.holds_back(state(), header(4))
    batches.forget_old(KEPT_S)
    assert not batches.holds_back(state(), header(4))


def test_refused_batch_records_are_limited():
    batches = noted((0, 3))
    for each in range(PRODUCERS_MAX):
        batches.note(1000 + each, 0, 0, 0.0)
    assert len(batches) == PRODUCERS_MAX
    assert not batches.holds_back(state(), header(4))
