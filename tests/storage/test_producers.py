"""The producer state: every state against every batch, Kafka's own logs, and a naive model."""

import itertools
import struct
from typing import NamedTuple

import pytest
from crc32c import crc32c

from barnabas.protocol.record_decoding import read_marker as decode_marker
from barnabas.protocol.records import MAX_SEQUENCE, BatchHeader, increment_sequence, iterate_batches
from barnabas.storage.log.index import AbortedTransaction, TransactionIndex
from barnabas.storage.log.producer_entry import CachedBatch, ProducerRow
from barnabas.storage.log.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from barnabas.storage.log.producers import ProducerState
from tests.storage import golden

PRODUCER = 7
EPOCH = 5
DELTA = 9  # batches of ten records unless a test says otherwise


def batch(sequence, *, producer=PRODUCER, epoch=EPOCH, delta=DELTA, offset=0, transactional=False,
          timestamp=1000):  # fmt: skip
    attributes = 0x10 if transactional else 0
    return BatchHeader(
        offset, 100, 0, 2, 0, attributes, delta, timestamp, timestamp, producer, epoch, sequence,
        delta + 1,
    )  # fmt: skip


def appended(state, *headers, now_ms=1000):
    """Append batches one after the other, from offset 1000 on."""
    offset = 1000
    for header in headers:
        state.update(header._replace(base_offset=offset), now_ms)
        offset += header.last_offset_delta + 1
    return state


def marker(state, *, epoch=EPOCH, coordinator=1, commit=True, offset=5000, producer=PRODUCER,
           now_ms=1000):  # fmt: skip
    return state.end_transaction(producer, epoch, coordinator, commit, offset, 1000, now_ms)


# --------------------------------------------------------------- the table, every state and batch


class Situation(NamedTuple):
    """One cell: what the partition knows, and what arrives."""

    state: str
    epoch: int
    sequence: int
    delta: int
    transactional: bool
    version: int
    lowest: int | None


def sequences_of(count, start=0):
    return [increment_sequence(start, 10 * index) for index in range(count)]


# Sequences at which the batches of ten records begin that each state has seen, in its epoch.
STATES = {
    "unknown": None,
    "marker only": [],
    "marker raised the epoch": [],
    "one batch": sequences_of(1),
    "five batches": sequences_of(5),
    "seven batches": sequences_of(7),
    "ends at the last sequence": sequences_of(2, MAX_SEQUENCE - 19),
    "straddles the wrap": sequences_of(2, MAX_SEQUENCE - 14),
    "began anywhere": sequences_of(2, 500),
    "open transaction": sequences_of(2),
    "ended transaction": sequences_of(2),
}


def build(name):
    state = ProducerState()
    seen = STATES[name]
    if name == "marker only":
        marker(state)
    elif name == "marker raised the epoch":
        appended(state, batch(0, epoch=EPOCH - 1), batch(10, epoch=EPOCH - 1))
        marker(state)
    elif seen is not None:
        in_transaction = name in ("open transaction", "ended transaction")
        appended(state, *[batch(s, transactional=in_transaction) for s in seen])
        if name == "ended transaction":
            marker(state)
    return state


SEQUENCES = sorted({
    0, 1, 5, 9, 10, 20, 30, 40, 50, 60, 70, 71, 500, 510, 520,
    MAX_SEQUENCE - 19, MAX_SEQUENCE - 14, MAX_SEQUENCE - 9, MAX_SEQUENCE - 4, MAX_SEQUENCE, 4, 14,
})  # fmt: skip

SITUATIONS = [
    Situation(*cell)
    for cell in itertools.product(
        STATES,
        (EPOCH - 1, EPOCH, EPOCH + 1),
        SEQUENCES,
        (0, DELTA),
        (False, True),
        (0, 2),
        (None, 0, 30),
    )
]


def is_cached(s: Situation):
    recent = (STATES[s.state] or [])[-5:]
    return s.epoch == EPOCH and s.delta == DELTA and s.sequence in recent


def last_sequence(s: Situation):
    seen = STATES[s.state]
    return increment_sequence(seen[-1], DELTA) if seen else -1


