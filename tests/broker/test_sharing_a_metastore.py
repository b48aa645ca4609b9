"""Two brokers of a cluster: one changes something, the other follows, clients notice.

The second broker is deaf: it hears of changes when a test has it follow.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.broker.coordination.shard import java_hash
from barnabas.broker.metadata.changes import ATTEMPTS_MOST
from barnabas.broker.security.acls.acls import AclFilter
from barnabas.broker.security.quotas.quota_limits import PRODUCER_BYTES, USER, entity
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.testing import allow
from tests.broker.data_plane import Named, Wire, batch, fetch_request
from tests.broker.handlers.test_group_offsets import Client
from tests.broker.moves import STAYS, log_of
from tests.broker.security.access_users import AUTHORIZER
from tests.broker.security.test_scram_logins import SCRAM, connected, delete, set_password
from tests.cluster.watched import WatchedCluster
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
LED_BY_ONE, LED_BY_TWO = 0, 1
"""Partitions of a topic that both follow: the first broker leads the even ones."""
LISTENERS = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"}
"""One for clients that log in, and one for brokers."""
DEAF = 1
"""Number of the second broker."""
GROUP = next(key for key in map(str, range(10)) if java_hash(key) % 2 == DEAF)
"""Group that the second broker coordinates."""


class Follower:
    """Broker that hears of changes by itself, or when a test says so."""

    def __init__(self, cluster: WatchedCluster, number: int) -> None:
        self._cluster = cluster
        self._number = number

    def follow(self) -> None:
        """Follow all changes; the partitions of the topics then alternate between the brokers."""
        cluster = self._cluster
        cluster.let_hear(DEAF)
        version = cluster.index.snapshot(0).metadata_version
        wait_until(lambda: self.server.catalogue.changes.shown_version >= version)
        cluster.alternate(*cluster.on(self._number, lambda server: [*server.catalogue.topics]))
        cluster.deafen(DEAF)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster.brokers[self._number], name)


@contextlib.contextmanager
def sharing_pair(**config: str) -> Iterator[tuple[Follower, Follower]]:
    with WatchedCluster(2, config=STAYS | config) as cluster:
        cluster.deafen(DEAF)
        yield Follower(cluster, 0), Follower(cluster, DEAF)
        cluster.let_hear(DEAF)


@pytest.fixture
def brokers():
    with sharing_pair(**{"offsets.topic.num.partitions": "2"}) as pair:
        yield pair


def done(broker, work):
    """Await something on a broker's loop; return its result."""
    return broker._do(work()).result


def created(broker, name="t", partitions=2, **configs) -> Named:
    broker.create_topic(name, partitions, configs)
    return Named(name, broker.server.catalogue.topics[name].topic_id)


def deleted(broker, name="t") -> None:
    with Wire(broker.address) as wire:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=1000)
        (result,) = wire.ask(DELETE_TOPICS, request, 5).responses
        assert result.error_code == 0


def shown_topic(broker, name="t"):
    """Return the metadata of a topic, without epochs."""
    with Wire(broker.address) as wire:
        asked = [MetadataRequestTopic(name=name)]
        request = MetadataRequest(asked, allow_auto_topic_creation=False)
        (topic,) = wire.ask(METADATA, request, 12).topics
    partitions = [
        (each.error_code, each.partition_index, each.leader_id) for each in topic.partitions
    ]
    return topic.error_code, topic.name, topic.topic_id, partitions


def logs(broker, name="t"):
    topic = broker.server.catalogue.topics[name]
    return [each.index for each, _ in topic.partitions_here()]


# ----------------------------------------------------------------------------------------- topics


