"""Every state of a consumer group meets every command; consumer_table.txt has the outcomes.

``python -m tests.coordinator.groups.test_consumer_table`` writes the table; read the difference.
The answers are those of Apache Kafka 4.3.0: tests/interop/test_consumer_groups_like_kafka.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordinator.decision import Answer, Cancel, Decision, Record, Schedule
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import Member, MemberState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from tests.coordinator.groups.consumer_run import GROUP, Run, assigned_by_sync
from tests.coordinator.outcome_table import OutcomeTable

TABLE = OutcomeTable(Path(__file__).with_name("consumer_table.txt"), columns=5)

# ------------------------------------------------------------------------------------------- states


def nothing(run: Run) -> None:
    """Create no group."""


def one(run: Run) -> None:
    run.do(run.join("m"))
    run.later()


def empty(run: Run) -> None:
    one(run)
    run.do(run.heartbeat("m", -1))


def waiting(run: Run) -> None:
    one(run)
    run.do(run.join("n"))
    run.later()


def revoking(run: Run) -> None:
    waiting(run)
    run.do(run.obedient("m"))


def released(run: Run) -> None:
    revoking(run)
    run.do(run.obedient("m"))


def stable(run: Run) -> None:
    released(run)
    run.do(run.obedient("n"))


def assigning(run: Run) -> None:
    """m has just come, and n a moment later: its assignment has to wait."""
    run.do(run.join("m"))
    run.do(run.join("n"))


def full(run: Run) -> None:
    stable(run)
    run.do(run.join("o"))
    for member in "mnmno":
        run.later()
        run.do(run.obedient(member))


def static(run: Run) -> None:
    run.do(run.join("s", instance="i"))
    run.later()
    run.do(run.join("n"))
    for member, instance in (("s", "i"), ("s", "i"), ("n", None)):
        run.do(run.obedient(member, instance=instance))
    run.later()


def away(run: Run) -> None:
    static(run)
    run.do(run.heartbeat("s", -2, instance="i"))


def regex(run: Run) -> None:
    run.do(run.join("m", None, subscribed_topic_regex="t|x.*"))
    run.expire("regex")
    run.later()
    run.do(run.obedient("m"))
    run.later()


def replayed(run: Run) -> None:
    stable(run)
    run.restart()


def grown(run: Run) -> None:
    stable(run)
    run.later()
    run.topics.grow("t", 6)


def deleted(run: Run) -> None:
    stable(run)
    run.later()
    run.topics.delete("t")


def classic(run: Run) -> None:
    run.do(run.join_classic(version=3, new_id="c"))
    run.expire("join")
    run.do(run.sync("c", 1))


def classic_empty(run: Run) -> None:
    classic(run)
    run.do(run.leave_classic(("c", None)))


def mixed(run: Run) -> None:
    """A classic member has taken what m gave back."""
    one(run)
    run.do(run.join_classic("c"))
    run.do(run.sync("c"))
    run.do(run.obedient("m"))
    run.do(run.obedient("m"))
    run.do(run.join_classic("c"))
    run.do(run.sync("c"))
    run.later()


def mixed_unreleased(run: Run) -> None:
    """A classic member could take what m has given back, and does not know yet."""
    one(run)
    run.do(run.join_classic("c"))
    run.do(run.sync("c"))
    run.do(run.obedient("m"))
    run.do(run.obedient("m"))
    run.later()


STATES: dict[str, Callable[[Run], None]] = {
    state.__name__: state
    for state in (
        nothing,
        empty,
        one,
        assigning,
        waiting,
        revoking,
        released,
        stable,
        full,
        static,
        away,
        regex,
        grown,
        deleted,
        replayed,
        mixed,
        mixed_unreleased,
        classic,
        classic_empty,
    )
}

# ----------------------------------------------------------------------------------------- commands

COMMANDS: dict[str, Callable[[Run], Any]] = {
    "x joins": lambda run: run.join("x"),
    "x joins for t and u": lambda run: run.join("x", "t u"),
    "x joins by a regular expression": lambda run: run.join(
        "x", None, subscribed_topic_regex="t|x.*"
    ),
    "x joins by no regular expression": lambda run: run.join("x", None, subscribed_topic_regex="("),
    "x joins with an unknown assignor": lambda run: run.join("x", server_assignor="sticky"),
    "x joins as static i": lambda run: run.join("x", instance="i"),
    "x joins as static j": lambda run: run.join("x", instance="j"),
    "m joins again": lambda run: run.join("m"),
    "somebody without an id joins in v0": lambda run: run.join("", version=0),
    "m heartbeat": lambda run: run.heartbeat("m"),
    "m heartbeat, owning what it should": lambda run: run.obedient("m"),
    "n heartbeat": lambda run: run.heartbeat("n"),
    "n heartbeat, owning what it should": lambda run: run.obedient("n"),
    "m heartbeat of the epoch before": lambda run: run.obedient("m", epoch=_before(run)),
    "m heartbeat of an old epoch": lambda run: run.heartbeat("m", 1, owned={"u": {0}}),
    "m heartbeat of a later epoch": lambda run: run.obedient("m", epoch=99),
    "x heartbeat": lambda run: run.heartbeat("x"),
    "m heartbeat of epoch -3": lambda run: run.heartbeat("m", -3),
    "s heartbeat as static i": lambda run: run.obedient("s", instance="i"),
    "x heartbeat as static i": lambda run: run.heartbeat("x", instance="i"),
    "m subscribes to u": lambda run: run.obedient("m", names="u"),
    "m subscribes to u, saying nothing": lambda run: run.heartbeat("m", names="u"),
    "m subscribes to a missing topic": lambda run: run.obedient("m", names="missing"),
    "m subscribes by another expression": lambda run: run.obedient(
        "m", subscribed_topic_regex="[tu]"
    ),
    "m subscribes by name only": lambda run: run.obedient(
        "m", names="t", subscribed_topic_regex=""
    ),
    "m wants range": lambda run: run.obedient("m", server_assignor="range"),
    "m leaves": lambda run: run.heartbeat("m", -1),
    "n leaves": lambda run: run.heartbeat("n", -1),
    "s leaves for a while": lambda run: run.heartbeat("s", -2, instance="i"),
    "s leaves": lambda run: run.heartbeat("s", -1, instance="i"),
    "m leaves for a while": lambda run: run.heartbeat("m", -2),
    "x joins, classic": lambda run: run.join_classic("x"),
    "somebody joins, classic": lambda run: run.join_classic(),
    "static i joins, classic": lambda run: run.join_classic(instance="i"),
    "x joins, classic, with nothing in common": lambda run: run.join_classic(
        "x", protocols="other"
    ),
    "c joins again, classic": lambda run: run.join_classic("c"),
    "c joins for u, classic": lambda run: run.join_classic("c", "u"),
    "c syncs": lambda run: run.sync("c"),
    "c syncs with an old generation": lambda run: run.sync("c", 1),
    "m syncs": lambda run: run.sync("m"),
    "c heartbeat, classic": lambda run: run.heartbeat_classic("c"),
    "c heartbeat of a later generation, classic": lambda run: run.heartbeat_classic("c", 99),
    "m heartbeat, classic": lambda run: run.heartbeat_classic("m"),
    "c leaves, classic": lambda run: run.leave_classic(("c", None)),
    "m and i leave, classic": lambda run: run.leave_classic(("m", None), ("", "i")),
    "m is not heard of": lambda run: ("session", "m"),
    "s is not heard of": lambda run: ("session", "s"),
    "c is not heard of": lambda run: ("session", "c"),
    "m does not give back": lambda run: ("rebalance", "m"),
    "c does not rejoin": lambda run: ("rejoin", "c"),
    "c does not sync": lambda run: ("resync", "c"),
    "the expressions are resolved": lambda run: ("regex", ""),
}


def _before(run: Run) -> int:
    member = run.members.get("m")
    return 1 if member is None else member.previous_epoch


def outcome(state: str, command: str) -> list[str]:
    """Bring a group into a state, run a command, and return the outcome in words."""
    run = Run()
    STATES[state](run)
    made = COMMANDS[command](run)
    decision = run.expire(*made) if isinstance(made, tuple) else run.do(made)
    return [
        _answer(decision.response, run),
        _group(run),
        " ".join(map(_record, decision.records)) or "-",
        " ".join(_timers(decision, run)) or "-",
    ]


# ------------------------------------------------------------------------------------------- words


def _answer(response: Any, run: Run) -> str:
    if response is None:
        return "-"
    if response.error_code:
        member = getattr(response, "member_id", None)
        return f"{ErrorCode(response.error_code).name}{f' {member}' if member else ''}"
    match response:
        case ConsumerGroupHeartbeatResponse():
            given = ""
            if response.assignment is not None:
                topics = response.assignment.topic_partitions
                given = f" {_listed({each.topic_id: each.partitions for each in topics}, run)}"
            return f"{response.member_id}@{response.member_epoch}{given}"
        case JoinGroupResponse():
            leader = f" leader={response.leader}" if response.leader else ""
            return f"{response.member_id}@{response.generation_id} {response.protocol_name}{leader}"
        case SyncGroupResponse():
            if not response.assignment:
                return "nothing"
            owned = assigned_by_sync(response, run.topics)
            return _listed({run.topics.ids[name]: those for name, those in owned.items()}, run)
        case HeartbeatResponse():
            return "ok"
        case LeaveGroupResponse():
            return " ".join(
                f"{each.member_id or each.group_instance_id}:{ErrorCode(each.error_code).name}"
                for each in response.members
            )
    raise AssertionError(response)


def _listed(partitions: Mapping[bytes, Any], run: Run) -> str:
    return (
        "+".join(_topic(topic_id, partitions[topic_id]) for topic_id in sorted(partitions))
        or "nothing"
    )


def _topic(topic_id: bytes, partitions: Any) -> str:
    return f"{topic_id.rstrip(b'-').decode()}{''.join(map(str, sorted(partitions)))}"


def _group(run: Run) -> str:
    group = run.shard.groups.get(GROUP)
    if group is None:
        return "none"
    if isinstance(group, ClassicGroup):
        return (
            f"classic {group.state_name} {group.generation}: {' '.join(group.members) or 'nobody'}"
        )
    assert isinstance(group, ConsumerGroup)
    members = ", ".join(_member(each, run) for each in group.members.values())
    return f"{group.state_name} {group.epoch}/{group.assignment_epoch}: {members or 'nobody'}"


def _member(member: Member, run: Run) -> str:
    words = [
        f"{member.member_id}{'' if member.classic is None else '(classic)'}@{member.member_epoch}"
    ]
    if member.assigned:
        words.append(_listed(member.assigned, run))
    if member.revoking:
        words.append(f"-{_listed(member.revoking, run)}")
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        words.append("waits")
    return " ".join(words)


def _record(record: Record) -> str:
    """The kind of a record, by a letter, and what it is about; a tombstone has a minus."""
    letters = {
        2: "classic",
        3: "epoch",
        4: "metadata",
        5: "member",
        6: "assignment",
        7: "target",
        8: "current",
        16: "regex",
    }
    word = letters[record.kind.key_type]
    about = getattr(record.key, "member_id", getattr(record.key, "regular_expression", ""))
    value = record.value
    number = ""
    if value is not None:
        number = {
            "epoch": lambda: value.epoch,
            "assignment": lambda: value.assignment_epoch,
            "current": lambda: value.member_epoch,
            "classic": lambda: value.generation,
            "target": lambda: (
                "+".join(_topic(t.topic_id, t.partitions) for t in value.topic_partitions)
                or "nothing"
            ),
        }.get(word, lambda: "")()
    detail = ":".join(str(each) for each in (about, number) if each != "")
    return f"{'-' if value is None else ''}{word}{f'({detail})' if detail else ''}"


def _timers(decision: Decision, run: Run) -> list[str]:
    words = []
    for effect in decision.effects:
        if isinstance(effect, Answer):
            words.append(f"answer:{ErrorCode(effect.response.error_code).name}")
            continue
        timer = effect.timer
        name = f"{timer.member_id}.{timer.name}" if timer.member_id else timer.name
        if isinstance(effect, Cancel):
            words.append(f"-{name}")
        elif isinstance(effect, Schedule):
            words.append(f"{name}+{effect.at_tick_ms - run.tick_ms}")
    return words


# ------------------------------------------------------------------------------------------- table


def test_nothing_is_left_out() -> None:
    TABLE.check_complete(COMMANDS, STATES)


@pytest.mark.parametrize("command", COMMANDS)
def test_outcome_of_each_command_in_each_state(command: str) -> None:
    for state in STATES:
        assert outcome(state, command) == TABLE.rows[command, state], state


if __name__ == "__main__":
    TABLE.rewrite(COMMANDS, STATES, outcome)