# Kafka's rules as a table (S1 to S9, P4): the first row that applies decides.
ROWS = [
    ("a cached batch again", is_cached, "duplicate"),
    ("old epoch", lambda s: STATES[s.state] is not None and s.epoch < EPOCH, 47),
    (
        "generation 2 begins a transaction at 0",
        lambda s: s.version == 2 and not STATES[s.state] and s.sequence != 0,
        45,
    ),
    ("a lower one must come first", lambda s: s.lowest is not None and s.sequence > s.lowest, 45),
    ("unknown producer", lambda s: STATES[s.state] is None, 0),
    ("new epoch at 0", lambda s: s.epoch > EPOCH and s.sequence == 0, "transaction?"),
    ("new epoch elsewhere", lambda s: s.epoch > EPOCH, 45),
    ("no batch since the marker", lambda s: not STATES[s.state] and s.sequence == 0, 0),
    ("no batch since the marker, elsewhere", lambda s: not STATES[s.state], 45),
    ("in sequence", lambda s: s.sequence == last_sequence(s) + 1, "transaction?"),
    ("wrap", lambda s: last_sequence(s) == MAX_SEQUENCE and s.sequence == 0, "transaction?"),
    ("gap, or too old to know", lambda s: True, 45),
]


def expected_of(s: Situation):
    row, _, result = next(row for row in ROWS if row[1](s))
    if result == "transaction?":
        result = 48 if s.state == "open transaction" and not s.transactional else 0  # P4
    return row, result


def snapshot_of(state):
    """Encode all entries from scratch: an entry's cached bytes would hide a change."""
    for entry in state.entries():
        entry.encoded = None
    return encode_snapshot(state)


def test_every_state_against_every_batch():
    rows_seen = set()
    states = {name: build(name) for name in STATES}
    snapshots = {name: snapshot_of(state) for name, state in states.items()}
    for s in SITUATIONS:
        header = batch(s.sequence, epoch=s.epoch, delta=s.delta, transactional=s.transactional)
        decision = states[s.state].check(
            header, transaction_version=s.version, lowest_sequence=s.lowest
        )
        row, result = expected_of(s)
        rows_seen.add(row)
        if result == "duplicate":
            index = STATES[s.state].index(s.sequence)
            assert decision.error == 0, (row, s)
            assert decision.duplicate.base_offset == 1000 + 10 * index, (row, s)
            assert decision.duplicate.first_sequence == s.sequence, (row, s)
            assert decision.duplicate.timestamp == 1000
        else:
            assert decision == (result, None), (row, s)
    assert rows_seen == {row for row, _, _ in ROWS}, "a row that no situation reaches"
    # S5: no check has changed anything.
    assert {name: snapshot_of(state) for name, state in states.items()} == snapshots


def test_the_wire_never_sees_46_or_59():
    """S11: both mean data loss or a dead producer to clients."""
    states = {name: build(name) for name in STATES}
    errors = set()
    for s in SITUATIONS:
        header = batch(s.sequence, epoch=s.epoch, delta=s.delta, transactional=s.transactional)
        decision = states[s.state].check(
            header, transaction_version=s.version, lowest_sequence=s.lowest
        )
        errors.add(decision.error)
    assert errors == {0, 45, 47, 48}


MARKER_CELLS = list(itertools.product(STATES, (4, 5, 6, 32767), (-1, 0, 1, 2), (0, 1, 2)))


def test_every_state_against_every_marker():
    for name, epoch, coordinator, version in MARKER_CELLS:
        state = build(name)
        before = encode_snapshot(state)
        known = STATES[name] is not None
        seen_marker = "marker" in name or name == "ended transaction"
        if not known:
            expected = 0
        elif version < 2:
            expected = 47 if epoch < EPOCH else 0
        elif epoch > EPOCH or (epoch == EPOCH and name != "open transaction"):
            expected = 0
        else:
            expected = 47
        if expected == 0 and seen_marker and coordinator < 1:
            expected = 52
        found = state.check_marker(PRODUCER, epoch, coordinator, version)
        assert found == expected, (name, epoch, coordinator, version)
        assert snapshot_of(state) == before, "M3: a refused marker leaves no trace"


def test_a_recovery_marker_at_the_largest_epoch_ends_an_open_transaction():
    state = appended(ProducerState(), batch(0, epoch=32767, transactional=True))
    assert state.check_marker(PRODUCER, 32767, 0, 2) == 0


@pytest.mark.parametrize(("epoch", "expected"), [(4, 47), (5, 0), (6, 0)])
def test_a_coordinators_batches_are_judged_by_epoch_alone(epoch, expected):
    assert build("seven batches").check_epoch(PRODUCER, epoch) == expected
    assert ProducerState().check_epoch(PRODUCER, epoch) == 0


