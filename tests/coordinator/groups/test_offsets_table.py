"""Every state of a group meets every command about offsets; offsets_table.txt says the outcome.

``python -m tests.coordinator.groups.test_offsets_table`` writes the table; read the difference.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from barnabas.coordinator.decision import Decision
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.groups.offset_commands import (
    GROUP,
    NOW,
    PRODUCER,
    STATES,
    Marker,
    Run,
    command_of,
    decided,
    in_steps,
    shown_records,
    shown_response,
    whole,
)
from tests.coordinator.outcome_table import OutcomeTable

TABLE = OutcomeTable(Path(__file__).with_name("offsets_table.txt"), columns=4)


def outcome(state: str, command: str) -> list[str]:
    run = Run(state)
    asked = command_of(command)
    if isinstance(asked, Marker):
        run.end_transaction(asked)
        decision = Decision()
    else:
        decision = run.decide(asked)
    for record in decision.records:
        run.apply(record)
    left = run.offsets()
    live = {group: run.shard.offsets.commits_of(group) for group in run.shard.offsets.group_ids()}
    assert run.replayed() == live, f"{command}: a restart would not give the same (O8)"
    kept = "group" if GROUP in run.shard.groups else "no group"
    keys = run.shard.keys()
    assert (GROUP in keys) == (left != "-" or kept == "group"), command
    return [shown_response(decision.response), shown_records(decision), f"{kept}, {left}"]


@pytest.mark.parametrize("state", STATES)
def test_state(state):
    for command in TABLE.commands:
        assert outcome(state, command) == TABLE.rows[command, state], command


@pytest.mark.parametrize("state", STATES)
def test_state_of_very_many_offsets(state, monkeypatch):
    in_steps(monkeypatch)
    test_state(state)


@pytest.mark.parametrize("outcome_of", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("state", ["pending", "empty-pending"])
def test_a_fetch_in_steps_shows_one_moment_whenever_the_marker_comes(
    state, outcome_of, monkeypatch
):
    in_steps(monkeypatch)
    fetch = command_of("fetch anonymous all")
    before = whole(Run(state).decide(fetch)).response
    run = Run(state)
    run.end_transaction(Marker(PRODUCER, outcome_of))
    after = whole(run.decide(fetch)).response
    assert before != after or not before.topics
    for steps in range(1, 20):
        run = Run(state)
        going = run.shard.decide(fetch, NOW).steps
        assert going is not None
        taken = sum(1 for _ in islice(going, steps))
        run.end_transaction(Marker(PRODUCER, outcome_of))
        if taken < steps:
            return
        answer = decided(Decision(steps=going)).response
        assert answer == (after if steps == 1 else before)
    raise AssertionError


@pytest.mark.parametrize("outcome_of", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("command", ["delete-group", "expire", "topics-deleted"])
@pytest.mark.parametrize("state", STATES)
def test_concurrent_marker_changes_no_offset_of_a_removal(state, command, outcome_of, monkeypatch):
    in_steps(monkeypatch)
    for steps in range(20):
        run = Run(state)
        going = run.shard.decide(command_of(command), NOW).steps
        assert going is not None
        if sum(1 for _ in islice(going, steps)) < steps:
            return
        run.end_transaction(Marker(PRODUCER, outcome_of))
        stays = run.offsets()
        made = decided(Decision(steps=going))
        for record in made.records:
            run.apply(record)
        live = {each: run.shard.offsets.commits_of(each) for each in run.shard.offsets.group_ids()}
        assert run.replayed() == live
        if command == "delete-group":
            assert (run.offsets() == "-") == (made.response != ErrorCode.NON_EMPTY_GROUP)
            continue
        kept = set(run.offsets().split())
        fresh = Run(state)
        fresh.end_transaction(Marker(PRODUCER, outcome_of))
        for record in whole(fresh.decide(command_of(command))).records:
            fresh.apply(record)
        assert set(fresh.offsets().split()) <= kept <= set(stays.split())
    raise AssertionError


def test_the_table_is_complete():
    TABLE.check_complete(TABLE.commands, STATES)


if __name__ == "__main__":
    TABLE.rewrite(TABLE.commands, STATES, outcome)
