"""Subscriptions by pattern (KIP-848) under ACLs, beside Apache Kafka 4.3.0.

They find what their member may describe. One script of heartbeats by users with different rights
is for both brokers. Times, and who of two members gets which partition, are their own; errors,
epochs and the topics of each must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from barnabas.broker.security.acls.operations import WILDCARD, Operation, Permission, ResourceType
from tests.broker.security.access_users import (
    PASSWORD,
    UserClient,
    acl,
    add_acls,
    allow,
    remove_acls,
)
from tests.counterparts.secured import Secured, SecuredKafka
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import check_equal
from tests.interop.consumer_group import LEAVE, Group, create, wait_for_coordinator
from tests.interop.recorded_kafka import SecuredBarnabas
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

SETTINGS = {"group.consumer.assignment.interval.ms": "0"}
TOPICS = ("seen", "hidden", "other")
PATTERN, ANY_PATTERN = "seen|hidden|other", "[a-z]+"
EVERYTHING, SOME, ALL_BUT, NOTHING, OUTSIDE = "everything", "some", "allbut", "nothing", "outside"
USERS = (EVERYTHING, SOME, ALL_BUT, NOTHING, OUTSIDE)
QUIET_HEARTBEATS = 15
"""The number of heartbeats without a change after which a member is settled. They are a tenth of a
second apart, or more if the broker is slow; a pause of the broker counts as one."""
PAUSE_S = 0.1

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
RIGHTS = [
    *(each for user in USERS[:-1] for each in allow(user, GROUP, WILDCARD, Operation.READ)),
    *allow(EVERYTHING, TOPIC, WILDCARD, Operation.READ),
    *allow(SOME, TOPIC, "seen", Operation.DESCRIBE),
    *allow(ALL_BUT, TOPIC, WILDCARD, Operation.READ),
    acl(ALL_BUT, TOPIC, "hidden", Operation.DESCRIBE, Permission.DENY),
    *allow(OUTSIDE, TOPIC, WILDCARD, Operation.READ),
]


class Side:
    """One broker with its topics, and its users' connections."""

    def __init__(self, broker: Secured) -> None:
        self.broker = broker
        self.admin = WireClient(broker)
        wait_for_coordinator(self.admin)
        self.ids = {name: create(self.admin, name, 1) for name in TOPICS}
        add_acls(self.admin, RIGHTS)
        self._users = {user: UserClient(broker.sasl_address, user) for user in USERS}

    def group(self, user: str, group_id: str) -> Group:
        """A group as a user speaks to it."""
        client: Any = self._users[user]
        return Group(client, group_id, self.ids)

    def close(self) -> None:
        for client in (self.admin, *self._users.values()):
            client.close()

    def topics(self, group: Group, member: str = "m") -> list[str]:
        """The names of what a member was last told to own."""
        names = {topic_id: name for name, topic_id in self.ids.items()}
        return sorted(names[bytes(each.topic_id)] for each in group.has.get(member, ()))


class Member:
    """One member, which follows the last response."""

    def __init__(self, side: Side, user: str, group_id: str, name: str = "m") -> None:
        self._side = side
        self._group = side.group(user, group_id)
        self._name = name
        self._epoch = 0

    def join(self, pattern: str | None = PATTERN, **more: Any) -> tuple[int, int]:
        """Join; return the error and the epoch."""
        names = more.pop("names", None)
        return self._told(
            self._group.join(self._name, names, subscribed_topic_regex=pattern, **more)
        )

    def go_on(self, **more: Any) -> tuple[int, int]:
        """Send a heartbeat with the assigned partitions; return the error and the epoch."""
        return self._told(self._group.heartbeat(self._name, self._epoch, owned=True, **more))

    def _told(self, answer: Any) -> tuple[int, int]:
        if not answer.error_code:
            self._epoch = answer.member_epoch
        return answer.error_code, answer.member_epoch

    @property
    def topics(self) -> list[str]:
        """The topics that the member owns."""
        return self._side.topics(self._group, self._name)

    def settled(self) -> tuple[int, int, list[str]]:
        """Return the error, the epoch and the topics once they stay the same."""
        told, quiet = self.go_on(), 0
        while quiet < QUIET_HEARTBEATS:
            self._side.broker.let_pass(PAUSE_S)
            before, told = (told, self.topics), self.go_on()
            quiet = quiet + 1 if before == (told, self.topics) else 0
        return (*told, self.topics)

    def until(self, topics: list[str]) -> tuple[int, list[str]]:
        """Send heartbeats until the member owns these topics."""

        def is_over() -> bool:
            self._side.broker.let_pass(PAUSE_S)
            return bool(self.go_on()[0]) or self.topics == topics

        wait_until(is_over, f"the topics of {self._name}")
        return self.go_on()[0], self.topics

    def leave(self) -> int:
        code: int = self._group.heartbeat(self._name, LEAVE).error_code
        return code

    def described(self) -> list[tuple[int, int]]:
        """Return the errors and numbers of members that a user gets for its group."""
        return [(each.error_code, len(each.members)) for each in self._group.describe().groups]


