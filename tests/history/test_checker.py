"""Doctored histories, each flagged with its anomaly and no other; sound ones with none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.history import anomalies as a
from tests.history.checker import check, lines
from tests.history.model import (
    END,
    FAILED,
    MOVED,
    POLL,
    REBALANCE,
    SEEK,
    SEND,
    TRANSACTION,
    UNCOMMITTED,
    UNKNOWN,
    History,
    OffsetCommit,
    Operation,
    PartitionEnd,
    Read,
    Write,
    as_of,
    load,
    save,
)

SECOND = 1_000_000_000


class Clock:
    """Operations that take a second each, one after the other; `at` overrides."""

    def __init__(self) -> None:
        self.history: History = []

    def _add(self, operation: Operation, at: tuple[float, float] | None) -> Operation:
        begin, end = at or (2 * len(self.history) + 1, 2 * len(self.history) + 2)
        asked = operation.kind == TRANSACTION and operation.outcome != FAILED
        completed = -1 if operation.outcome == UNKNOWN else int(end * SECOND)
        timed = replace(
            operation,
            invoked_ns=int(begin * SECOND),
            asked_ns=int((begin + end) / 2 * SECOND) if asked else -1,
            completed_ns=completed,
        )
        self.history.append(timed)
        return timed

    def transaction(self, process: str, wrote: str, at=None, **fields) -> None:
        """`wrote` is "value>partition@offset ..."; without an offset it is not known."""
        operation = Operation(TRANSACTION, process, writes=tuple(_writes(wrote)), **fields)
        self._add(operation, at)

    def send(self, process: str, wrote: str, at=None, **fields) -> None:
        self._add(Operation(SEND, process, writes=tuple(_writes(wrote)), **fields), at)

    def poll(self, process: str, read: str, at=None, **fields) -> None:
        self._add(Operation(POLL, process, reads=tuple(_reads(read)), **fields), at)

    def moved(self, process: str, reason: str = REBALANCE, partition: int = 0) -> None:
        self._add(Operation(MOVED, process, reason=reason, moved=(("t", partition),)), None)

    def end(self, *ends: tuple[int, int, int], **fields) -> None:
        at_end = tuple(PartitionEnd("t", *end) for end in ends)
        self._add(Operation(END, "final", ends=at_end, **fields), None)

    def found(self) -> set[str]:
        return check(self.history).anomalies


def _writes(text: str):
    for each in text.split():
        value, _, place = each.partition(">")
        partition, _, offset = place.partition("@")
        value, _, source = value.partition("=")
        yield Write("t", int(partition), value, int(offset or -1), source)


def _reads(text: str) -> list[Read]:
    parts = [each.partition("<") for each in text.split()]
    places = [(value, *place.split("@")) for value, _, place in parts]
    return [Read("t", int(partition), int(offset), value) for value, partition, offset in places]


def committed(*pairs: tuple[int, int], group: str = "g") -> tuple[OffsetCommit, ...]:
    return tuple(OffsetCommit(group, "t", partition, offset) for partition, offset in pairs)


@pytest.fixture
def clock() -> Clock:
    return Clock()


# -- sound histories -------------------------------------------------------------------------------


def test_nothing_is_wrong_with_an_empty_history(clock):
    assert clock.found() == set()


def test_a_sound_history(clock):
    """Committed, aborted, abandoned and unknown transactions, interleaved; two kinds of readers."""
    clock.transaction("p1", "a>0@0 b>1@0", producer="id")
    clock.transaction("p1", "c>0@3 d>1@2", producer="id", outcome=FAILED)
    clock.transaction("p2", "e>0@5 f>1@4", outcome=UNKNOWN)
    clock.transaction("p3", "g>0 h>1", outcome=UNKNOWN)
    clock.transaction("p4", "", outcome=FAILED)
    clock.send("p5", "i>0@9")
    clock.poll("r1", "a<0@0 b<1@0")
    clock.poll("r1", "e<0@5 f<1@4 i<0@9")
    clock.poll("r2", "b<1@0 a<0@0 e<0@5 i<0@9")
    everything = "a<0@0 c<0@3 e<0@5 g<0@7 i<0@9 b<1@0 d<1@2 f<1@4"
    clock.poll("r3", everything, isolation=UNCOMMITTED)
    clock.poll("r4", "b<1@0 f<1@4 a<0@0 e<0@5 i<0@9")
    clock.end((0, 10, 10), (1, 6, 6), readers=("r3", "r4"))
    assert clock.found() == set()


def test_an_unknown_transaction_of_which_nothing_was_seen(clock):
    clock.transaction("p1", "a>0@0 b>1@0", outcome=UNKNOWN)
    clock.transaction("p2", "c>0@2")
    clock.poll("r", "c<0@2")
    clock.end((0, 4, 4), (1, 2, 2))
    assert clock.found() == set()


def test_zombies_that_were_fenced(clock):
    """The zombie has the same id; its transaction failed, and its records stay in the log."""
    clock.transaction("zombie", "a>0@0 b>1@0", (1, 9), producer="id", outcome=FAILED)
    clock.transaction("heir", "c>0@2 d>1@2", (3, 5), producer="id")
    clock.poll("r", "c<0@2 d<1@2", (6, 7))
    clock.end((0, 4, 4), (1, 4, 4))
    assert clock.found() == set()


def test_interleaved_writers_are_normal(clock):
    """G0, and G1c by way of the order of writes: noted, not wrong."""
    clock.transaction("p1", "a>0@0 b>1@1", (1, 9))
    clock.transaction("p2", "c>0@1 d>1@0", (1, 4))
    clock.poll("r", "d<1@0 b<1@1 a<0@0 c<0@1", (10, 11))
    report = check(clock.history)
    assert report.anomalies == set()
    assert report.notes[a.NOTE_DIRTY_WRITE] == 1


def test_reading_who_wrote_behind_oneself_is_normal(clock):
    clock.transaction("p1", "a>0@0", (1, 9), reads=tuple(_reads("c<1@0")))
    clock.transaction("p2", "b>0@1 c>1@0", (2, 3))
    report = check(clock.history)
    assert report.anomalies == set()
    assert report.notes[a.NOTE_CIRCULAR_FLOW] == 1
    assert report.notes[a.NOTE_DIRTY_WRITE] == 0


def test_records_of_others_between_those_of_a_transaction_are_normal(clock):
    clock.transaction("p1", "a>0@0 c>0@2", (1, 5))
    clock.transaction("p2", "b>0@1", (2, 3))
    report = check(clock.history)
    assert report.anomalies == set()
    assert report.notes[a.NOTE_SEND_SKIP] == 1


def test_a_rebalance_explains_where_a_consumer_goes_on(clock):
    clock.send("p", "a>0@0 b>0@1 c>0@2 d>0@3")
    clock.poll("r0", "a<0@0 b<0@1 c<0@2 d<0@3")
    clock.poll("r", "a<0@0 b<0@1")
    clock.moved("r")
    clock.poll("r", "a<0@0")
    clock.moved("r", SEEK)
    clock.poll("r", "d<0@3")
    assert clock.found() == set()


def test_an_aborted_attempt_is_made_again(clock):
    """O6: the consumer goes back to what is committed, and its second attempt is the only one."""
    clock.send("source", "i>0@0 j>0@1")
    clock.transaction(
        "c#1",
        "x=i>1@0 y=j>1@1",
        reads=tuple(_reads("i<0@0 j<0@1")),
        commits=committed((0, 2)),
        outcome=FAILED,
    )
    clock.moved("c#1", SEEK)
    clock.transaction(
        "c#1",
        "z=i>1@3 w=j>1@4",
        reads=tuple(_reads("i<0@0 j<0@1")),
        commits=committed((0, 2)),
    )
    clock.poll("r", "z<1@3 w<1@4")
    clock.end((0, 2, 2), (1, 6, 6), commits=committed((0, 2)))
    assert clock.found() == set()


def test_offsets_of_an_unknown_transaction_without_outputs_may_be_either(clock):
    clock.send("source", "i>0@0")
    clock.transaction("c", "", commits=committed((0, 1)), outcome=UNKNOWN)
    clock.end((0, 1, 1), commits=committed((0, 1)))
    without = Clock()
    without.transaction("c", "", commits=committed((0, 1)), outcome=UNKNOWN)
    without.end((0, 1, 1), commits=committed((1, -1)))
    assert without.found() == set()
    # No known transformer has an output pending.
    clock.poll("r", "i<0@0")
    assert clock.found() == set()


def test_who_came_later_stands_later(clock):
    clock.transaction("p1", "a>0@0 b>1@9", (1, 3))
    clock.transaction("p2", "c>0@1", (4, 5))
    # Concurrent with both: writes where it likes.
    clock.transaction("p3", "d>0@5 e>1@0", (1, 6))
    assert clock.found() == set()


# -- doctored histories ----------------------------------------------------------------------------


def test_inconsistent_offsets(clock):
    clock.transaction("p", "a>0")
    clock.transaction("q", "b>0")
    clock.poll("r1", "a<0@0")
    clock.poll("r2", "b<0@0")
    assert clock.found() == {a.INCONSISTENT_OFFSETS}


def test_inconsistent_offsets_between_acknowledgement_and_reader(clock):
    clock.transaction("p", "a>0@0")
    clock.transaction("q", "b>0", outcome=UNKNOWN)
    clock.poll("r", "b<0@0", isolation=UNCOMMITTED)
    assert clock.found() == {a.INCONSISTENT_OFFSETS}


def test_incompatible_order(clock):
    """Known offsets prove duplicates: each reader saw each value once, at different offsets."""
    clock.transaction("p", "a>0", (1, 5))
    clock.transaction("q", "b>0", (1, 5))
    clock.poll("r1", "a<0@0 b<0@1", (6, 7))
    clock.poll("r2", "b<0@2 a<0@3", (6, 7))
    assert clock.found() == {a.INCOMPATIBLE_ORDER, a.DUPLICATE}


def test_duplicate(clock):
    clock.transaction("p", "a>0")
    clock.poll("r1", "a<0@0 a<0@3")
    assert clock.found() == {a.DUPLICATE}


def test_unwritten_read(clock):
    clock.poll("r", "a<0@0")
    assert clock.found() == {a.UNWRITTEN_READ}


def test_a_value_in_another_partition_is_unwritten(clock):
    clock.transaction("p", "a>0@0")
    clock.poll("r", "a<0@0")
    clock.poll("r", "a<1@0")
    assert clock.found() == {a.UNWRITTEN_READ}


@pytest.mark.parametrize("offset", ["", "@0"])
def test_aborted_read(clock, offset):
    clock.transaction("p", f"a>0{offset} b>1", outcome=FAILED)
    clock.poll("r", "a<0@0")
    clock.end((0, 2, 2), (1, 2, 2))
    assert clock.found() == {a.ABORTED_READ}


def test_aborted_read_by_a_transaction_that_was_aborted_itself(clock):
    clock.transaction("p", "a>0", outcome=FAILED)
    clock.transaction("q", "b>1", reads=tuple(_reads("a<0@0")), outcome=FAILED)
    assert clock.found() == {a.ABORTED_READ}


def test_early_read(clock):
    clock.transaction("p", "a>0", (1, 9))
    clock.poll("r", "a<0@0", (2, 3))
    assert clock.found() == {a.EARLY_READ}


def test_precommitted_read(clock):
    clock.transaction("p", "a>0", reads=tuple(_reads("a<0@0")))
    assert clock.found() == {a.PRECOMMITTED_READ}


def test_circular_information_flow(clock):
    clock.transaction("p", "a>0", (1, 9), reads=tuple(_reads("b<1@0")))
    clock.transaction("q", "b>1", (1, 9), reads=tuple(_reads("a<0@0")))
    assert clock.found() == {a.CIRCULAR_FLOW}


def test_circular_information_flow_through_three(clock):
    clock.transaction("p", "a>0", (1, 9), reads=tuple(_reads("b<1@0")))
    clock.transaction("q", "b>1", (1, 9), reads=tuple(_reads("c<2@0")))
    clock.transaction("r", "c>2", (1, 9), reads=tuple(_reads("a<0@0")))
    assert clock.found() == {a.CIRCULAR_FLOW}


def test_circular_flow_through_a_process(clock):
    """p reads, in its first operation, what it came to write later. Times do not tell."""
    clock.transaction("p", "a>0", (1, 9), reads=tuple(_reads("b<1@0")))
    clock.transaction("p", "b>1", (1, 9))
    assert clock.found() == {a.CIRCULAR_FLOW_PROCESS}


def test_circular_flow_through_real_time(clock):
    """q started when p was done; p read the write of q. That is an early read as well."""
    clock.transaction("p", "a>0", (1, 2), reads=tuple(_reads("b<1@0")))
    clock.transaction("q", "b>1", (3, 4))
    assert clock.found() == {a.CIRCULAR_FLOW_REALTIME, a.EARLY_READ}


def test_circular_flow_through_real_time_of_others(clock):
    clock.transaction("p", "a>0", (1, 2))
    clock.transaction("p", "x>0", (3, 9))
    clock.transaction("q", "b>1", (2.5, 9), reads=tuple(_reads("d<3@0")))
    clock.transaction("s", "d>3", (9.5, 12), reads=tuple(_reads("a<0@0")))
    assert clock.found() == {a.CIRCULAR_FLOW_REALTIME, a.EARLY_READ}


def test_dirty_write_against_real_time(clock):
    clock.transaction("p", "a>0@5", (1, 2))
    clock.transaction("q", "b>0@1", (3, 4))
    assert clock.found() == {a.DIRTY_WRITE_REALTIME}


def test_torn_transaction(clock):
    clock.transaction("p", "a>0@0 b>1@0")
    clock.transaction("q", "c>1@2")
    clock.poll("r", "a<0@0 c<1@2")
    clock.end((0, 2, 2), (1, 4, 4))
    assert clock.found() == {a.TORN_TRANSACTION}


def test_torn_transaction_whose_outcome_is_unknown(clock):
    clock.transaction("p", "a>0 b>1", outcome=UNKNOWN)
    clock.poll("r", "a<0@0")
    clock.end((0, 2, 2), (1, 2, 2))
    assert clock.found() == {a.TORN_TRANSACTION}


def test_torn_inside_a_partition(clock):
    clock.transaction("p", "a>0@0 b>0@1 c>0@2")
    clock.poll("r", "a<0@0 c<0@2")
    assert clock.found() == {a.TORN_TRANSACTION}


def test_lost_write(clock):
    clock.transaction("p", "a>0@0 b>1@0")
    clock.end((0, 2, 2), (1, 2, 2))
    assert clock.found() == {a.LOST_WRITE}


def test_lost_write_seen_without_an_end(clock):
    clock.send("p0", "z>0@0")
    clock.transaction("p", "a>0@2")
    clock.send("p1", "b>0@4")
    clock.poll("r", "z<0@0 b<0@4")
    assert clock.found() == {a.LOST_WRITE}


def test_lost_write_outside_of_transactions(clock):
    clock.send("p", "a>0")
    clock.end((0, 0, 0))
    assert clock.found() == {a.LOST_WRITE}


def test_an_acknowledged_record_of_a_send_without_an_outcome_is_lost(clock):
    clock.send("p", "a>0@0 b>0@1 c>0", outcome=UNKNOWN)
    clock.poll("r", "a<0@0")
    clock.end((0, 2, 2))
    assert clock.found() == {a.LOST_WRITE}


def test_what_readers_saw_is_gone_after_a_crash(clock):
    """At the end of the log, where nothing behind it shows a gap."""
    clock.send("p", "a>0@0 b>0@1")
    clock.poll("r1", "a<0@0 b<0@1")
    clock.end((0, 2, 2), readers=("r1",))
    clock.poll("r2", "a<0@0")
    clock.end((0, 1, 1), readers=("r2",))
    assert clock.found() == {a.GONE}


def test_what_was_acknowledged_is_gone_although_it_was_aborted(clock):
    clock.transaction("p", "a>0@0 b>0@1", outcome=FAILED)
    clock.poll("r", "a<0@0", isolation=UNCOMMITTED)
    clock.end((0, 2, 2), readers=("r",))
    assert clock.found() == {a.GONE}


def test_unseen(clock):
    """The log ends before it: no reader could get there."""
    clock.transaction("p", "a>0@0 b>1@7")
    clock.poll("r", "a<0@0")
    clock.end((0, 2, 2), (1, 5, 5))
    assert clock.found() == {a.UNSEEN}


def test_hanging_transaction(clock):
    clock.transaction("p", "a>0@1")
    clock.end((0, 0, 3))
    assert clock.found() == {a.HANGING, a.UNSEEN}
    nobody = Clock()
    nobody.end((0, 0, 3))
    assert nobody.found() == {a.HANGING}


def test_nonmonotonic_poll(clock):
    clock.send("p", "a>0@0 b>0@1")
    clock.poll("r", "b<0@1")
    clock.poll("r", "a<0@0")
    assert clock.found() == {a.NONMONOTONIC_POLL}


def test_a_rebalance_of_another_partition_explains_nothing(clock):
    clock.send("p", "a>0@0 b>0@1")
    clock.poll("r", "b<0@1")
    clock.moved("r", partition=1)
    clock.poll("r", "a<0@0")
    assert clock.found() == {a.NONMONOTONIC_POLL}


@pytest.mark.parametrize("isolation", ["read_committed", UNCOMMITTED])
def test_poll_skip(clock, isolation):
    clock.send("p", "a>0@0 b>0@1 c>0@2")
    clock.poll("r0", "a<0@0 b<0@1 c<0@2")
    clock.poll("r", "a<0@0", isolation=isolation)
    clock.poll("r", "c<0@2", isolation=isolation)
    assert clock.found() == {a.POLL_SKIP}


def test_internal_nonmonotonic_poll(clock):
    clock.send("p", "a>0@0 b>0@1")
    clock.poll("r", "b<0@1 a<0@0")
    assert clock.found() == {a.INTERNAL_NONMONOTONIC_POLL}


def test_internal_poll_skip(clock):
    clock.send("p", "a>0@0 b>0@1 c>0@2")
    clock.poll("r0", "a<0@0 b<0@1 c<0@2")
    clock.poll("r", "a<0@0 c<0@2")
    assert clock.found() == {a.INTERNAL_POLL_SKIP}


def test_nonmonotonic_send(clock):
    clock.transaction("p", "a>0@5")
    clock.transaction("p", "b>0@2", outcome=FAILED)
    assert clock.found() == {a.NONMONOTONIC_SEND}


def test_internal_nonmonotonic_send(clock):
    clock.transaction("p", "a>0@1 b>0@0")
    assert clock.found() == {a.INTERNAL_NONMONOTONIC_SEND}


def test_consumed_twice(clock):
    """A seek explains the position, but why did it lead before what was consumed with success?"""
    clock.send("p", "a>0@0")
    clock.poll("r", "a<0@0")
    clock.moved("r", SEEK)
    clock.poll("r", "a<0@0")
    assert clock.found() == {a.CONSUMED_TWICE}


def transformed(clock: Clock, process: str, wrote: str, read: str, offset: int, **fields) -> None:
    reads = tuple(_reads(read))
    clock.transaction(process, wrote, reads=reads, commits=committed((0, offset)), **fields)


def test_processed_twice(clock):
    clock.send("source", "i>0@0")
    transformed(clock, "c1", "x=i>1@0", "i<0@0", 1)
    transformed(clock, "c2", "y=i>1@2", "i<0@0", 1)
    clock.end(commits=committed((0, 1)))
    assert clock.found() == {a.PROCESSED_TWICE}


def test_input_without_output(clock):
    clock.send("source", "i>0@0 j>0@1")
    transformed(clock, "c", "x=i>1@0", "i<0@0 j<0@1", 2)
    clock.end(commits=committed((0, 2)))
    assert clock.found() == {a.UNPROCESSED}


def test_outputs_without_their_offset(clock):
    clock.send("source", "i>0@0")
    transformed(clock, "c", "x=i>1@0", "i<0@0", 1)
    clock.end(commits=committed((1, 0)))
    assert clock.found() == {a.OFFSETS_DIFFER}


def test_outputs_of_an_unknown_transaction_without_their_offset(clock):
    clock.send("source", "i>0@0")
    transformed(clock, "c", "x=i>1@0", "i<0@0", 1, outcome=UNKNOWN)
    clock.poll("r", "x<1@0")
    clock.end(commits=committed((0, 0)))
    assert clock.found() == {a.OFFSETS_DIFFER}


def test_an_offset_that_a_restart_lost(clock):
    clock.send("source", "i>0@0")
    transformed(clock, "c", "x=i>1@0", "i<0@0", 1)
    clock.end(commits=committed((0, 1)))
    clock.end(commits=committed((0, -1)))
    assert clock.found() == {a.OFFSETS_DIFFER, a.OFFSETS_CHANGED}


@pytest.mark.parametrize("outcome", [FAILED, UNKNOWN])
def test_an_offset_without_outputs(clock, outcome):
    """The inputs after it have no output either, if no other client wrote one."""
    clock.send("source", "i>0@0 j>0@1")
    transformed(clock, "c1", "x=i>1@0", "i<0@0", 1)
    transformed(clock, "c2", "y=j>1@2", "j<0@1", 2, outcome=outcome)
    clock.end(commits=committed((0, 2)))
    assert clock.found() == {a.OFFSETS_DIFFER, a.UNPROCESSED}


def test_every_anomaly_has_its_test():
    """A test of this folder asserts each name above."""
    names = {name for name, text in vars(a).items() if isinstance(text, str) and text in a.MEANINGS}
    assert len(names) == len(a.MEANINGS)
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [name for name in sorted(names) if f"a.{name}" not in text] == []


# -- the report and the file -----------------------------------------------------------------------


def doctored() -> History:
    clock = Clock()
    clock.transaction("p", "a>0@0 b>1@0", producer="id", reason="said so", outcome=FAILED)
    clock.poll("r", "a<0@0")
    clock.moved("r", SEEK)
    clock.end((0, 2, 2), commits=committed((0, 2)), readers=("r",))
    return clock.history


def test_the_report_names_the_operations():
    history = doctored()
    text = "\n".join(lines(check(history), history))
    assert "G1a aborted read, 1 times" in text
    assert "#0 transaction p of id failed at 1.000-2.000 s, wrote a>t-0@0 b>t-1@0" in text
    assert "#1 poll r ok" in text
    assert text.endswith("WRONG")


def test_the_lag_is_measured(clock):
    clock.transaction("p", "a>0", (1, 2))
    clock.transaction("p", "b>0", (3, 4))
    clock.poll("r", "a<0@0 b<0@2", (5, 6))
    assert check(clock.history).lag_s == (3.0, 4.0)


def test_a_time_without_any_acknowledgement_does_not_count_as_stuck(clock):
    clock.transaction("p", "a>0", (1, 2))
    clock.transaction("p", "b>1", (6, 7))
    clock.transaction("p", "c>1", (7, 7.5))
    clock.poll("r", "a<0@0", (7.5, 8))
    report = check(clock.history)
    assert report.lag_s[1] == 6.0
    assert report.stuck_s == 1.0  # From 7 s on.


def test_a_commit_that_stays_unread_while_others_are_acknowledged_is_stuck(clock):
    for second in range(10):
        clock.transaction("p", f"{second}>{second}", (second, second + 1))
    clock.poll("r", "0<0@0", (10, 11))
    assert check(clock.history).stuck_s == 10.0


def test_a_history_as_of_a_time_promises_nothing_later(clock):
    clock.transaction("p", "a>0@0", (1, 2))
    clock.poll("r", "a<0@0", (2, 3))
    clock.transaction("p", "b>0@2 c>1@0", (3, 5))
    clock.transaction("p", "d>0@4", (6, 7), outcome=FAILED)
    clock.poll("r", "b<0@2", (8, 9))
    first, polled, unsure, aborted = as_of(clock.history, 4 * SECOND)
    assert [first, polled] == clock.history[:2]
    assert (unsure.outcome, unsure.writes[0].offset) == (UNKNOWN, -1)
    assert aborted.outcome == FAILED
    # Of what was not known at that time, all may be missing, and no part.
    clock.history = [first, polled, unsure, aborted]
    clock.poll("r2", "a<0@0 b<0@2")
    clock.end((0, 4, 4), (1, 0, 0))
    assert clock.found() == {a.TORN_TRANSACTION}


def test_a_history_is_saved_and_read_again(tmp_path):
    path = tmp_path / "history.jsonl"
    save(doctored(), path)
    assert load(path) == doctored()


@pytest.mark.parametrize("line", ["{", "[]", '{"kind": "poll"}', '{"kind":"p","process":"","x":1}'])
def test_what_is_no_history_is_refused(tmp_path, line):
    path = tmp_path / "history.jsonl"
    save(doctored()[:1], path)
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match=r"history.jsonl:2: not an operation"):
        load(path)
