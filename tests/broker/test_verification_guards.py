"""Guards of verification: what each event makes of each state (R7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from barnabas.broker.cluster.coordinating.verification_guards import BEGINNINGS_MAX, Guard, Guards
from barnabas.broker.coordination.verification import Writer, verify
from barnabas.coordinator.transactions.commands import VerifyPartitions
from barnabas.coordinator.transactions.state import TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.log.producers import ProducerState

PRODUCER = 7
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
KEY, OTHER_KEY = "id", "another id"


@dataclass(eq=False)
class Log:
    """One is another's equal only if it is it."""

    producers: ProducerState = field(default_factory=ProducerState)


class Coordinating:
    """The coordinator of this broker, with a code for each query, one after the other."""

    def __init__(self, *codes: ErrorCode) -> None:
        self._codes = list(codes)

    def has_producer(self, _key: str, _producer_id: int) -> bool:
        return False

    def verify(self, command: VerifyPartitions) -> dict[TopicPartition, ErrorCode]:
        return dict.fromkeys(command.partitions, self._codes.pop(0))


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, LOADING])
def test_a_batch_is_not_taken_before_one_that_could_not_be_judged(code):
    """S9: a log takes any first sequence."""
    guards, log, place = Guards(), Log(), TopicPartition("topic", 0)
    coordinator = Coordinating(code, ErrorCode.NONE, ErrorCode.NONE)

    def refused(sequence: int) -> ErrorCode | None:
        batch = encode_batch(
            [Record(0, 0, None, b"v")],
            producer_id=PRODUCER,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
        batches = [(place, log, memoryview(batch))]
        return verify(coordinator, Writer(KEY, 11), batches, guards).refused.get(place)

    assert refused(0) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert refused(1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(0) is None


class Table:
    """A table with a log, another log and another producer that must not be touched."""

    def __init__(self) -> None:
        self.guards = Guards()
        self.log = Log()
        self.others = [(self.log, PRODUCER + 1), (Log(), PRODUCER)]
        self.untouched = [self.guards.make(*each) for each in self.others]
        for log, producer_id in self.others:
            self.guards.note_verified(log, producer_id, KEY)
        self.made: list[Guard] = []

    def make(self) -> Guard:
        self.made.append(self.guards.make(self.log, PRODUCER))
        return self.made[-1]

    def verified(self, key: str = KEY) -> None:
        self.guards.note_verified(self.log, PRODUCER, key)

    def is_verified(self, key: str = KEY) -> bool:
        return self.guards.has_verified(self.log, PRODUCER, key)

    @property
    def good(self) -> int:
        """Number of guards that are not dropped."""
        return sum(not guard.is_dropped for guard in self.made)


STATES: dict[str, Callable[[Table], object]] = {
    "nothing": lambda _table: None,
    "asked": lambda table: table.make(),
    "asked twice": lambda table: (table.make(), table.make()),
    "verified": lambda table: table.verified(),
    "verified and asked": lambda table: (table.verified(), table.make()),
}
EVENTS: dict[str, Callable[[Table], object]] = {
    "asks": lambda table: table.make(),
    "takes": lambda table: table.guards.take(table.made[0], table.log),
    "releases": lambda table: table.guards.release(table.made[0]),
    "verifies": lambda table: table.verified(),
    "verifies another": lambda table: table.verified(OTHER_KEY),
    "marker": lambda table: table.guards.end(table.log, PRODUCER),
    "lost": lambda table: table.guards.lose(table.log),
}
AFTER = {
    # Guards that are good, and the id that is verified.
    "nothing": {
        "asks": (1, None),
        "verifies": (0, KEY),
        "verifies another": (0, OTHER_KEY),
        "marker": (0, None),
        "lost": (0, None),
    },
    "asked": {
        "asks": (2, None),
        "takes": (0, None),
        "releases": (0, None),
        "verifies": (1, KEY),
        "verifies another": (1, OTHER_KEY),
        "marker": (0, None),
        "lost": (0, None),
    },
    "asked twice": {
        "asks": (3, None),
        "takes": (1, None),
        "releases": (1, None),
        "verifies": (2, KEY),
        "verifies another": (2, OTHER_KEY),
        "marker": (0, None),
        "lost": (0, None),
    },
    "verified": {
        "asks": (1, KEY),
        "verifies": (0, KEY),
        "verifies another": (0, OTHER_KEY),
        "marker": (0, None),
        "lost": (0, None),
    },
    "verified and asked": {
        "asks": (2, KEY),
        "takes": (0, KEY),
        "releases": (0, KEY),
        "verifies": (1, KEY),
        "verifies another": (1, OTHER_KEY),
        "marker": (0, None),
        "lost": (0, None),
    },
}
CELLS = [(state, event) for state, row in AFTER.items() for event in row]


@pytest.mark.parametrize(("state", "event"), CELLS)
def test_every_state_and_event(state, event):
    table = Table()
    STATES[state](table)
    others = len(table.guards) - bool(table.made or table.is_verified())
    EVENTS[event](table)
    good, key = AFTER[state][event]
    assert table.good == good
    assert table.is_verified(KEY) == (key == KEY)
    assert table.is_verified(OTHER_KEY) == (key == OTHER_KEY)
    assert table.guards.knows(table.log, PRODUCER) == bool(good or key)
    # Ended requests leave nothing, and other requests stay.
    is_other_of_log_here = event != "lost"
    assert len(table.guards) == others - (not is_other_of_log_here) + bool(good or key)
    assert not table.untouched[1].is_dropped
    assert table.untouched[0].is_dropped == (not is_other_of_log_here)
    assert table.guards.has_verified(*table.others[1], KEY)
    assert table.guards.has_verified(*table.others[0], KEY) == is_other_of_log_here


def test_every_event_was_tried_in_every_state_in_which_it_can_happen():
    needs_a_guard = {"takes", "releases"}
    for state, row in AFTER.items():
        missing = EVENTS.keys() - row.keys()
        assert missing == (needs_a_guard if state in {"nothing", "verified"} else set())


@pytest.mark.parametrize("event", ["marker", "lost", "takes", "releases"])
def test_a_guard_is_good_for_one_append(event):
    table = Table()
    guard = table.make()
    EVENTS[event](table)
    assert not table.guards.take(guard, table.log)
    table.guards.release(guard)
    later = table.make()
    assert not table.guards.take(guard, table.log)
    assert table.guards.take(later, table.log)


def test_a_guard_is_good_for_the_log_that_it_was_made_for():
    """A partition that was lost and has come back has another log."""
    table = Table()
    assert not table.guards.take(table.make(), Log())
    assert table.good == 0


# ------------------------------------------------------------------- who is not known to the log


def test_batch_after_first_sequence_waits_for_it():
    guards, log = Guards(), Log()
    assert not guards.is_ahead(log, PRODUCER, 0, 9)
    guards.note_beginning(log, PRODUCER, 0, 5)
    assert [guards.is_ahead(log, PRODUCER, 0, sequence) for sequence in (4, 5, 6)] == [0, 0, 1]
    guards.note_beginning(log, PRODUCER, 0, 7)  # The lowest counts.
    assert guards.is_ahead(log, PRODUCER, 0, 6)
    assert not guards.is_ahead(log, PRODUCER, 1, 6)
    guards.note_beginning(log, PRODUCER, 1, 7)  # Of the last epoch.
    assert not guards.is_ahead(log, PRODUCER, 1, 7)
    assert guards.is_ahead(log, PRODUCER, 1, 8)
    assert not guards.is_ahead(log, PRODUCER, 0, 6)
    assert not guards.is_ahead(Log(), PRODUCER, 1, 8)
    assert not guards.is_ahead(log, PRODUCER + 1, 1, 8)


@pytest.mark.parametrize(
    "event",
    [
        lambda guards, log: guards.note_verified(log, PRODUCER, KEY),
        lambda guards, log: guards.end(log, PRODUCER),
        lambda guards, log: guards.lose(log),
    ],
    ids=["begun", "marker", "lost"],
)
def test_a_beginning_is_over(event):
    guards, log, other = Guards(), Log(), Log()
    guards.note_beginning(log, PRODUCER, 0, 0)
    guards.note_beginning(other, PRODUCER, 0, 0)
    event(guards, log)
    assert not guards.is_ahead(log, PRODUCER, 0, 1)
    assert guards.is_ahead(other, PRODUCER, 0, 1)


def test_recorded_first_sequences_are_limited():
    guards, log = Guards(), Log()
    for producer_id in range(BEGINNINGS_MAX + 1):
        guards.note_beginning(log, producer_id, 0, 0)
        guards.note_beginning(log, 0, 0, 0)  # Noted again, so it is not the oldest.
    assert not guards.is_ahead(log, 1, 0, 1)
    assert all(guards.is_ahead(log, each, 0, 1) for each in (0, 2, BEGINNINGS_MAX))