def alone(side: Side) -> Iterator[tuple[str, Any]]:
    for user in USERS:
        for pattern in (ANY_PATTERN, "nothing-like-it"):
            member = Member(side, user, f"alone-{user}-{len(pattern)}")
            yield f"{user} joins by {pattern}", member.join(pattern)
            if user != OUTSIDE:
                yield f"{user} has got by {pattern}", member.settled()
            yield f"{user} describes {pattern}", member.described()
            yield f"{user} leaves {pattern}", member.leave()
        member = Member(side, user, f"wrong-{user}")
        yield f"{user} joins by what is no pattern", member.join("(")


def names_beside_a_pattern(side: Side) -> Iterator[tuple[str, Any]]:
    for user in USERS:
        for names in ("seen", "hidden", "absent"):
            member = Member(side, user, f"both-{user}-{names}")
            told = member.join(names=names)
            yield f"{user} names {names}", told
            if not told[0]:
                yield f"{user} with {names}", member.settled()
                yield f"{user} names nothing", member.go_on(names="")
                yield f"{user} names hidden", member.go_on(names="hidden")


def two_users(side: Side) -> Iterator[tuple[str, Any]]:
    """Yield results of two users: a resolved pattern ignores the second user's ACLs."""
    first = Member(side, EVERYTHING, "two", "m1")
    yield "first", first.join()
    yield "first has", first.settled()
    second = Member(side, SOME, "two", "m2")
    yield "second, by the same pattern", second.join()[0]
    for _ in range(3):
        first.go_on()
        second.go_on()
    both = sorted([*first.topics, *second.topics])
    yield "by the pattern that is resolved", both
    yield "second leaves", second.leave()
    yield "first has all again", first.until(sorted(TOPICS))


def rights_that_change(side: Side) -> Iterator[tuple[str, Any]]:
    member = Member(side, SOME, "changing")
    yield "join", member.join()
    yield "has", member.until(["seen"])
    more = allow(SOME, TOPIC, "other", Operation.DESCRIBE)
    add_acls(side.admin, more)
    create(side.admin, "new-1", 1)  # Has Apache Kafka look again, which has ten minutes else.
    yield "has more", member.until(["other", "seen"])
    remove_acls(side.admin, more)
    create(side.admin, "new-2", 1)
    yield "has less", member.until(["seen"])
    gone = allow(SOME, GROUP, WILDCARD, Operation.READ)
    remove_acls(side.admin, gone)
    yield "not the group", member.go_on()
    add_acls(side.admin, gone)
    yield "the group", member.go_on()[0]


Script = Callable[[Side], Iterator[tuple[str, Any]]]
SCRIPTS: tuple[Script, ...] = (alone, names_beside_a_pattern, two_users, rights_that_change)


PASSWORDS = dict.fromkeys(USERS, PASSWORD)


@pytest.fixture(scope="module")
def ours() -> Iterator[Side]:
    with SecuredBarnabas(PASSWORDS, **SETTINGS) as broker, closing(Side(broker)) as side:
        yield side


@pytest.fixture(scope="module")
def live_kafka() -> Iterator[Side]:
    with SecuredKafka(PASSWORDS, **SETTINGS) as broker, closing(Side(broker)) as side:
        yield side


@pytest.mark.parametrize("script", SCRIPTS)
def test_patterns_find_what_they_find_in_apache_kafka(ours, kafka, script):
    theirs = kafka.observe(script.__name__, lambda side: dict(script(side)))
    check_equal(dict(script(ours)), theirs, {})