def test_a_topic_is_served_by_both(brokers):
    one, two = brokers
    topic = created(one, partitions=4)
    assert shown_topic(two)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    two.follow()
    assert shown_topic(two) == shown_topic(one)
    assert (logs(one), logs(two)) == ([0, 2], [1, 3])
    with Wire(one.address) as first, Wire(two.address) as second:
        for index in range(4):
            here, elsewhere = (first, second) if index in logs(one) else (second, first)
            assert here.produce(topic, batch(b"v"), index).error_code == 0
            assert elsewhere.produce(topic, batch(b"v"), index).error_code == NOT_LEADER


@pytest.mark.parametrize(
    ("version", "code"),
    [(12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (13, ErrorCode.UNKNOWN_TOPIC_ID)],
)
def test_a_fetch_of_a_deleted_topic_is_woken(brokers, version, code):
    one, two = brokers
    topic = created(one)
    two.follow()
    with Wire(two.address) as wire:
        request = fetch_request(version, (topic, (LED_BY_TWO, 0)), max_wait_ms=2_000_000)
        wire.send(FETCH, request, version)
        wait_until(lambda: two.call(lambda: len(two.server.fetch_waits)) == 1)
        deleted(one)
        two.follow()
        (partition,) = wire.receive().responses[0].partitions
        assert partition.error_code == code
    assert two.server.catalogue.topics == {}
    assert two.server.logs.logs == {}


def test_offsets_of_a_deleted_topic_are_dropped(brokers):
    one, two = brokers
    created(one, partitions=1)
    two.follow()
    done(two, two.server.groups.ensure)
    two.follow()
    two.port = two.address[1]
    with Client(two) as client:
        two.create_topic("kept", 1)
        assert client.commit(GROUP, {("t", 0): 5, ("kept", 0): 6}) == {ErrorCode.NONE}
        deleted(one)
        two.follow()
        # The coordinator has them; OffsetFetch hides offsets of a missing topic in any case.
        offsets = two.call(lambda: two.server.groups.machine_of(GROUP).offsets)
        wait_until(lambda: two.call(lambda: offsets.count(GROUP)) == 1)
        assert client.fetch(GROUP) == {("kept", 0): 6}


def test_both_change_something_at_once(brokers):
    """Changes that a broker already shows stay, in either order of the commits."""
    one, two = brokers
    created(one, "first")
    created(two, "second")
    created(one, "third")
    for broker in brokers:
        broker.follow()
    for name in ("first", "second", "third"):
        assert shown_topic(one, name) == shown_topic(two, name)
        assert shown_topic(one, name)[0] == 0


def refused(broker, work) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        done(broker, work)
    return caught.value.code


def test_another_broker_was_quicker(brokers):
    """The change of the other broker is not shown here yet, and does not stop this one."""
    one, two = brokers
    catalogue = two.server.catalogue
    topic = created(one)
    exists = ErrorCode.TOPIC_ALREADY_EXISTS
    assert refused(two, lambda: catalogue.create_topic("t", 1, {})) == exists
    two.follow()
    deleted(one)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    retention = {"retention.ms": "5"}
    assert refused(two, lambda: catalogue.delete_topic(topic.id)) == unknown
    assert refused(two, lambda: catalogue.create_partitions("t", 3)) == unknown
    altered = refused(two, lambda: catalogue.configs.alter_topic_configs("t", lambda _: retention))
    assert altered == unknown
    two.follow()
    assert catalogue.topics == {}


def test_both_grow_a_topic(brokers):
    one, two = brokers
    created(one)
    two.follow()
    done(one, lambda: one.server.catalogue.create_partitions("t", 4))
    done(two, lambda: two.server.catalogue.create_partitions("t", 6))
    assert len(shown_topic(two)[3]) == 6
    more = lambda: one.server.catalogue.create_partitions("t", 5)  # noqa: E731  short
    assert refused(one, more) == ErrorCode.INVALID_PARTITIONS
    two.follow()
    assert shown_topic(one) == shown_topic(two)
    assert (logs(one), logs(two)) == ([0, 2, 4], [1, 3, 5])


def adding(key: str, value: str):
    return lambda old: {**old, key: value}


@contextlib.contextmanager
def in_between(broker, work):
    """Run ``work`` right before the next commit of a broker, after its computation."""
    store = broker.server.metastore
    original = store.based_on
    happened = []

    def based_on(version, change):
        if not happened:
            happened.append(version)
            work()
        return original(version, change)

    store.based_on = based_on
    yield
    del store.based_on
    assert happened


ALTERED = {
    "topic": lambda configs, change: configs.alter_topic_configs("t", change),
    "brokers": lambda configs, change: configs.alter_broker_configs("", change),
    "group": lambda configs, change: configs.alter_group_configs("g", change),
}
KEYS = {
    "topic": ("retention.ms", "segment.bytes"),
    "brokers": ("log.retention.ms", "log.segment.bytes"),
    "group": ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"),
}
VALUES = "50000", "2000000"
GROUP_VALUES = "50000", "6000"


@pytest.mark.parametrize("kind", ALTERED)
@pytest.mark.parametrize("is_before", [True, False], ids=["not shown yet", "while it is computed"])
def test_neither_undoes_what_the_other_has_set(brokers, kind, is_before):
    one, two = brokers
    created(one)
    two.follow()
    values = GROUP_VALUES if kind == "group" else VALUES
    first, second = zip(KEYS[kind], values, strict=True)

    def alter(broker, setting):
        configs = broker.server.catalogue.configs
        done(broker, lambda: ALTERED[kind](configs, adding(*setting)))

    if is_before:
        alter(one, first)
        alter(two, second)
    else:
        with in_between(two, lambda: alter(one, first)):
            alter(two, second)
    image = two.server.metastore.load()
    owners = {
        "topic": image.topics[0].configs,
        "brokers": image.broker_configs.get(""),
        "group": image.group_configs.get("g"),
    }
    assert owners[kind] == dict([first, second])
    one.follow()
    for broker in brokers:
        configs = broker.server.catalogue.configs
        shown = {
            "topic": broker.server.catalogue.topics["t"].configs,
            "brokers": configs.broker_overrides.get(""),
            "group": configs.group_overrides.get("g"),
        }
        assert shown[kind] == owners[kind]


def test_rules_are_kept_that_neither_knows_all_about(brokers):
    """Names that collide, a number of partitions, a deleted credential."""
    one, two = brokers
    with in_between(two, lambda: created(one, "a.b")):
        code = refused(two, lambda: two.server.catalogue.create_topic("a_b", 1, {}))
    assert code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert set(two.server.catalogue.topics) == {"a.b"}
    with in_between(
        one, lambda: done(two, lambda: two.server.catalogue.create_partitions("a.b", 6))
    ):
        grown = refused(one, lambda: one.server.catalogue.create_partitions("a.b", 4))
    assert grown == ErrorCode.INVALID_PARTITIONS
    two.follow()
    assert shown_topic(one, "a.b") == shown_topic(two, "a.b")


def test_filter_removes_acl_just_added_by_other_broker():
    rule = allow("ANONYMOUS", "WRITE", topic="t")
    with sharing_pair(**{"authorizer.class.name": AUTHORIZER}) as (one, two):
        with in_between(two, lambda: one.add_acls(rule)):
            two.add_acls(allow("ANONYMOUS", "READ", topic="t"))
        one.add_acls(allow("ANONYMOUS", "DESCRIBE", topic="t"))
        everything = lambda: two.server.access_rules.remove([AclFilter()], 10)  # noqa: E731  short
        (removed,) = done(two, everything)
        assert len(removed) == 3
        assert two.server.metastore.load().acls == ()


def test_change_that_is_always_overtaken_gets_error(brokers):
    one, two = brokers
    original = two.server.metastore.based_on
    numbers = itertools.count()

    def based_on(version, change):
        created(one, f"t{next(numbers)}", 1)
        return original(version, change)

    two.server.metastore.based_on = based_on
    code = refused(two, lambda: two.server.catalogue.create_topic("mine", 1, {}))
    assert code == ErrorCode.REQUEST_TIMED_OUT
    assert next(numbers) == ATTEMPTS_MOST
    del two.server.metastore.based_on
    done(two, lambda: two.server.catalogue.create_topic("mine", 1, {}))
    assert len(two.server.catalogue.topics) == 1 + ATTEMPTS_MOST


def test_both_need_an_internal_topic_at_once():
    """The topic that was created first counts, with its partitions, and both brokers show it."""
    with sharing_pair(**{"offsets.topic.num.partitions": "3"}) as (one, two):
        for broker in (one, two):
            done(broker, broker.server.groups.ensure)
        two.follow()
        names = [broker.server.groups.log.topic_name for broker in (one, two)]
        assert shown_topic(one, names[0]) == shown_topic(two, names[1])
        assert len(shown_topic(two, names[1])[3]) == 3
        done(two, two.server.transactions.ensure)
        done(one, one.server.transactions.ensure)
        two.follow()
        transactions = one.server.transactions.log.topic_name
        assert shown_topic(one, transactions) == shown_topic(two, transactions)


def test_a_topic_that_another_broker_has_made_is_not_made_by_asking_for_it(brokers):
    one, two = brokers
    topic = created(one, partitions=4)
    with Wire(two.address) as wire:
        asked = [MetadataRequestTopic(name="t")]
        (found,) = wire.ask(METADATA, MetadataRequest(asked), 12).topics
    assert (found.error_code, found.topic_id, len(found.partitions)) == (0, topic.id, 4)


# --------------------------------------------------------------------------------------- security


def test_a_session_ends_whose_password_another_broker_has_changed():
    with (
        sharing_pair(**SCRAM | LISTENERS) as (one, two),
        connected(one) as asker,
        connected(two) as alice,
        connected(two, "bob", "b") as bob,
    ):
        assert set_password(asker, "alice", "new") == 0
        assert alice.ask(METADATA, 12, MetadataRequest()).cluster_id, "it is not known yet"
        two.follow()
        assert alice.is_closed
        assert bob.ask(METADATA, 12, MetadataRequest()).cluster_id
        with connected(two, "alice", "new") as again:
            assert again.ask(METADATA, 12, MetadataRequest()).cluster_id
        with connected(one, "alice", "new") as asker_again:
            assert delete(asker_again, "bob") == 0
        two.follow()
        assert bob.is_closed


def test_acl_removed_by_other_broker_has_no_effect():
    rule = allow("ANONYMOUS", "WRITE", topic="t")
    with sharing_pair(**{"authorizer.class.name": AUTHORIZER}) as (one, two):
        topic = created(one)
        two.follow()
        with Wire(two.address) as wire:
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert wire.produce(topic, batch(b"v"), LED_BY_TWO).error_code == denied
            one.add_acls(rule)
            two.add_acls(rule)  # Another one had the same idea.
            two.follow()
            for _ in range(4):
                assert wire.produce(topic, batch(b"v"), LED_BY_TWO).error_code == 0
            one.remove_acls(rule)
            two.follow()
            assert wire.produce(topic, batch(b"v"), LED_BY_TWO).error_code == denied
        assert log_of(two, "t", LED_BY_TWO).next_offset == 4


def test_a_quota_that_another_broker_has_set(brokers):
    one, two = brokers
    limit = (entity({USER: "u"}), PRODUCER_BYTES)

    def may_write(broker):
        quota = broker.call(lambda: broker.server.quotas.client_quota("u", "c"))
        return quota is None or broker.call(lambda: quota.produced(100_000)) == 0

    done(one, lambda: one.server.quota_rules.change([(*limit, 10.0)]))
    assert may_write(two)
    two.follow()
    assert not may_write(two)
    done(one, lambda: one.server.quota_rules.change([(*limit, None)]))
    two.follow()
    assert may_write(two)
