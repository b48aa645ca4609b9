"""Random producers, members, zombies, deletions and crashes against a model of invariants O1 to O8.

Everything goes over the wire of a running broker, one request after the other; after each step the
model says what every group must show, to readers that wait for what is stable and to others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.testing import Broker
from tests.counterparts.offsets_client import (
    CLASSIC,
    IMPLICIT,
    UNSTABLE,
    OffsetsClient,
    Producer,
)

STEPS = 120
TOPICS = {"a": 2, "b": 1}
PLACES = [(name, index) for name, count in TOPICS.items() for index in range(count)]
WANTED = {name: list(range(count)) for name, count in TOPICS.items()}
SIMPLE = ["simple", "other"]
JOINED = "joined"
"""A group with a member: a commit must name a member."""
GROUPS = [*SIMPLE, JOINED]
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
}

Key = tuple[str, tuple[str, int]]


@dataclass
class Model:
    """Committed offsets, and pending ones by transactional id; numbers are positions in the log."""

    committed: dict[Key, tuple[int, int]] = field(default_factory=dict)
    pending: dict[str, dict[Key, tuple[int, int]]] = field(default_factory=dict)
    written: int = 0

    def commit(self, owner: str | None, group: str, places: dict[tuple[str, int], int]) -> None:
        commits = self.committed if owner is None else self.pending.setdefault(owner, {})
        for place, offset in places.items():
            self.written += 1
            commits[group, place] = (offset, self.written)

    def end(self, owner: str, *, commit: bool) -> None:
        for key, found in self.pending.pop(owner, {}).items():
            if commit and found[1] > self.committed.get(key, (0, -1))[1]:
                self.committed[key] = found

    def forget(self, *keys: Key) -> None:
        for commits in (self.committed, *self.pending.values()):
            for key in keys:
                commits.pop(key, None)

    def keys_of(self, group: str) -> set[Key]:
        everything = (self.committed, *self.pending.values())
        return {key for commits in everything for key in commits if key[0] == group}

    def seen(self, group: str, *, stable: bool) -> dict[tuple[str, int], int | str]:
        pending = {key for commits in self.pending.values() for key in commits}
        found: dict[tuple[str, int], int | str] = {}
        for place in PLACES:
            key = group, place
            found[place] = self.committed.get(key, (-1, -1))[0]
            if stable and key in pending:
                found[place] = UNSTABLE
        return found


class Run:
    """A broker, a client and the model."""

    def __init__(self, broker: Broker, random: Random) -> None:
        self.broker = broker
        self.random = random
        self.model = Model()
        self.client = OffsetsClient(broker)
        self.producers: dict[str, Producer] = {}
        self.versions: dict[str, int] = {}
        """Versions of the open transactions: the protocol may change between two transactions."""
        self.client.find("any", 0)
        self.client.find("any", 1)
        answer = self.client.join(JOINED)
        self.member: dict[str, Any] = {
            "member_id": answer.member_id,
            "generation_id": answer.generation_id,
        }
        for name in ("p", "q", "r"):
            self.begin_life(name)

    # ---------------------------------------------------------------------------------------- steps

    def begin_life(self, name: str | None = None) -> None:
        """Fence the producer before: what it had open is aborted."""
        name = name or self.producer()
        self.producers[name] = self.client.begin_life(name)
        self.model.end(name, commit=False)
        self.versions.pop(name, None)

    def commit_in_transaction(self) -> None:
        name, group, places = self.producer(), self.random.choice(GROUPS), self.places()
        version = self.versions.setdefault(name, self.random.choice((CLASSIC, IMPLICIT)))
        identity = self.member if group == JOINED else {}
        self.client.committed(self.producers[name], group, places, version, **identity)
        self.model.commit(name, group, places)

    def commit_as_a_zombie(self) -> None:
        """A member that was, one that never was, one that is late: no effect (O5)."""
        name = self.producer()
        version = self.versions.setdefault(name, self.random.choice((CLASSIC, IMPLICIT)))
        if version == CLASSIC:
            assert self.client.add_offsets(self.producers[name], JOINED) == ErrorCode.NONE
        change = self.random.choice(
            [
                {"member_id": "never"},
                {"generation_id": self.member["generation_id"] - 1},
                {"generation_id": -1},
                {"group_instance_id": "never"},
            ]
        )
        identity = self.member | change
        codes = self.client.commit(self.producers[name], JOINED, self.places(), version, **identity)
        assert not set(codes.values()) - {
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
        }

    def commit_as_a_former_producer(self) -> None:
        name, group = self.producer(), self.random.choice(SIMPLE)
        former = self.producers[name].bumped(-1)
        codes = self.client.commit(former, group, self.places(), IMPLICIT)
        assert set(codes.values()) == {ErrorCode.INVALID_PRODUCER_EPOCH}

    def commit_plainly(self) -> None:
        group, places = self.random.choice(SIMPLE), self.places()
        assert self.client.commit_plainly(group, places) == {ErrorCode.NONE}
        self.model.commit(None, group, places)

    def end(self) -> None:
        name = self.producer()
        if name not in self.versions:
            return
        version = self.versions.pop(name)
        commit = self.random.random() < 0.7
        self.producers[name] = self.client.ended(self.producers[name], version, commit=commit)
        self.model.end(name, commit=commit)

    def rejoin(self) -> None:
        answer = self.client.join(JOINED, self.member["member_id"])
        self.member["generation_id"] = answer.generation_id

    def delete_offsets(self) -> None:
        group, place = self.random.choice(SIMPLE), self.random.choice(PLACES)
        known = bool(self.model.keys_of(group))
        expected = ErrorCode.NONE if known else ErrorCode.GROUP_ID_NOT_FOUND
        assert self.client.delete(group, place) == expected
        self.model.forget((group, place))

    def delete_group(self) -> None:
        group = self.random.choice(SIMPLE)
        keys = self.model.keys_of(group)
        answer = self.client.ask(DELETE_GROUPS, DeleteGroupsRequest([group]), 2)
        expected = ErrorCode.NONE if keys else ErrorCode.GROUP_ID_NOT_FOUND
        assert answer.results[0].error_code == expected
        self.model.forget(*keys)

    def crash(self) -> None:
        self.broker.crash()
        self._again()

    def stop(self) -> None:
        self.broker.stop()
        self._again()

    def _again(self) -> None:
        self.client.close()
        self.broker.restart()
        self.client = OffsetsClient(self.broker)

    # -------------------------------------------------------------------------------------- choices

    def producer(self) -> str:
        return self.random.choice(sorted(self.producers))

    def places(self) -> dict[tuple[str, int], int]:
        chosen = self.random.sample(PLACES, self.random.randint(1, len(PLACES)))
        return {place: self.random.randint(0, 999) for place in chosen}

    def check(self) -> None:
        for group in GROUPS:
            for stable in (False, True):
                expected = self.model.seen(group, stable=stable)
                assert self.client.fetch(group, WANTED, stable=stable) == expected, group
        listed = self.client.ask(LIST_GROUPS, ListGroupsRequest(), 5)
        assert listed.error_code == ErrorCode.NONE
        there = {group for group in SIMPLE if self.model.keys_of(group)}
        assert {each.group_id for each in listed.groups} == there | {JOINED}


STEPS_BY_WEIGHT = {
    Run.commit_in_transaction: 10,
    Run.commit_as_a_zombie: 4,
    Run.commit_as_a_former_producer: 1,
    Run.commit_plainly: 4,
    Run.end: 6,
    Run.begin_life: 2,
    Run.rejoin: 1,
    Run.delete_offsets: 2,
    Run.delete_group: 1,
    Run.crash: 1,
    Run.stop: 1,
}


@pytest.mark.parametrize("seed", range(3))
def test_groups_show_what_the_model_says(seed):
    random = Random(seed)
    with Broker(config=SETTINGS, seed=seed) as broker:
        for name, count in TOPICS.items():
            broker.create_topic(name, count)
        broker.port = broker.address[1]
        run = Run(broker, random)
        try:
            for number in range(STEPS):
                (step,) = random.choices(list(STEPS_BY_WEIGHT), STEPS_BY_WEIGHT.values())
                print(f"seed {seed} step {number}: {step.__name__}")
                step(run)
                run.check()
        finally:
            run.client.close()
