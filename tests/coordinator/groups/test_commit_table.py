"""Every state of a group meets every kind of committer; commit_table.txt has the outcomes.

``python -m tests.coordinator.groups.test_commit_table`` writes the table; read the difference.
The answers are those of Apache Kafka 4.3.0: tests/interop/transactional_offsets.py asks both.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordinator.decision import Decision, LongDecision, TransactionalProducer
from barnabas.coordinator.groups.classic import ClassicGroup
from barnabas.coordinator.groups.commands import (
    Caller,
    LongOffsetCommit,
    OffsetCommit,
    TransactionalOffsetCommit,
)
from barnabas.coordinator.groups.group import Identity
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.coordinator.groups import classic_run, consumer_run, test_classic_table
from tests.coordinator.groups import test_consumer_table as consumer_table
from tests.coordinator.groups.offset_commands import decided
from tests.coordinator.outcome_table import OutcomeTable

TABLE = OutcomeTable(Path(__file__).with_name("commit_table.txt"), columns=5)
GROUP = classic_run.GROUP
TOPIC_ID = consumer_run.Topics(t=4).ids["t"]
PRODUCER = TransactionalProducer(5, 0)

CLASSIC = {f"classic {name}": each for name, each in test_classic_table.STATES.items()}
CONSUMER = {f"consumer {name}": each for name, each in consumer_table.STATES.items()}
STATES = [*CLASSIC, *CONSUMER]

IDENTITIES: dict[str, dict[str, Any]] = {
    "nobody": {"member_id": "", "generation": -1},
    "nobody, of the generation": {"member_id": ""},
    "the member": {},
    "the member of the generation before": {"generation": -1, "relative": True},
    "the member of the first generation": {"generation": 1},
    "the member of a later generation": {"generation": 1, "relative": True},
    "the member of no generation": {"generation": -1},
    "a stranger": {"member_id": "stranger"},
    "a stranger of no generation": {"member_id": "stranger", "generation": -1},
    "the member as instance i": {"instance_id": "i"},
    "the member as instance j": {"instance_id": "j"},
    "a stranger as instance i": {"member_id": "stranger", "instance_id": "i"},
    "instance i without a member": {"member_id": "", "generation": -1, "instance_id": "i"},
}


def run_in(state: str) -> classic_run.Run | consumer_run.Run:
    """A group in one of the states; "nothing" is the same in both tables."""
    run: Any = classic_run.Run() if state in CLASSIC else consumer_run.Run()
    (CLASSIC | CONSUMER)[state](run)
    return run


def identity_of(run: Any, label: str) -> Identity:
    """Return the committer: the group's first member, with the changes of the label."""
    group = run.shard.groups.get(GROUP)
    member_id = next(iter(group.members), "m") if group is not None else "m"
    generation = 1
    if isinstance(group, ClassicGroup):
        generation = group.generation
    elif group is not None and member_id in group.members:
        generation = group.members[member_id].member_epoch
    changes = dict(IDENTITIES[label])
    if changes.pop("relative", False):
        changes["generation"] += generation
    return Identity(member_id, generation)._replace(**changes)


def commit_of(identity: Identity, version: int) -> OffsetCommit:
    topic = OffsetCommitRequestTopic("t", TOPIC_ID, [OffsetCommitRequestPartition(0, 5, -1, "")])
    request = OffsetCommitRequest(
        GROUP, identity.generation, identity.member_id, identity.instance_id, topics=[topic]
    )
    return OffsetCommit(Caller("client", "/host", version), request)


def verdict(decision: Decision) -> str:
    """The answer for the partition; what is refused leaves nothing behind (O5)."""
    ((answer,),) = (topic.partitions for topic in decision.response.topics)
    code = ErrorCode(answer.error_code)
    assert bool(decision.records) == (code == ErrorCode.NONE)
    assert not code or not decision.effects
    return code.name if code else "ok"


def outcome(state: str, label: str) -> list[str]:
    """Return the results of plain commits of versions 8 and 9, and of one in a transaction."""
    found = []
    run = run_in(state)
    identity = identity_of(run, label)
    for version in (8, 9, None):
        command: Any = commit_of(identity, version or 5)
        if version is None:
            command = TransactionalOffsetCommit(command.caller, command.request, PRODUCER)
        decision = run.shard.decide(command, run.now)
        found.append(verdict(decision))
        if version is None and decision.records:
            assert decision.producer == PRODUCER
            assert decision.effects == (), "a transaction's commit is no sign of life"
    who = f"{identity.member_id or '-'}@{identity.generation}"
    return [who, *found]


@pytest.mark.parametrize("state", STATES)
def test_state(state):
    for label in IDENTITIES:
        assert outcome(state, label) == TABLE.rows[label, state], label


@pytest.mark.parametrize("state", STATES)
def test_a_long_commit_is_decided_like_a_short_one(state):
    for label in IDENTITIES:
        run = run_in(state)
        command = commit_of(identity_of(run, label), 9)
        short = run.shard.decide(command, run.now)
        three_times = LongOffsetCommit(command.caller, (command.request,) * 3)
        long = decided(run.shard.decide(three_times, run.now))
        assert [*long.records] == [*short.records] * 3
        assert long.effects == short.effects
        if short.records:
            assert long.response == [short.response] * 3
        else:
            assert ErrorCode(long.response).name == verdict(short)


def test_one_partition_of_a_long_commit_refuses_them_all():
    """A member with an old epoch may not commit a lost partition, in any part of the commit."""
    run = run_in("consumer stable")
    group = run.shard.groups[GROUP]
    asked: list[int] = []

    def refuse_partition(_identity: Identity, _topic_id: bytes, partition: int) -> ErrorCode:
        asked.append(partition)
        return ErrorCode.STALE_MEMBER_EPOCH if partition == 2 else ErrorCode.NONE

    command = commit_of(identity_of(run, "the member"), 9)
    ((topic,), request) = command.request.topics, command.request
    parts = tuple(
        replace(
            request,
            topics=[replace(topic, partitions=[OffsetCommitRequestPartition(index, 5, -1, "")])],
        )
        for index in range(4)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(group), "refuse_partition", staticmethod(refuse_partition))
        decision = decided(run.shard.decide(LongOffsetCommit(command.caller, parts), run.now))
    assert decision == LongDecision(ErrorCode.STALE_MEMBER_EPOCH)
    assert asked == [0, 1, 2]


def test_the_table_is_complete():
    TABLE.check_complete(IDENTITIES, STATES)


if __name__ == "__main__":
    TABLE.rewrite(IDENTITIES, STATES, outcome)
