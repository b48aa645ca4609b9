"""The table table.txt, and outcomes and records in its words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from barnabas.coordinator.transactions.commands import Outcome
from barnabas.coordinator.transactions.state import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    State,
    TopicPartition,
    Transaction,
)
from tests.coordinator.outcome_table import OutcomeTable
from tests.coordinator.transactions.states import FOREIGN, P0, P1, Identities

TABLE = OutcomeTable(Path(__file__).with_name("table.txt"), columns=4)
COMMANDS, ROWS = TABLE.commands, TABLE.rows
PLACES = {P0: "p0", P1: "p1"}


class Names:
    """Producer ids by letters: A had the transactional id when the command came."""

    def __init__(self, who: Identities) -> None:
        self._letters: dict[int, str] = {FOREIGN: "foreign"}
        for producer_id, _ in reversed(who):
            self.of(producer_id)

    def of(self, producer_id: int) -> str:
        letter = chr(ord("A") + len(self._letters) - 1)
        return self._letters.setdefault(producer_id, letter)


def shown_place(place: TopicPartition) -> str:
    return PLACES.get(place, f"{place.topic}-{place.partition}")


def shown_outcome(outcome: Outcome, names: Names) -> str:
    if outcome.partition_errors:
        errors = sorted(outcome.partition_errors.items())
        return " ".join(f"{shown_place(place)}:{code.name}" for place, code in errors)
    if outcome.producer_id == NO_PRODUCER_ID:
        return outcome.error.name
    return f"{outcome.error.name} {names.of(outcome.producer_id)}:{outcome.producer_epoch}"


def shown_records(records: Iterable[Transaction | None], names: Names) -> str:
    return ", ".join(shown_record(record, names) for record in records) or "-"


def shown_record(record: Transaction | None, names: Names) -> str:
    """Return the state, the producer, and the other fields of a record."""
    if record is None:
        return "forgotten"
    words = [record.state.kafka_name, f"{names.of(record.producer_id)}:{record.producer_epoch}"]
    if record.previous_producer_id != NO_PRODUCER_ID:
        words.append(f"was {names.of(record.previous_producer_id)}")
    if record.last_epoch != NO_EPOCH:
        words.append(f"last {record.last_epoch}")
    if record.next_producer_id != NO_PRODUCER_ID:
        words.append("kept" if record.is_two_phase_prepared else "next")
        words.append(shown_next(record, names))
    if record.state in {State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT}:
        words.append("+".join(sorted(map(shown_place, record.partitions))) or "nothing")
    return " ".join(words)


def shown_next(record: Transaction, names: Names) -> str:
    """The next producer: only the part of it that is another, or set, is named."""
    next_id = names.of(record.next_producer_id)
    if record.next_epoch == NO_EPOCH:
        return next_id
    if record.next_producer_id == record.producer_id:
        return str(record.next_epoch)
    return f"{next_id}:{record.next_epoch}"