# -------------------------------------------------------------------------------- S1 to S12 by name


def accepts(state, header):
    return state.check(header) == (0, None)


def fields(completed):
    """Producer, first and last offset, last stable offset, whether it was aborted."""
    return (
        completed.producer_id,
        completed.first_offset,
        completed.last_offset,
        completed.last_stable_offset,
        completed.aborted,
    )


def send(state, header, offset=None, now_ms=1000, **options):
    """Check, and append if accepted; answers the error, or the offset."""
    decision = state.check(header, **options)
    if decision.error:
        return -decision.error
    if decision.duplicate is not None:
        return decision.duplicate.base_offset
    state.update(header._replace(base_offset=offset), now_ms)
    return offset


def test_s4_each_of_the_last_five_batches_is_answered_with_its_offset_also_after_a_restart():
    state = build("seven batches")
    restarted = decode_snapshot(encode_snapshot(state), append_time_ms=0)
    for state_after in (state, restarted):
        answers = [send(state_after, batch(10 * index)) for index in range(7)]
        assert answers == [-45, -45, 1020, 1030, 1040, 1050, 1060]


def test_a_resplit_batch_is_not_a_duplicate():
    state = build("five batches")
    assert send(state, batch(40, delta=4)) == -45
    assert send(state, batch(30, delta=19)) == -45


def test_s6_after_a_gap_the_missing_batch_and_then_the_refused_one_succeed():
    state = build("one batch")
    assert send(state, batch(20), 1020) == -45
    assert send(state, batch(10), 1010) == 1010
    assert send(state, batch(20), 1020) == 1020


def test_s7_sequences_wrap_between_batches_and_inside_one():
    state = ProducerState()
    assert send(state, batch(MAX_SEQUENCE - 1, delta=0), 0) == 0
    assert send(state, batch(MAX_SEQUENCE, delta=0), 1) == 1
    assert send(state, batch(0, delta=0), 2) == 2
    assert send(state, batch(1, delta=0), 3) == 3
    inside = ProducerState()
    assert send(inside, batch(MAX_SEQUENCE - 1, delta=3), 0) == 0
    assert send(inside, batch(3, delta=0), 4) == -45
    assert send(inside, batch(2, delta=0), 4) == 4
    assert send(inside, batch(MAX_SEQUENCE - 1, delta=3), 9) == 0
    assert inside.entry(PRODUCER).batches[0].first_sequence == MAX_SEQUENCE - 1


def test_s8_a_new_epoch_is_accepted_once_and_fences_the_old_one():
    state = build("five batches")
    assert send(state, batch(0, epoch=EPOCH + 1), 1050) == 1050
    assert send(state, batch(50)) == -47
    assert send(state, batch(40)) == -47, "a duplicate of a fenced epoch is fenced as well"
    assert send(state, batch(0, epoch=EPOCH + 1), 1060) == 1050
    assert state.entry(PRODUCER).batches == [CachedBatch(9, 1059, 9, 1000)]


def test_s9_expired_producer_continues_with_its_next_sequence():
    state = build("five batches")
    assert state.expire(now_ms=1000 + 100, expiration_ms=100) == 1
    assert len(state) == 0
    assert send(state, batch(50), transaction_version=2) == -45
    assert send(state, batch(50), 2000) == 2000


def test_s12_batches_in_flight_are_judged_against_those_before_them():
    state = ProducerState()
    assert send(state, batch(0), 0) == 0
    assert send(state, batch(20), 10) == -45
    assert send(state, batch(10), 10) == 10
    assert send(state, batch(30), 20) == -45
    assert send(state, batch(20), 20) == 20


def test_producers_do_not_disturb_each_other():
    state = build("five batches")
    assert send(state, batch(0, producer=8, epoch=0), 2000) == 2000
    assert send(state, batch(50), 2010) == 2010
    assert send(state, batch(10, producer=8, epoch=0), 2020) == 2020


# ------------------------------------------------------------------------------------ transactions


