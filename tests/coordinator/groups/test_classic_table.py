"""Every state of a classic group meets every command; classic_table.txt has the outcomes.

``python -m tests.coordinator.groups.test_classic_table`` writes the table; read the difference.
The answers are those of Apache Kafka 4.3.0: tests/interop/test_classic_groups_like_kafka.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordinator.decision import Answer, Cancel, Decision, Schedule, Timer
from barnabas.coordinator.groups.commands import NO_TOPICS, TimerExpired
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from tests.coordinator.groups.classic_run import GROUP, Run
from tests.coordinator.outcome_table import OutcomeTable

TABLE = OutcomeTable(Path(__file__).with_name("classic_table.txt"), columns=6)

# ------------------------------------------------------------------------------------------- states


def nothing(run: Run) -> None:
    """Create no group."""


def pending(run: Run) -> None:
    run.do(run.join(new_id="p"))


def initial(run: Run) -> None:
    run.do(run.join(version=3, new_id="a"))


def one(run: Run) -> None:
    initial(run)
    run.expire(Timer(GROUP, "join"))
    run.do(run.sync("a", 1, assignments={"a": b"A"}))


def preparing(run: Run) -> None:
    pair(run, {"a": b"A", "b": b"B"})
    run.do(run.sync("b", 2))
    run.do(run.join(new_id="p"))
    run.do(run.join("b", protocols="range+sticky"))


def pair(run: Run, assignments: dict[str, bytes]) -> None:
    one(run)
    run.do(run.join(version=3, new_id="b"))
    run.do(run.join("a"))
    run.do(run.sync("a", 2, assignments=assignments))


def lonely(run: Run) -> None:
    run.do(run.join(instance="i", new_id="s"))
    run.expire(Timer(GROUP, "join"))
    run.do(run.sync("s", 1, assignments={"s": b"S"}))
    run.do(run.join(new_id="p"))
    run.do(run.join("p"))
    run.do(run.leave(("p", None)))
    run.expire(Timer(GROUP, "join"))


def completing(run: Run) -> None:
    one(run)
    run.do(run.join(version=3, new_id="b"))
    run.do(run.join("a"))
    run.do(run.sync("b", 2))


def stable(run: Run) -> None:
    completing(run)
    run.do(run.sync("a", 2, assignments={"a": b"A", "b": b"B"}))


def unsynced(run: Run) -> None:
    pair(run, {"a": b"A", "b": b"B"})


def full(run: Run) -> None:
    stable(run)
    run.do(run.join(version=3, new_id="c"))
    run.do(run.join("a"))
    run.do(run.join("b"))
    for member_id in "bca":
        run.do(run.sync(member_id, 3, assignments={"a": b"A", "b": b"B", "c": b"C"}))


def static(run: Run) -> None:
    run.do(run.join(instance="i", new_id="s"))
    run.expire(Timer(GROUP, "join"))
    run.do(run.join(version=3, new_id="b"))
    run.do(run.join("s", instance="i"))
    run.do(run.sync("b", 2))
    run.do(run.sync("s", 2, assignments={"s": b"S", "b": b"B"}))


def replayed(run: Run) -> None:
    stable(run)
    run.restart()


def empty(run: Run) -> None:
    stable(run)
    run.do(run.leave(("a", None), ("b", None)))


STATES: dict[str, Callable[[Run], None]] = {
    state.__name__: state
    for state in (
        nothing,
        pending,
        initial,
        preparing,
        lonely,
        completing,
        stable,
        unsynced,
        full,
        static,
        replayed,
        empty,
    )
}

# ----------------------------------------------------------------------------------------- commands


def command_of(run: Run, text: str) -> Any:
    """Make the command a line of the table names."""
    verb, *words = text.split()
    options = dict(word.split("=", 1) for word in words if "=" in word)
    plain = [word for word in words if "=" not in word]
    version = int(plain.pop(0)[1:]) if plain and plain[0][0] == "v" else 9
    generation = int(options.get("generation", -1))
    if generation < 0:
        generation = run.group.generation if run.group is not None else 1
    instance = options.get("instance")
    if verb == "join":
        if plain and plain[0] == "static":
            instance = plain[1]
            plain = []
        return run.join(
            plain[0] if plain else "",
            version=version,
            instance=instance,
            protocols=options.get("protocols", "range"),
            protocol_type=options.get("type", "consumer"),
        )
    if verb == "sync":
        members = run.group.members if run.group is not None else {}
        return run.sync(
            plain[0],
            generation,
            instance=instance,
            protocol=options.get("protocol"),
            protocol_type=options.get("type"),
            assignments={name: name.upper().encode() for name in members}
            if "assigns" in plain
            else None,
        )
    if verb == "heartbeat":
        return run.heartbeat(plain[0], generation, instance)
    if verb == "leave":
        leaving: list[tuple[str, str | None]] = [(name, None) for name in plain]
        if instance is not None:
            leaving.insert(0, ("", instance))
        return run.leave(*leaving, version=min(version, 5))
    assert verb == "expire"
    return TimerExpired(Timer(GROUP, *plain), NO_TOPICS)


# ------------------------------------------------------------------------------------------ outcome


def shown_response(response: Any) -> str:
    if response is None:
        return "-"  # The response is among those of the waiters, or there was no request.
    code = ErrorCode(response.error_code)
    if isinstance(response, JoinGroupResponse):
        who = f" {response.member_id}" if response.member_id else ""
        if code:
            return f"{code.name}{who}"
        members = "+".join(member.member_id for member in response.members)
        skip = " skip" if response.skip_assignment else ""
        return (
            f"{response.generation_id}{who} {response.protocol_name} leader={response.leader}"
            f"{' of ' + members if members else ''}{skip}"
        )
    if isinstance(response, SyncGroupResponse):
        return code.name if code else f"owns {response.assignment.decode() or 'nothing'}"
    members = getattr(response, "members", None)
    if members is None:
        return code.name if code else "ok"
    each = (
        f"{member.member_id or member.group_instance_id}:"
        f"{ErrorCode(member.error_code).name if member.error_code else 'ok'}"
        for member in members
    )
    return " ".join(each)


def shown_group(run: Run) -> str:
    group = run.group
    if group is None:
        return "-"
    members = []
    for name in group.members:
        leads = "*" if name == group.leader_id else ""
        waits = name in group.joining or name in group.syncing
        members.append(f"({name}{leads})" if waits else f"{name}{leads}")
    members += [f"+{name}" for name in group.pending]
    return f"{group.state.value[0]}{group.generation} {' '.join(members)}".rstrip()


def shown_records(decision: Decision) -> str:
    shown = []
    for record in decision.records:
        value = record.value
        members = "".join(
            f" {member.member_id}={member.assignment.decode() or 'nothing'}"
            for member in value.members
        )
        shown.append(f"{'S' if value.members else 'E'}{value.generation}{members}")
    return ", ".join(shown) or "-"


def shown_answers(decision: Decision, waited: dict[int, str]) -> str:
    answers = [effect for effect in decision.effects if isinstance(effect, Answer)]
    return "; ".join(f"{waited[each.ticket]}: {shown_response(each.response)}" for each in answers)


def shown_timers(run: Run, decision: Decision) -> str:
    """The timers as they are set in the end; cancelling what was not set is not worth a word."""
    timers: dict[str, str] = {}
    for effect in decision.effects:
        if isinstance(effect, Answer):
            continue
        timer = effect.timer
        name = timer.member_id or timer.name
        timers.pop(name, None)
        if isinstance(effect, Schedule):
            timers[name] = f"{name}+{effect.at_tick_ms - run.tick_ms}"
        else:
            assert isinstance(effect, Cancel)
            timers[name] = f"-{name}"
    return " ".join(timers.values()) or "-"


def outcome(state: str, text: str) -> list[str]:
    run = Run()
    STATES[state](run)
    group = run.group
    waited = {}
    if group is not None:
        waited = {ticket: name for name, ticket in (group.joining | group.syncing).items()}
    command = command_of(run, text)
    decision = run.do(command)
    ticket = getattr(command, "ticket", 0)
    waited[ticket] = "itself"
    return [
        "waits" if ticket in run.parked else shown_response(decision.response),
        shown_group(run),
        shown_records(decision),
        shown_answers(decision, waited) or "-",
        shown_timers(run, decision),
    ]


# -------------------------------------------------------------------------------------------- table


@pytest.mark.parametrize("state", STATES)
def test_state(state):
    for command in TABLE.commands:
        assert outcome(state, command) == TABLE.rows[command, state], command


def test_the_table_is_complete():
    TABLE.check_complete(TABLE.commands, STATES)


if __name__ == "__main__":
    TABLE.rewrite(TABLE.commands, STATES, outcome)
