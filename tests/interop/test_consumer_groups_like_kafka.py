"""Consumer groups (KIP-848) beside Apache Kafka 4.3.0: one script of requests is for both.

Member ids that the broker makes up, topic ids and times cannot be equal. In Kafka the owner of a
partition depends on the order of a hash map, so assignments are compared by their sizes. Everything
else must be equal, error by error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import check_equal
from tests.interop.consumer_group import (
    FOUR,
    LEAVE,
    LEAVE_FOR_A_WHILE,
    SIX,
    Group,
    comparable,
    create,
    delete,
    grow,
    until,
    wait_for_coordinator,
)
from tests.interop.recorded_kafka import Barnabas, RecordedKafka

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

SETTINGS = {
    "group.consumer.max.size": "3",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "30000",
}
Script = Callable[[Group], Iterator[tuple[str, Any]]]

# -------------------------------------------------------------------------------------- scripts


def requests_that_are_wrong(group: Group) -> Iterator[tuple[str, Any]]:
    yield "no member id in v1", group.join("")
    yield "a blank member id", group.join("  ")
    yield "no member id in v0", len(group.join("", version=0).member_id)
    yield "no member id when going on in v0", group.heartbeat("", 3, version=0)
    yield "no member id when leaving in v0", group.heartbeat("", LEAVE, version=0)
    yield "no group id", group.join("m", group_id="")
    yield "a blank group id", group.join("m", group_id=" ")
    yield "an empty instance id", group.join("m", instance_id="")
    yield "an empty rack id", group.join("m", rack_id="")
    yield "no rebalance timeout", group.join("m", rebalance_timeout_ms=-1)
    yield "partitions not named", group.join("m", owned=None)
    yield "partitions owned", group.join("m", owned=group.topics(SIX, [0]))
    yield "no subscription", group.join("m", names=None)
    yield "a static leave without an instance", group.heartbeat("m", LEAVE_FOR_A_WHILE)
    yield "an impossible epoch", group.heartbeat("m", -3)
    yield "an unknown assignor", group.join("m", server_assignor="sticky")
    yield "an empty assignor", group.join("m", server_assignor="")
    yield "not a regular expression", group.join("m", None, subscribed_topic_regex="(")
    yield "not even with names", group.join("m", SIX, subscribed_topic_regex="[")


def groups_that_are_not_there(group: Group) -> Iterator[tuple[str, Any]]:
    yield "go on", group.heartbeat("m", 1)
    yield "leave", group.heartbeat("m", LEAVE)
    yield "leave for a while", group.heartbeat("m", LEAVE_FOR_A_WHILE, instance_id="i")
    yield "describe", group.describe()
    yield "describe nobody", group.describe("")
    group.join_classic("")
    yield "go on in an empty classic group", group.heartbeat("m", 1)
    yield "describe a classic group", group.describe()


def one_member(group: Group) -> Iterator[tuple[str, Any]]:
    yield "join", group.join("m1")
    yield "join again", group.join("m1")
    yield "go on", group.heartbeat("m1", 2)
    yield (
        "say everything",
        group.heartbeat("m1", 2, names=SIX, owned=True, rebalance_timeout_ms=30_000),
    )
    for version in (0, 1):
        yield f"described v{version}", group.describe(version=version)
    yield "described with operations", group.describe(operations=True)
    yield "listed", group.list()
    yield "listed by type", group.list("Consumer")
    yield "not listed by type", group.list("classic")
    yield "a later epoch", group.heartbeat("m1", 3, owned=True)
    yield "an earlier epoch", group.heartbeat("m1", 1)
    yield "the epoch before, owning nothing", group.heartbeat("m1", 0 + 1, owned=[])
    yield "somebody else", group.heartbeat("m9", 2)
    yield "somebody static", group.heartbeat("m1", 2, instance_id="i")
    yield "subscribe to more", group.heartbeat("m1", 2, names=f"{SIX} {FOUR}")
    yield "subscribe to less", group.heartbeat("m1", 3, names=FOUR, owned=True)
    yield "say it is done", group.heartbeat("m1", 4, owned=group.topics(FOUR, [0, 1, 2, 3]))
    yield "subscribe to nothing there is", group.heartbeat("m1", 4, names="nothing", owned=True)
    yield "done", group.heartbeat("m1", 5, owned=[])
    yield "another assignor", group.heartbeat("m1", 5, server_assignor="range")
    yield "described then", group.describe()
    yield "leave", group.heartbeat("m1", LEAVE)
    yield "described empty", group.describe()
    yield "leave again", group.heartbeat("m1", LEAVE)
    yield "join once more", group.join("m1", rack_id="r", server_assignor="range")
    yield "deleted too early", group.delete()
    group.heartbeat("m1", LEAVE)
    yield "deleted", group.delete()
    yield "described when deleted", group.describe()


def three_members(group: Group) -> Iterator[tuple[str, Any]]:
    yield "first", group.join("m1")
    yield "second waits", group.join("m2")
    yield "described", group.describe()
    yield "first has to give back", group.heartbeat("m1", 2, owned=True)
    yield "described while revoking", group.describe()
    kept = group.has["m1"]
    yield "first says nothing", group.heartbeat("m1", 2)
    yield (
        "first says it still has all",
        group.heartbeat("m1", 2, owned=group.topics(SIX, list(range(6)))),
    )
    yield "second still waits", group.heartbeat("m2", 3)
    yield "first has given back", group.heartbeat("m1", 2, owned=kept)
    yield "second gets it", group.heartbeat("m2", 3)
    yield "described stable", group.describe()
    yield "third", group.join("m3", rebalance_timeout_ms=10_000)
    yield "fourth is too many", group.join("m4")
    yield "first gives one", group.heartbeat("m1", 3, owned=True)
    yield "second gives one", group.heartbeat("m2", 3, owned=True)
    yield "third has something to wait for", group.heartbeat("m3", 4)
    for name in ("m1", "m2"):
        yield f"{name} done", group.heartbeat(name, 3, owned=True)
    yield "third gets it", group.heartbeat("m3", 4)
    yield "stable again", group.describe()
    yield "second leaves", group.heartbeat("m2", LEAVE)
    yield "first takes over", group.heartbeat("m1", 4)
    yield "third takes over", group.heartbeat("m3", 4)
    yield "all there", group.describe()
    yield "the epoch before is taken", group.heartbeat("m1", 4, owned=True)
    yield "but not with more", group.heartbeat("m1", 4, owned=group.topics(SIX, list(range(6))))
    yield "nor without a word", group.heartbeat("m1", 4)


def range_and_different_topics(group: Group) -> Iterator[tuple[str, Any]]:
    yield "range", group.join("m1", f"{SIX} {FOUR}", server_assignor="range")
    yield "another one", group.join("m2", FOUR, server_assignor="range")
    yield "gives back", group.heartbeat("m1", 2, owned=True)
    yield "has given back", group.heartbeat("m1", 2, owned=True)
    yield "takes", group.heartbeat("m2", 3)
    yield "described", group.describe()
    yield "vote for uniform", group.heartbeat("m1", 3, server_assignor="uniform")
    yield "vote with it", group.heartbeat("m2", 3, server_assignor="uniform")
    yield "third", group.join("m3", SIX)
    yield "moves", group.heartbeat("m1", 3, owned=True)
    yield "moved", group.heartbeat("m1", 3, owned=True)
    yield "others", group.heartbeat("m2", 3, owned=True)
    yield "gets", group.heartbeat("m3", 4)
    yield "in the end", group.heartbeat("m2", 4, owned=True)
    yield "described at the end", group.describe()


def static_members(group: Group) -> Iterator[tuple[str, Any]]:
    yield "join", group.join("m1", instance_id="i1")
    yield "another with its name", group.join("m2", instance_id="i1")
    yield "another that is it", group.heartbeat("m2", 2, instance_id="i1")
    yield "nobody's instance", group.heartbeat("m1", 2, instance_id="i9")
    yield "leaves for a while", group.heartbeat("m1", LEAVE_FOR_A_WHILE, instance_id="i1")
    yield "described away", group.describe()
    yield "goes on while away", group.heartbeat("m1", 2, instance_id="i1")
    yield "another comes meanwhile", group.join("m3")
    yield "comes back", group.join("m4", instance_id="i1")
    yield "described back", group.describe()
    yield "the old one", group.heartbeat("m1", LEAVE, instance_id="i1")
    yield "does its part", group.heartbeat("m4", 3, owned=True, instance_id="i1")
    yield "the other", group.heartbeat("m3", 3)
    yield "leaves by instance", group.heartbeat("m4", LEAVE, instance_id="i1")
    yield "leaves twice", group.heartbeat("m4", LEAVE, instance_id="i1")
    yield "described without", group.describe()


def topics_that_change(group: Group) -> Iterator[tuple[str, Any]]:
    names = f"{group.group_id}-a {group.group_id}-b"
    first, second = names.split()
    yield "a topic that is not there", group.join("m1", names)
    group.ids[first] = create(group.client, first, 2)
    yield "it comes", until(lambda: group.heartbeat("m1", 2), lambda r: r.member_epoch > 2)
    yield "described", group.describe()
    grow(group.client, first, 3)
    yield "it grows", until(lambda: group.heartbeat("m1", 3), lambda r: r.member_epoch > 3)
    group.ids[second] = create(group.client, second, 1)
    yield "another comes", until(lambda: group.heartbeat("m1", 4), lambda r: r.member_epoch > 4)
    delete(group.client, first)
    yield (
        "it goes",
        until(lambda: group.heartbeat("m1", 5, owned=True), lambda r: r.assignment is not None),
    )
    yield "given up", group.heartbeat("m1", 5, owned=True)
    yield "described then", group.describe()


def regular_expressions(group: Group) -> Iterator[tuple[str, Any]]:
    yield "join", group.join("m1", None, subscribed_topic_regex="s(i)x")
    yield "resolved", until(lambda: group.heartbeat("m1", 1), lambda r: r.member_epoch > 1)
    yield "described", group.describe()
    yield "the same again", group.join("m2", None, subscribed_topic_regex="s(i)x")
    yield "gives", group.heartbeat("m1", 2, owned=True)
    yield "given", group.heartbeat("m1", 2, owned=True)
    yield "gets", group.heartbeat("m2", 3)
    yield "a wrong one", group.heartbeat("m2", 3, subscribed_topic_regex="*")
    yield "a name in its place", group.heartbeat("m2", 3, names=FOUR, subscribed_topic_regex="")
    yield "the first gets all", group.heartbeat("m1", 3)
    yield "the other says what it has", group.heartbeat("m2", 4, owned=group.topics(FOUR, [0]))
    yield "described both", group.describe()
    yield "only a part of a name", group.join("m3", None, subscribed_topic_regex="si")


def offsets(group: Group) -> Iterator[tuple[str, Any]]:
    group.join("m1")
    for version in (8, 9):
        yield f"commit v{version}", group.commit("m1", 2, version=version)
    yield "commit of an epoch to come", group.commit("m1", 3)
    yield "commit of an epoch long gone", group.commit("m1", 1)
    yield "commit by nobody", group.commit("", -1)
    yield "commit by somebody else", group.commit("m9", 2)
    yield "fetch", group.fetch("m1", 2)
    yield "fetch of another epoch", group.fetch("m1", 1)
    yield "fetch by nobody", group.fetch(None, -1)
    yield "fetch by somebody else", group.fetch("m9", 2)
    group.join("m2")
    group.heartbeat("m1", 2, owned=True)
    mine = group.has["m1"][0].partitions[0]
    other = next(each for each in range(6) if each not in group.has["m1"][0].partitions)
    group.heartbeat("m1", 2, owned=True)
    yield "commit of the epoch before", _coded(group.commit("m1", 2, mine))
    yield "of what is gone", _coded(group.commit("m1", 2, other))
    group.heartbeat("m1", LEAVE)
    group.heartbeat("m2", LEAVE)
    yield "commit when empty", group.commit("", -1)
    yield "fetch when empty", group.fetch(None, -1)


def _coded(response: Any) -> list[int]:
    return [each.error_code for topic in response.topics for each in topic.partitions]


def upgrade_and_downgrade(group: Group) -> Iterator[tuple[str, Any]]:
    classic = group.join_classic("").member_id
    joined = group.join_classic(classic)
    yield "a classic group", joined.generation_id
    leader = group.sync(classic, 1)
    yield "its leader", leader.error_code
    yield "a consumer joins", group.join("m1")
    yield "described", _without_ids(group.describe(), classic)
    yield "described as a classic group", group.describe_classic()
    yield "the classic member is called", group.heartbeat_classic(classic, 1)
    yield "by another generation", group.heartbeat_classic(classic, 7)
    yield "the consumer's heartbeat", group.heartbeat_classic("m1", 2)
    again = group.join_classic(classic)
    yield "joins", (again.error_code, again.generation_id, again.leader, again.protocol_name)
    yield "syncs", comparable(group.sync(classic, again.generation_id))
    yield "by another protocol", group.sync(classic, again.generation_id, protocol="roundrobin")
    yield "with nothing in common", group.join_classic("", protocols="other").error_code
    yield "as something else", group.join_classic("", protocol_type="connect").error_code
    yield "without an id", group.join_classic("").error_code
    yield "with a static id", group.join_classic("nobody", instance="i1").error_code
    yield "heartbeat", group.heartbeat_classic(classic, again.generation_id)
    yield "consumer goes on", group.heartbeat("m1", 2)
    yield "strangers leave", group.leave_classic(("nobody", None), ("", "i1"))
    yield "consumer leaves", group.heartbeat("m1", LEAVE)
    yield "listed", group.list()
    yield "described as a consumer group", group.describe()
    yield "has to join", group.heartbeat_classic(classic, again.generation_id).error_code
    alone = group.join_classic(classic)
    yield "alone", (alone.error_code, alone.generation_id, alone.leader == classic)


def a_consumer_replaced_by_a_classic_member(group: Group) -> Iterator[tuple[str, Any]]:
    group.join("m1", instance_id="i1")
    joined = group.join_classic("", instance="i1", owned={})
    member = joined.member_id
    yield "joined", (joined.error_code, joined.generation_id, joined.leader == member)
    synced = group.sync(member, joined.generation_id, instance="i1")
    yield "synced", (synced.error_code, len(synced.assignment))
    yield "the old one", group.heartbeat("m1", 2, instance_id="i1")
    yield "listed", group.list()


def classic_members_among_consumers(group: Group) -> Iterator[tuple[str, Any]]:
    group.join("m1")
    classic = group.join_classic("").member_id
    joined = group.join_classic(classic)
    yield "joined", (joined.error_code, joined.generation_id)
    yield "waits", comparable(group.sync(classic, joined.generation_id))
    yield "nothing to do", group.heartbeat_classic(classic, joined.generation_id)
    group.heartbeat("m1", 2, owned=True)
    group.heartbeat("m1", 2, owned=True)
    yield "something to take", group.heartbeat_classic(classic, joined.generation_id)
    again = group.join_classic(classic)
    yield "takes", (again.error_code, again.generation_id)
    yield "takes it", comparable(group.sync(classic, again.generation_id))
    yield "described", _without_ids(group.describe(), classic)
    answer = group.heartbeat(classic, again.generation_id)
    yield "a consumer on a classic id", (answer.error_code, answer.member_epoch)
    yield "leaves", group.leave_classic((classic, None)).error_code
    yield "consumer alone", group.heartbeat("m1", 3)


def _without_ids(response: Any, *member_ids: str) -> Any:
    for group in response.groups:
        for member in group.members:
            if member.member_id in member_ids:
                member.member_id = "made up"
    return response


def sessions(group: Group) -> Iterator[tuple[str, Any]]:
    """Times are short for this group alone, but longer than what comes between two requests."""
    for rebalance_timeout_ms in (2000, 8000, 20_000):  # On a busy machine that takes its time.
        begun_s = time.monotonic()
        group.group_id = f"sessions-{rebalance_timeout_ms}"
        group.join("m1")
        group.join("m2")
        group.heartbeat("m1", 2, rebalance_timeout_ms=rebalance_timeout_ms)
        answer = group.heartbeat("m1", 2)
        if not answer.error_code:
            break
        assert time.monotonic() - begun_s > rebalance_timeout_ms / 1000, "it is put out too early"
    yield "has to give back", answer
    yield "put out", until(lambda: group.heartbeat("m1", 2), lambda r: r.error_code)
    yield "the other has all", until(lambda: group.heartbeat("m2", 3), lambda r: r.member_epoch > 3)


SCRIPTS: dict[str, Script] = {
    script.__name__: script
    for script in (
        requests_that_are_wrong,
        groups_that_are_not_there,
        one_member,
        three_members,
        range_and_different_topics,
        static_members,
        topics_that_change,
        regular_expressions,
        offsets,
        upgrade_and_downgrade,
        a_consumer_replaced_by_a_classic_member,
        classic_members_among_consumers,
        sessions,
    )
}


class Prepared(NamedTuple):
    """A broker, and the ids of its topics by name."""

    broker: BrokerProcess
    ids: dict[str, bytes]

    def answers(self, script: Script) -> dict[str, Any]:
        with WireClient(self.broker) as client:
            group = Group(client, script.__name__.replace("_", "-"), dict(self.ids))
            return {label: comparable(answer) for label, answer in script(group)}


@pytest.fixture(scope="module")
def ours() -> Iterator[Prepared]:
    with Barnabas(**SETTINGS) as broker:
        yield prepared(broker)


@pytest.fixture(scope="module")
def live_kafka() -> Iterator[Prepared]:
    with ApacheKafka(**SETTINGS) as broker:
        yield prepared(broker)


def prepared(broker: BrokerProcess) -> Prepared:
    with WireClient(broker) as client:
        wait_for_coordinator(client)
        ids = {SIX: create(client, SIX, 6), FOUR: create(client, FOUR, 4)}
    return Prepared(broker, ids)


@pytest.mark.parametrize("name", SCRIPTS)
def test_answers_are_kafkas(ours: Prepared, kafka: RecordedKafka, name: str) -> None:
    theirs = kafka.observe(name, lambda live: live.answers(SCRIPTS[name]))
    check_equal(ours.answers(SCRIPTS[name]), theirs, {})