def test_a_transaction_holds_back_the_stable_offset_until_its_marker_is_durable():
    state = ProducerState()
    assert state.last_stable_offset(0) == 0
    assert state.first_unstable_offset(0) is None
    send(state, batch(0, transactional=True), 10)
    send(state, batch(10, transactional=True), 20)
    assert state.first_unstable_offset(30) == 10
    assert state.last_stable_offset(30) == 10
    assert state.last_stable_offset(5) == 5
    assert state.has_open_transaction(PRODUCER)
    completed = marker(state, commit=False, offset=30)
    assert fields(completed) == (PRODUCER, 10, 30, 31, True)
    assert not state.has_open_transaction(PRODUCER)
    assert not state.has_open_transaction(99)
    assert state.last_stable_offset(30) == 10, "the marker is not durable yet"
    assert state.last_stable_offset(31) == 31
    assert state.last_stable_offset(31) == 31


def test_the_oldest_of_several_transactions_counts():
    state = ProducerState()
    for producer, offset in ((1, 0), (2, 10), (3, 20)):
        send(state, batch(0, producer=producer, transactional=True), offset)
    assert state.last_stable_offset(30) == 0
    second = marker(state, producer=2, offset=30)
    assert (second.aborted, second.last_stable_offset) == (False, 0)
    assert state.last_stable_offset(31) == 0
    first = marker(state, producer=1, offset=31)
    assert first.last_stable_offset == 20
    assert state.last_stable_offset(31) == 0, "the marker at 31 is not below 31"
    assert state.last_stable_offset(32) == 20
    third = marker(state, producer=3, offset=32)
    assert third.last_stable_offset == 33
    assert state.first_unstable_offset(33) is None


def test_a_decided_and_an_open_transaction_whichever_is_older():
    for order in ((1, 2), (2, 1)):
        state = ProducerState()
        send(state, batch(0, producer=order[0], transactional=True), 0)
        send(state, batch(0, producer=order[1], transactional=True), 10)
        marker(state, producer=1, offset=20)
        assert state.last_stable_offset(20) == 0


def test_of_several_decided_transactions_the_one_that_began_first_counts():
    state = ProducerState()
    for producer, offset in ((1, 0), (2, 10)):
        send(state, batch(0, producer=producer, transactional=True), offset)
    marker(state, producer=2, offset=20)
    marker(state, producer=1, offset=21)
    assert state.last_stable_offset(20) == 0
    assert state.last_stable_offset(21) == 0
    assert state.last_stable_offset(22) == 22


def test_a_marker_without_data_changes_epochs_only():
    state = ProducerState()
    assert marker(state, coordinator=4) is None
    assert state.last_stable_offset(6000) == 6000
    assert state.producers() == [ProducerRow(PRODUCER, EPOCH, -1, 1000, 4, -1)]
    assert marker(state, epoch=EPOCH + 1) is None
    assert send(state, batch(0)) == -47


def test_a_marker_keeps_the_window_of_its_epoch_and_empties_it_for_a_new_one():
    state = build("ended transaction")
    assert send(state, batch(10)) == 1010
    assert send(state, batch(20), 6000) == 6000
    marker(state, epoch=EPOCH + 1)
    assert state.entry(PRODUCER).batches == []
    assert send(state, batch(30, epoch=EPOCH + 1)) == -45
    assert send(state, batch(0, epoch=EPOCH + 1), 6020) == 6020


def test_a_transaction_starts_with_its_first_batch_and_only_one_is_open():
    state = ProducerState()
    send(state, batch(0), 0)
    send(state, batch(10, transactional=True), 10)
    send(state, batch(20, transactional=True), 20)
    assert state.producers()[0].transaction_first_offset == 10
    assert send(state, batch(30)) == -48


# ------------------------------------------------------------------------------------------ expiry


def test_expiry_goes_by_the_brokers_clock_and_spares_open_transactions():
    state = ProducerState()
    state.update(batch(0, producer=1, timestamp=0), 1000)  # a client's clock in 1970
    state.update(batch(0, producer=2, timestamp=2**60, offset=10), 1000)  # and one far ahead
    state.update(batch(0, producer=3, transactional=True, offset=20), 1000)
    state.update(batch(0, producer=4, offset=30), 1500)
    assert state.expire(1099, 100) == 0
    assert state.expire(1100, 100) == 2
    assert [row.producer_id for row in state.producers()] == [3, 4]
    marker(state, producer=3, offset=40, now_ms=1600)
    assert state.expire(1600, 100) == 1
    assert state.expire(1700, 100) == 1
    assert len(state) == 0


