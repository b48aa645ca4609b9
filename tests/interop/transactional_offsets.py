"""One script about offsets in transactions, for two brokers to answer; see comparison.py."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Self

from barnabas.protocol.messages.create_topics import CREATE_TOPICS
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.wire import ZERO_UUID
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.offsets_client import (
    CLASSIC,
    IMPLICIT,
    PATIENCE_SECONDS,
    OffsetsClient,
    Producer,
)
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import Answer, comparable
from tests.interop.consumer_group import LEAVE, Group
from tests.requests import create_topics_request

TOPIC, OTHER, GOES = "offsets-in-transactions", "offsets-elsewhere", "offsets-that-go"
FIRST = {(TOPIC, 0): 5}
VERSIONS = (3, 5)
NOBODY = {"generation_id": -1, "member_id": "", "group_instance_id": None}

ON_PURPOSE = {
    "no id by nobody": "without an id there is no transaction: the offsets would hang for ever",
    "no id by a stranger": "the same",
    "listed after the abort": "what was aborted leaves nothing behind, with a restart or without",
    "described after the abort": "the same",
    "deleted after the abort": "the same",
}


class Script:
    """The requests to one broker, and its responses."""

    def __init__(self, broker: BrokerProcess, name: str) -> None:
        self.broker = broker
        self.name = name
        self.client = OffsetsClient(broker)
        self.second: WireClient | None = None
        self.lives = 0
        self.added: set[tuple[Producer, str]] = set()
        self._create(TOPIC)
        self._create(OTHER)
        self.client.find("any", 0)
        self.client.find("any", 1)
        self._wait(TOPIC)
        self._wait(OTHER)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.client.close()
        if self.second is not None:
            self.second.close()

    def _create(self, name: str) -> None:
        """Create a topic that an earlier script may have created."""
        self.client.ask(CREATE_TOPICS, create_topics_request(name, partitions=4), 7)

    def _wait(self, name: str) -> None:
        """Wait until the topic accepts commits."""
        self.client.patiently(lambda: self.client.commit_plainly("waits", {(name, 0): 0}), max)

    def _id(self, name: str) -> bytes:
        asked = MetadataRequest([MetadataRequestTopic(ZERO_UUID, name)], False)
        (topic,) = self.client.ask(METADATA, asked, 12).topics
        return topic.topic_id

    def producer(self) -> Producer:
        self.lives += 1
        return self.client.begin_life(f"{self.name}-{self.lives}")

    def listed(self, *groups: str) -> list[Any]:
        found = self.client.ask(LIST_GROUPS, ListGroupsRequest(), 5).groups
        return [comparable(each) for each in found if each.group_id in groups]

    def described(self, group: str) -> Any:
        return comparable(self.client.ask(DESCRIBE_GROUPS, DescribeGroupsRequest([group]), 5))

    def delete_group(self, group: str) -> int:
        answer = self.client.ask(DELETE_GROUPS, DeleteGroupsRequest([group]), 2)
        return int(answer.results[0].error_code)

    # ------------------------------------------------------------------------------------- fencing

    def fencing(self) -> Iterator[Answer]:
        """Every kind of group, every identity (KIP-447)."""
        producer = self.producer()
        groups = {
            "missing": ("", 0),
            "simple": ("", 0),
            "empty": ("gone", 1),
            "preparing": ("", 1),
            "completing": ("", 1),
            "stable": ("", 1),
            "static": ("", 1),
        }
        for name in groups:
            group = f"fencing-{name}"
            member, generation = getattr(self, f"_{name}")(group)
            for version in VERSIONS:
                for label, identity in _identities(member, generation):
                    asked = f"{group}-{version}-{label}" if name == "missing" else group
                    codes = self._probe(producer, asked, version, identity)
                    yield f"{name}: {label} v{version}", codes
        for version in (0, 1, 2):
            yield f"stable v{version}", self._probe(producer, "fencing-stable", version, {})

    def _probe(
        self, producer: Producer, group: str, version: int, identity: dict[str, Any]
    ) -> list[tuple[tuple[str, int], int]]:
        if version < IMPLICIT and (producer, group) not in self.added:
            self.client.patiently(lambda: self.client.add_offsets(producer, group), int)
            self.added.add((producer, group))
        places = {(TOPIC, 0): 5, (OTHER, 1): 6}
        return sorted(self.client.commit(producer, group, places, version, **identity).items())

    def _missing(self, _group: str) -> tuple[str, int]:
        return "m", 3

    def _simple(self, group: str) -> tuple[str, int]:
        self.client.commit_plainly(group, FIRST)
        return "m", 3

    def _stable(self, group: str) -> tuple[str, int]:
        answer = self.client.join(group)
        return answer.member_id, answer.generation_id

    def _static(self, group: str) -> tuple[str, int]:
        answer = self.client.join(group, group_instance_id="i")
        return answer.member_id, answer.generation_id

    def _completing(self, group: str) -> tuple[str, int]:
        answer = self.client.join(group, sync=False)
        return answer.member_id, answer.generation_id

    def _preparing(self, group: str) -> tuple[str, int]:
        found = self._stable(group)
        protocols = [JoinGroupRequestProtocol("range", b"")]
        # All requests in this state take less time than that.
        request = JoinGroupRequest(group, 300_000, 300_000, "", None, "consumer", protocols)
        self.second = WireClient(self.broker)
        self.second.send(JOIN_GROUP, request, 3)  # Its response waits until the first member joins.
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._state(group) != "PreparingRebalance":
            assert time.monotonic() < deadline
        return found

    def _state(self, group: str) -> str:
        described = self.client.ask(DESCRIBE_GROUPS, DescribeGroupsRequest([group]), 5)
        return str(described.groups[0].group_state)

    def _empty(self, group: str) -> tuple[str, int]:
        member, generation = self._stable(group)
        self.client.ask(LEAVE_GROUP, LeaveGroupRequest(group, "", [MemberIdentity(member)]), 5)
        return member, generation

    def fencing_of_consumer_groups(self) -> Iterator[Answer]:
        """A member of the newer protocol, and of an epoch it has left (KIP-848, KIP-1251)."""
        producer = self.producer()
        ids = {TOPIC: self._id(TOPIC), OTHER: self._id(OTHER)}
        group = Group(self.client, "fencing-consumer", ids)
        group.join("m", TOPIC)
        group.heartbeat("m", 2, names=f"{TOPIC} {OTHER}", owned=True)
        answer = group.heartbeat("m", 3, owned=True)
        yield "epoch", answer.member_epoch
        for version in VERSIONS:
            for label, identity in _identities("m", answer.member_epoch):
                yield (
                    f"consumer: {label} v{version}",
                    self._probe(producer, group.group_id, version, identity),
                )
            for place in ((TOPIC, 0), (OTHER, 0)):
                codes = self.client.commit(
                    producer,
                    group.group_id,
                    {place: 1},
                    version,
                    member_id="m",
                    generation_id=answer.member_epoch - 1,
                )
                yield f"consumer: the epoch before, {place} v{version}", codes[place]
        group.heartbeat("m", LEAVE)
        for version in VERSIONS:
            for label, identity in _identities("m", answer.member_epoch):
                yield (
                    f"consumer, empty: {label} v{version}",
                    self._probe(producer, group.group_id, version, identity),
                )

    # -------------------------------------------------------------------------------------- checks

    def checks(self) -> Iterator[Answer]:
        """Yield the errors for a wrong transaction, a wrong request, and both."""
        member, generation = self._stable("checks")
        stranger = {"member_id": "stranger", "generation_id": generation}
        open_one, idle, fenced = self.producer(), self.producer(), self.producer()
        self.client.begin_life(fenced.transactional_id)
        self.client.committed(open_one, "checks", {(TOPIC, 3): 1}, CLASSIC)
        producers = {
            "open": open_one,
            "idle": self.producer(),
            "fenced": fenced,
            "later": open_one.bumped(),
            "another id's": open_one._replace(producer_id=idle.producer_id),
            "unknown": Producer("nobody", 99_999, 0),
            "no id": Producer("", open_one.producer_id, 0),
            "no producer": open_one._replace(producer_id=-1, epoch=-1),
        }
        for label, producer in producers.items():
            for who, identity in (("nobody", {}), ("a stranger", stranger)):
                found = []
                for version in range(3 if identity else 0, 6):
                    asker = self.producer() if label == "idle" else producer
                    codes = self.client.commit(asker, "checks", FIRST, version, **identity)
                    found.append((version, sorted(codes.items())))
                    if label == "idle" and version >= IMPLICIT:
                        # It was opened, were the offsets refused or not.
                        self.client.ended(asker, IMPLICIT, commit=False)
                yield f"{label} by {who}", found
        mine = {"member_id": member, "generation_id": generation}
        for label, places in (
            ("nothing", {}),
            ("a missing topic", {("missing", 0): 1}),
            ("a missing partition", {(TOPIC, 9): 1, (TOPIC, 1): 1}),
            ("a number below zero", {(TOPIC, 1): -1}),
        ):
            for who, producer, identity in (
                ("the member", open_one, mine),
                ("the fenced", fenced, mine),
                ("a stranger", open_one, stranger),
            ):
                for version in VERSIONS:
                    codes = self.client.commit(producer, "checks", places, version, **identity)
                    yield f"{label} by {who} v{version}", sorted(codes.items())
        for version in (2, 4, 5):
            codes = self.client.commit(open_one, "", FIRST, version)
            yield f"no group v{version}", sorted(codes.items())
            codes = self.client.commit(fenced, "", FIRST, version)
            yield f"no group by the fenced v{version}", sorted(codes.items())
            for who, producer, identity in (
                ("member", open_one, mine),
                ("fenced", fenced, mine),
                ("stranger", open_one, stranger),
            ):
                codes = self.client.commit(
                    producer,
                    "checks",
                    {(TOPIC, 2): 1},
                    version,
                    "x" * 4097,
                    **(identity if version > 2 else {}),
                )
                yield f"long metadata of the {who} v{version}", sorted(codes.items())
        yield "after all", self.client.fetch("checks", {TOPIC: [0, 1, 2, 3]})
        self.client.ended(open_one, CLASSIC, commit=True)
        self._settle("checks")
        yield "after the commit", self.client.fetch("checks", {TOPIC: [0, 1, 2, 3]})

    def _settle(self, group: str) -> None:
        """Wait until no offset of the group is pending."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        wanted = {TOPIC: [0, 1, 2, 3], OTHER: [0, 1, 2, 3]}
        while "unstable" in self.client.fetch(group, wanted).values():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    # ------------------------------------------------------------------------------------- pending

    def pending(self) -> Iterator[Answer]:
        """Hidden until the marker; then the log's order decides."""
        wanted = {TOPIC: [0, 1, 2, 3]}
        for version in (CLASSIC, IMPLICIT):
            for ends in (True, False):
                name = f"pending-{version}-{ends}"
                producer = self.producer()
                self.client.commit_plainly(name, {(TOPIC, 0): 1, (TOPIC, 1): 1})
                self.client.committed(producer, name, {(TOPIC, 0): 2, (TOPIC, 2): 2}, version)
                self.client.committed(producer, name, {(TOPIC, 0): 3, (TOPIC, 1): 3}, version)
                self.client.commit_plainly(name, {(TOPIC, 1): 4})
                yield f"{name} stable", self.client.fetch(name, wanted)
                yield f"{name} unstable", self.client.fetch(name, wanted, stable=False)
                yield f"{name} everything", self.client.fetch(name)
                self.client.ended(producer, version, commit=ends)
                self._settle(name)
                yield f"{name} ended", self.client.fetch(name)
        one, two = self.producer(), self.producer()
        self.client.committed(one, "shared", {(TOPIC, 0): 1, (TOPIC, 1): 1})
        self.client.committed(two, "shared", {(TOPIC, 0): 2, (TOPIC, 2): 2})
        self.client.ended(two, IMPLICIT, commit=True)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.client.fetch("shared", wanted)[TOPIC, 2] == "unstable":
            assert time.monotonic() < deadline
        yield "the second has committed", self.client.fetch("shared", wanted)
        yield "and the first is open", self.client.fetch("shared", wanted, stable=False)
        self.client.ended(one, IMPLICIT, commit=True)
        self._settle("shared")
        yield "then the first", self.client.fetch("shared")

    # ------------------------------------------------------------------------------------- removal

    def removal(self) -> Iterator[Answer]:
        """Yield the offsets of a topic deleted while they are pending: they never appear (O7)."""
        self._create(GOES)
        self._wait(GOES)
        producer = self.producer()
        client = self.client
        client.committed(producer, "only-pending", FIRST)
        yield "listed", self.listed("only-pending")
        yield "described", self.described("only-pending")
        client.committed(producer, "deleted-offsets", {(TOPIC, 0): 1, (TOPIC, 1): 1})
        client.commit_plainly("deleted-offsets", {(TOPIC, 2): 1})
        yield "delete offsets", client.delete("deleted-offsets", (TOPIC, 0), (TOPIC, 2))
        yield "after that", client.fetch("deleted-offsets", {TOPIC: [0, 1, 2]})
        client.committed(producer, "deleted-group", {(TOPIC, 0): 1})
        client.commit_plainly("deleted-group", {(TOPIC, 1): 1})
        yield "delete the group", self.delete_group("deleted-group")
        yield "nothing of it", client.fetch("deleted-group", {TOPIC: [0, 1]})
        yield "not listed", self.listed("deleted-group")
        client.committed(producer, "deleted-topic", {(GOES, 0): 1, (TOPIC, 0): 1})
        request = DeleteTopicsRequest(topic_names=[GOES], timeout_ms=9000)
        client.ask(DELETE_TOPICS, request, 5)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while client.fetch("deleted-topic", {GOES: [0]})[GOES, 0] == "unstable":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        client.ended(producer, IMPLICIT, commit=True)
        self._settle("only-pending")
        for group in ("only-pending", "deleted-offsets", "deleted-group", "deleted-topic"):
            self._settle(group)
            yield f"{group} in the end", client.fetch(group, {TOPIC: [0, 1, 2], GOES: [0]})
        aborting = self.producer()
        client.committed(aborting, "aborted", FIRST)
        client.ended(aborting, IMPLICIT, commit=False)
        self._settle("aborted")
        yield "listed after the abort", self.listed("aborted")
        yield "described after the abort", self.described("aborted")
        yield "deleted after the abort", self.delete_group("aborted")


def _identities(member: str, generation: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for label, (member_id, number, instance) in {
        "nobody": ("", -1, None),
        "a generation alone": ("", generation, None),
        "generation 0 alone": ("", 0, None),
        "the member": (member, generation, None),
        "the member, late": (member, generation - 1, None),
        "the member, early": (member, generation + 1, None),
        "the member without a generation": (member, -1, None),
        "a stranger": ("stranger", generation, None),
        "a stranger without a generation": ("stranger", -1, None),
        "the static member": (member, generation, "i"),
        "a static stranger": ("stranger", generation, "i"),
        "a static member, late": (member, generation - 1, "i"),
        "another instance": (member, generation, "j"),
        "an instance alone": ("", -1, "i"),
    }.items():
        yield (
            label,
            NOBODY
            | {
                "member_id": member_id,
                "generation_id": number,
                "group_instance_id": instance,
            },
        )


FAMILIES = {
    name: getattr(Script, name)
    for name in ("fencing", "fencing_of_consumer_groups", "checks", "pending", "removal")
}
