"""Every state of a transactional id meets every command; table.txt has the outcomes.

``python -m tests.coordinator.transactions.test_table`` writes the table; read the difference.
The same table is run against a broker (tests/broker/test_transaction_table.py), and against
Apache Kafka 4.3.0 if it has the state (tests/interop/test_transaction_table_like_kafka.py).
"""

from __future__ import annotations

import pytest

from barnabas.coordinator.transactions.commands import Outcome
from barnabas.coordinator.transactions.state import Transaction
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.transactions.run import Run
from tests.coordinator.transactions.states import STATES, command_of
from tests.coordinator.transactions.table import TABLE, Names, shown_outcome, shown_records


def outcome(state: str, text: str) -> list[str]:
    """Return the response, the records, and the response to waiters for the transition."""
    run = Run()
    who = STATES[state](run)
    names = Names(who)
    command = command_of(text, run.key, who, run.fresh())
    answer, records = ask(run, command, names)
    waited = "-"
    if answer == ErrorCode.CONCURRENT_TRANSACTIONS.name:
        if run.withheld:
            run.write_markers()
        again = command_of(text, run.key, who, run.fresh())
        waited, more = ask(run, again, names)
        waited = f"{waited}; {more}" if more != "-" else waited
    return [answer, records, waited]


def ask(run: Run, command: object, names: Names) -> tuple[str, str]:
    before = len(run.history)
    found: Outcome = run.do(command)
    written: list[Transaction | None] = run.history[before:]
    return shown_outcome(found, names), shown_records(written, names)


@pytest.mark.parametrize(("command", "state"), TABLE.rows, ids=[f"{s}-{c}" for c, s in TABLE.rows])
def test_row(command, state):
    assert outcome(state, command) == TABLE.rows[command, state]


def test_the_table_is_complete():
    TABLE.check_complete(TABLE.commands, STATES)


if __name__ == "__main__":
    TABLE.rewrite(TABLE.commands, STATES, outcome)