def test_an_append_or_a_marker_keeps_a_producer_alive():
    state = appended(ProducerState(), batch(0), now_ms=1000)
    state.update(batch(0, producer=8, offset=10), 1001)
    state.update(batch(10, offset=20), 2000)
    assert state.expire(2000, 100) == 1
    marker(state, now_ms=3000)
    assert state.expire(3099, 100) == 0


# ------------------------------------------------------------------------------------ Kafka's logs


def replay(partition, up_to=None):
    """State and aborted transactions after the batches of Kafka's log, up to an offset."""
    state, aborted = ProducerState(), {}
    for base_offset, log in golden.segments(partition):
        index = aborted[base_offset] = TransactionIndex()
        for position, header in iterate_batches(log):
            if header.producer_id < 0 or (up_to is not None and header.base_offset >= up_to):
                continue
            if not header.is_control:
                state.update(header, 0)
                continue
            end = decode_marker(log[position : position + header.size])
            completed = state.end_transaction(
                header.producer_id, header.producer_epoch, end.coordinator_epoch, end.commit,
                header.base_offset, header.max_timestamp, 0,
            )  # fmt: skip
            if completed is not None and completed.aborted:
                index.append(
                    AbortedTransaction(
                        completed.producer_id,
                        completed.first_offset,
                        completed.last_offset,
                        completed.last_stable_offset,
                    )
                )
    return state, aborted


SNAPSHOTS = sorted(path for path in golden.kafka_files() if path.endswith(".snapshot"))


@pytest.mark.parametrize("path", SNAPSHOTS)
def test_replaying_kafkas_log_gives_kafkas_snapshot(path):
    partition, _, name = path.partition("/")
    if partition == "__transaction_state-0":
        partition_state = ProducerState()
    else:
        partition_state, _ = replay(partition, up_to=int(name.removesuffix(".snapshot")))
    theirs = golden.kafka_files()[path]
    decoded = decode_snapshot(theirs, append_time_ms=0)
    assert sorted(decoded.producers()) == sorted(partition_state.producers())
    # Kafka's file has one time for a producer, and a marker's replaces its batch's.
    newest = [[tuple(b[:3]) for b in entry.batches[-1:]] for entry in partition_state.entries()]
    read = [[tuple(b[:3]) for b in entry.batches] for entry in decoded.entries()]
    assert sorted(newest) == sorted(read)
    # Kafka's part of what we write, entry for entry.
    ours = encode_snapshot(partition_state)
    count = int.from_bytes(theirs[6:10])
    assert len(theirs) == 10 + 46 * count
    assert ours[:2] == theirs[:2]
    entries = [{data[10 + 46 * i : 56 + 46 * i] for i in range(count)} for data in (ours, theirs)]
    assert entries[0] == entries[1]


@pytest.mark.parametrize("partition", golden.PARTITIONS)
def test_replaying_kafkas_log_gives_kafkas_transaction_index(partition):
    _, aborted = replay(partition)
    for base_offset, index in aborted.items():
        theirs = golden.kafka_files().get(f"{partition}/{base_offset:020}.txnindex", b"")
        assert index.encode() == theirs


def test_every_batch_of_kafkas_logs_is_accepted_and_then_known():
    for partition in golden.PARTITIONS:
        state = ProducerState()
        for _, log in golden.segments(partition):
            for position, header in iterate_batches(log):
                if header.is_control:
                    end = decode_marker(log[position : position + header.size])
                    assert state.check_marker(
                        header.producer_id, header.producer_epoch, end.coordinator_epoch
                    ) == 0  # fmt: skip
                    continue
                assert accepts(state, header)
                state.update(header, 0)
                assert state.check(header).duplicate.base_offset == header.base_offset


# ---------------------------------------------------------------------------------------- snapshots


def busy_state():
    state = ProducerState()
    offset = 0
    for producer in range(20):
        for index in range(producer % 8):
            header = batch(index * 10, producer=producer, offset=offset, timestamp=offset * 3,
                           transactional=producer % 3 == 0)  # fmt: skip
            state.update(header, 5000 + offset)
            offset += 10
        if producer % 2:
            marker(state, producer=producer, offset=offset, coordinator=producer, now_ms=offset,
                   epoch=EPOCH + producer // 10)  # fmt: skip
            offset += 1
    return state


def everything(state):
    """All that can be known of a state."""
    return (
        [(entry.row, list(entry.batches), entry.append_time_ms) for entry in state.entries()],
        state.first_unstable_offset(1 << 60),
        dict(state._open),
    )


def test_a_snapshot_brings_back_the_live_state():
    state = busy_state()
    state.first_unstable_offset(1 << 60)  # a snapshot knows no undurable markers
    foreign = sealed(encode_snapshot(state)[6 : 10 + 46 * len(state)])
    without_batches = decode_snapshot(foreign, append_time_ms=0).producers()
    assert sorted(without_batches) == sorted(state.producers())
    again = decode_snapshot(encode_snapshot(state), append_time_ms=-1)
    assert sorted(everything(again)[0]) == sorted(everything(state)[0])
    assert everything(again)[1:] == everything(state)[1:]
    assert list(again._open) == sorted(again._open)
    times = [entry.append_time_ms for entry in again.entries()]
    assert times == sorted(times)


def test_the_same_state_gives_the_same_decisions_after_a_snapshot():
    state = busy_state()
    again = decode_snapshot(encode_snapshot(state), append_time_ms=-1)
    for producer, sequence, epoch, transactional in itertools.product(
        range(21), range(0, 90, 5), (4, 5, 6), (False, True)
    ):
        header = batch(sequence, producer=producer, epoch=epoch, transactional=transactional)
        assert state.check(header) == again.check(header)


def test_a_second_snapshot_knows_of_every_change_since_the_first():
    changes = [
        lambda state: state.update(batch(70, offset=2000), 1000),
        lambda state: state.update(batch(0, epoch=EPOCH + 1, offset=2000), 1000),
        lambda state: state.update(batch(70, transactional=True, offset=2000), 1000),
        lambda state: state.update(batch(70, offset=2000), 9999),
        marker,
        lambda state: marker(state, epoch=EPOCH + 1),
        lambda state: marker(state, coordinator=9),
        lambda state: state.expire(1 << 40, 1),
        lambda state: state.update(batch(0, producer=99, offset=2000), 1000),
    ]
    for change in changes:
        state, fresh = build("seven batches"), build("seven batches")
        first = encode_snapshot(state)
        change(state)
        change(fresh)
        assert encode_snapshot(state) == encode_snapshot(fresh)
        assert encode_snapshot(state) != first


def test_every_flipped_bit_of_a_snapshot_is_noticed():
    data = encode_snapshot(busy_state())
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(bytes(damaged), append_time_ms=0)


def test_every_truncation_of_a_snapshot_is_noticed():
    data = encode_snapshot(busy_state())
    for end in range(len(data)):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(data[:end], append_time_ms=0)
        zero_filled = data[:end] + bytes(len(data) - end)
        if zero_filled != data:
            with pytest.raises(CorruptSnapshot):
                decode_snapshot(zero_filled, append_time_ms=0)


def sealed(body):
    return struct.pack(">hI", 1, crc32c(body)) + body


def test_sealed_nonsense_is_refused():
    body = encode_snapshot(build("seven batches"))[6:]
    assert decode_snapshot(sealed(body), append_time_ms=0).producers()
    for nonsense in (
        b"\xff\xff\xff\xff" + body[4:],  # a negative count
        b"\0\0\0\x09" + body[4:],  # more producers than bytes
        body[:-1],  # a trailer cut inside its last batch
        body[:-24],  # a trailer without its last batch
        body[: 4 + 46 + 12],  # a trailer cut inside an entry
    ):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(sealed(nonsense), append_time_ms=0)
    with pytest.raises(CorruptSnapshot, match="version 2"):
        decode_snapshot(b"\0\2" + sealed(body)[2:], append_time_ms=0)


def test_a_snapshot_without_our_trailer_knows_the_newest_batch():
    body = encode_snapshot(build("seven batches"))[6:]
    for foreign in (body[: 4 + 46], body[: 4 + 46] + b"\0" * 30, body[: 4 + 46] + b"short"):
        state = decode_snapshot(sealed(foreign), append_time_ms=77)
        entry = state.entry(PRODUCER)
        assert entry.batches == [CachedBatch(69, 1069, 9, 1000)]
        assert entry.append_time_ms == 77
        assert send(state, batch(60)) == 1060
        assert send(state, batch(70), 1070) == 1070


def test_an_empty_snapshot_is_kafkas():
    empty = golden.kafka_files()["__transaction_state-0/00000000000000000026.snapshot"]
    assert empty[6:] == b"\0\0\0\0"
    assert encode_snapshot(ProducerState())[6:10] == empty[6:]
    assert len(decode_snapshot(empty, append_time_ms=0)) == 0
