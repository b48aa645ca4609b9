"""Tests of every MetaStore; an engine joins by adding itself to ``STORES``."""

import os
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.broker.testing.store.base import MemoryStore
from barnabas.storage.metastore.interface import (
    PRODUCER_ID_BLOCK,
    AclRow,
    IdentityMismatch,
    MetaStore,
    Outdated,
    QuotaRow,
    ScramRow,
    TopicExists,
    TopicNotFound,
)
from barnabas.storage.metastore.sqlite import FILE_NAME, MEMORY, SqliteMetaStore
from barnabas.storage.runtime.threads import start_thread

CLUSTER_ID = "oKlTPFF2TkSvFtAbxy0nMg"


def open_file(tmp_path) -> MetaStore:
    return SqliteMetaStore.open(str(tmp_path / FILE_NAME), node_id=1, new_cluster_id=CLUSTER_ID)


def open_memory(tmp_path) -> MetaStore:
    return SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id=CLUSTER_ID)


def open_shared(tmp_path) -> MetaStore:
    return MemoryStore(CLUSTER_ID).base().metastore(1)


STORES = {"sqlite": open_file, "sqlite in memory": open_memory, "shared in memory": open_shared}
DURABLE = {"sqlite": open_file}


@pytest.fixture(params=STORES)
def store(request, tmp_path) -> Iterator[MetaStore]:
    store = STORES[request.param](tmp_path)
    yield store
    store.close()


@pytest.fixture(params=DURABLE)
def opener(request, tmp_path) -> Callable[[], MetaStore]:
    return lambda: DURABLE[request.param](tmp_path)


def topic_id(number: int) -> bytes:
    return number.to_bytes(16)


def test_a_new_store_is_empty_and_knows_who_it_is(store):
    image = store.load()
    assert (image.topics, image.deleted) == ((), ())
    assert (image.broker_configs, image.group_configs) == ({}, {})
    assert (store.identity.cluster_id, store.identity.node_id) == (CLUSTER_ID, 1)
    assert store.boot_epoch == 0


def test_every_change_makes_a_newer_version(store):
    versions = [store.load().version]
    for change in (
        lambda: store.create_topic("t", topic_id(1), 1, {}),
        lambda: store.create_partitions(topic_id(1), 2),
        lambda: store.set_topic_configs(topic_id(1), {"retention.ms": "1"}),
        lambda: store.delete_topic(topic_id(1)),
        lambda: store.forget_topic(topic_id(1)),
        lambda: store.set_broker_configs("", {"log.retention.ms": "1"}),
        lambda: store.set_group_configs("g", {"a": "b"}),
        lambda: store.change_acls([AclRow(2, "t", 3, "User:x", "*", 3, 3)], []),
        lambda: store.change_scram_credentials(
            [ScramRow("x", "SCRAM-SHA-256", b"s", b"k", b"v", 4096)], []
        ),
        lambda: store.change_quotas([QuotaRow("x", "k", 1.0)], []),
        store.allocate_producer_ids,
    ):
        change()
        assert store.version == store.load().version
        versions.append(store.version)
    assert versions == sorted(set(versions))


def test_a_refused_change_is_no_version(store):
    store.create_topic("t", topic_id(1), 1, {})
    version = store.version
    with pytest.raises(TopicExists):
        store.create_topic("t", topic_id(2), 1, {})
    assert store.version == store.load().version == version


def test_a_change_of_the_newest_picture_is_made(store):
    for number, make in enumerate(
        (
            lambda: store.create_topic("t", topic_id(1), 1, {}),
            lambda: store.set_topic_configs(topic_id(1), {"a": "b"}),
            lambda: store.change_quotas([QuotaRow("x", "k", 1.0)], []),
        ),
    ):
        before = store.load().version
        made = store.based_on(before, make)
        assert store.version == before + 1, number
        assert made is None or made == store.load().topics[0]
    with pytest.raises(TopicExists):
        store.based_on(store.version, lambda: store.create_topic("t", topic_id(2), 1, {}))


def check_that_outdated_changes_are_refused(store, other):
    """Two objects over one metadata: what one has not seen of the other is in its way."""
    store.create_topic("t", topic_id(1), 1, {"a": "1"})
    seen = store.load().version
    changes = (
        lambda each: each.set_topic_configs(topic_id(1), {"a": "1", "b": "2"}),
        lambda each: each.set_broker_configs("", {"x": "y"}),
        lambda each: each.set_group_configs("g", {"x": "y"}),
        lambda each: each.create_topic("u", topic_id(2), 1, {}),
        lambda each: each.create_partitions(topic_id(1), 3),
        lambda each: each.change_acls([AclRow(2, "t", 3, "User:x", "*", 3, 3)], []),
        lambda each: each.change_quotas([QuotaRow("x", "k", 1.0)], []),
        lambda each: each.change_scram_credentials([], [("x", "SCRAM-SHA-256")]),
    )
    for change in changes:
        change(other)
        before = other.load()
        for late in (*changes, lambda each: each.delete_topic(topic_id(1))):
            with pytest.raises(Outdated):
                store.based_on(seen, lambda late=late: late(store))
        assert store.load() == before, "something was left behind"
        assert store.load().version == before.version == seen + 1
        seen = before.version
    store.based_on(seen, lambda: store.set_topic_configs(topic_id(1), {}))
    store.set_topic_configs(topic_id(1), {"b": "2"})  # Not computed from anything.
    with pytest.raises(Outdated):
        other.based_on(seen, lambda: other.set_topic_configs(topic_id(1), {"c": "3"}))
    assert other.load().topics[0].configs == {"b": "2"}
    other.based_on(other.version, lambda: other.set_topic_configs(topic_id(1), {"c": "3"}))
    assert store.load().topics[0].configs == {"c": "3"}


def test_a_change_of_an_older_picture_is_refused_in_memory():
    base = MemoryStore(CLUSTER_ID).base()
    check_that_outdated_changes_are_refused(base.metastore(1), base.metastore(2))


def test_one_broker_alone_is_never_outdated(opener):
    store = opener()
    store.create_topic("t", topic_id(1), 1, {})
    store.based_on(0, lambda: store.set_topic_configs(topic_id(1), {"a": "b"}))
    assert store.load().topics[0].configs == {"a": "b"}
    store.close()


def test_version_survives_a_restart(opener):
    store = opener()
    store.create_topic("t", topic_id(1), 1, {})
    version = store.version
    store.close()
    store = opener()
    assert store.version == store.load().version == version
    store.close()


def test_boot_epoch_only_rises_d6(store):
    assert store.begin_boot() == 1
    assert store.begin_boot() == 2
    assert store.raise_boot_epoch(7) == 7
    assert store.raise_boot_epoch(3) == 7
    assert store.boot_epoch == 7
    assert store.begin_boot() == 8


def test_producer_id_blocks_never_overlap_s10(store):
    blocks = [store.allocate_producer_ids() for _ in range(5)]
    assert all(len(block) == PRODUCER_ID_BLOCK for block in blocks)
    assert all(left.stop <= right.start for left, right in pairwise(blocks))
    store.raise_producer_ids(1_000_000)
    assert store.allocate_producer_ids().start == 1_000_000
    store.raise_producer_ids(5)
    assert store.allocate_producer_ids().start == 1_000_000 + PRODUCER_ID_BLOCK


def test_a_created_topic_is_in_the_image(store):
    row = store.create_topic("orders", topic_id(1), 3, {"retention.ms": "60000"})
    assert [partition.index for partition in row.partitions] == [0, 1, 2]
    assert store.load().topics == (row,)
    assert store.load().topics[0].configs == {"retention.ms": "60000"}


def test_a_name_is_taken_until_its_topic_is_deleted(store):
    first = store.create_topic("orders", topic_id(1), 2, {})
    with pytest.raises(TopicExists):
        store.create_topic("orders", topic_id(2), 2, {})
    assert store.load().topics == (first,), "a refused change leaves nothing behind"
    store.delete_topic(topic_id(1))
    second = store.create_topic("orders", topic_id(2), 2, {})
    assert store.load().topics == (second,)
    assert store.load().deleted == (first,)


def test_partition_ids_are_never_reused(store):
    seen: set[int] = set()
    for number in range(1, 6):
        row = store.create_topic("orders", topic_id(number), 3, {})
        grown = store.create_partitions(topic_id(number), 5)
        ids = {partition.partition_id for partition in (*row.partitions, *grown)}
        assert len(ids) == 5
        assert not ids & seen
        seen |= ids
        store.delete_topic(topic_id(number))
        store.forget_topic(topic_id(number))
    assert store.load().deleted == ()


def test_growing_adds_the_missing_indexes(store):
    store.create_topic("orders", topic_id(1), 2, {})
    assert [row.index for row in store.create_partitions(topic_id(1), 4)] == [2, 3]
    assert store.create_partitions(topic_id(1), 4) == ()
    (topic,) = store.load().topics
    assert [partition.index for partition in topic.partitions] == [0, 1, 2, 3]


def test_deleting_is_two_steps_and_the_second_may_be_repeated(store):
    row = store.create_topic("orders", topic_id(1), 1, {"cleanup.policy": "compact"})
    store.forget_topic(topic_id(1))
    assert store.load().topics == (row,), "a live topic cannot be forgotten"
    store.delete_topic(topic_id(1))
    assert (store.load().topics, store.load().deleted) == ((), (row,))
    store.forget_topic(topic_id(1))
    store.forget_topic(topic_id(1))
    assert store.load().deleted == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.delete_topic(topic_id(9)),
        lambda store: store.create_partitions(topic_id(9), 3),
        lambda store: store.set_topic_configs(topic_id(9), {"a": "b"}),
    ],
)
def test_changes_need_a_live_topic(store, change):
    with pytest.raises(TopicNotFound):
        change(store)
    store.create_topic("gone", topic_id(9), 1, {})
    store.delete_topic(topic_id(9))
    before = store.load()
    with pytest.raises(TopicNotFound):
        change(store)
    assert store.load() == before


def test_settings_are_replaced_as_a_whole(store):
    store.create_topic("orders", topic_id(1), 1, {"a": "1", "b": "2"})
    store.set_topic_configs(topic_id(1), {"b": "3", "c": ""})
    assert store.load().topics[0].configs == {"b": "3", "c": ""}
    store.set_broker_configs("1", {"x": "1"})
    store.set_broker_configs("", {"y": "2"})
    assert store.load().broker_configs == {"": {"y": "2"}, "1": {"x": "1"}}
    store.set_broker_configs("1", {})
    assert store.load().broker_configs == {"": {"y": "2"}}


def test_group_configs_are_replaced(store):
    store.set_group_configs("g", {"x": "1", "y": "2"})
    store.set_group_configs("other", {"x": "3"})
    store.set_group_configs("g", {"x": "4"})
    assert store.load().group_configs == {"g": {"x": "4"}, "other": {"x": "3"}}
    assert store.load().broker_configs == {}
    store.set_group_configs("g", {})
    assert store.load().group_configs == {"other": {"x": "3"}}


def test_any_thread_may_call(store):
    created = []
    thread = start_thread(
        "creates", lambda: created.append(store.create_topic("t", topic_id(1), 1, {}))
    )
    thread.join()
    assert store.load().topics == tuple(created)


def test_everything_is_there_after_reopening(opener):
    store = opener()
    store.begin_boot()
    block = store.allocate_producer_ids()
    store.create_topic("orders", topic_id(1), 2, {"a": "1"})
    store.create_topic("gone", topic_id(2), 2, {})
    store.delete_topic(topic_id(2))
    store.set_broker_configs("", {"log.retention.ms": "5"})
    before = store.load()
    store.close()

    store = opener()
    assert store.load() == before
    assert store.boot_epoch == 1
    assert store.allocate_producer_ids().start == block.stop
    store.close()


def test_a_process_that_dies_loses_no_returned_change_and_keeps_no_other(opener):
    """Kill without closing, in the middle of a change too (D1)."""
    child = os.fork()
    if child == 0:
        try:
            store = opener()
            store.create_topic("kept", topic_id(1), 3, {})
            store.allocate_producer_ids()
            store._connection.execute("BEGIN IMMEDIATE")
            store._connection.execute("UPDATE topics SET deleted = 1")
        finally:
            os.kill(os.getpid(), 9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    store = opener()
    assert [topic.name for topic in store.load().topics] == ["kept"]
    assert store.allocate_producer_ids().start == PRODUCER_ID_BLOCK
    store.close()


def test_another_node_may_not_open_the_store(tmp_path):
    open_file(tmp_path).close()
    with pytest.raises(IdentityMismatch, match="node 1, the configuration says 2"):
        SqliteMetaStore.open(str(tmp_path / FILE_NAME), node_id=2, new_cluster_id="other")


class AgainstAModel(RuleBasedStateMachine):
    """Random changes on a store and on dictionaries must give the same picture."""

    def __init__(self):
        super().__init__()
        self.store = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id=CLUSTER_ID)
        self.live: dict[str, tuple[bytes, int, dict[str, str]]] = {}
        self.deleted: set[bytes] = set()
        self.used_ids: dict[int, tuple[bytes, int]] = {}
        self.number = 0

    names = st.sampled_from(["a", "b", "c"])
    configs = st.dictionaries(st.sampled_from(["x", "y"]), st.text(max_size=3), max_size=2)

    @rule(name=names, count=st.integers(1, 3), configs=configs)
    def create(self, name, count, configs):
        self.number += 1
        if name in self.live:
            with pytest.raises(TopicExists):
                self.store.create_topic(name, topic_id(self.number), count, configs)
        else:
            self.store.create_topic(name, topic_id(self.number), count, configs)
            self.live[name] = (topic_id(self.number), count, configs)

    @rule(name=names, count=st.integers(1, 5))
    def grow(self, name, count):
        if name in self.live:
            identity, existing, configs = self.live[name]
            self.store.create_partitions(identity, count)
            self.live[name] = (identity, max(existing, count), configs)

    @rule(name=names)
    def delete(self, name):
        if name in self.live:
            identity = self.live.pop(name)[0]
            self.store.delete_topic(identity)
            self.deleted.add(identity)

    @rule()
    def sweep(self):
        for identity in self.deleted:
            self.store.forget_topic(identity)
        self.deleted.clear()

    @rule(name=names, configs=configs)
    def configure(self, name, configs):
        if name in self.live:
            identity, count, _ = self.live[name]
            self.store.set_topic_configs(identity, configs)
            self.live[name] = (identity, count, configs)

    @invariant()
    def same_picture(self):
        image = self.store.load()
        assert {
            topic.name: (topic.topic_id, len(topic.partitions), topic.configs)
            for topic in image.topics
        } == self.live
        assert {topic.topic_id for topic in image.deleted} == self.deleted
        for topic in (*image.topics, *image.deleted):
            assert [row.index for row in topic.partitions] == list(range(len(topic.partitions)))
            for row in topic.partitions:
                owner = self.used_ids.setdefault(row.partition_id, (topic.topic_id, row.index))
                assert owner == (topic.topic_id, row.index)

    def teardown(self):
        self.store.close()


AgainstAModel.TestCase.settings = settings(
    max_examples=50,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestAgainstAModel = AgainstAModel.TestCase


# ----------------------------------------------------------------------------- access and quotas

READ_ORDERS = AclRow(2, "orders", 3, "User:alice", "*", 3, 3)
WRITE_ORDERS = AclRow(2, "orders", 3, "User:alice", "*", 4, 3)
SCRAM = ScramRow("alice", "SCRAM-SHA-256", b"salt", b"stored", b"server", 4096)
QUOTA = QuotaRow("user=alice", "producer_byte_rate", 1000.0)


def test_acls_come_and_go_one_by_one_and_in_one_commit(opener):
    store = opener()
    store.change_acls([READ_ORDERS, WRITE_ORDERS], [])
    assert set(store.load().acls) == {READ_ORDERS, WRITE_ORDERS}
    store.close()
    store = opener()
    store.change_acls([READ_ORDERS], [])
    assert set(store.load().acls) == {READ_ORDERS, WRITE_ORDERS}, "another broker was quicker"
    for _ in range(2):
        store.change_acls([], [READ_ORDERS])
    assert store.load().acls == (WRITE_ORDERS,)
    store.change_acls([READ_ORDERS], [WRITE_ORDERS])
    store.close()
    store = opener()
    assert store.load().acls == (READ_ORDERS,)
    store.close()


def test_credentials_are_set_and_deleted(store):
    other = ScramRow("alice", "SCRAM-SHA-512", b"s", b"k", b"v", 8192)
    store.change_scram_credentials([SCRAM, other], [])
    changed = ScramRow("alice", "SCRAM-SHA-256", b"new", b"stored", b"server", 4096)
    store.change_scram_credentials([changed], [("bob", "SCRAM-SHA-256")])
    assert store.load().scram_credentials == (changed, other)
    store.change_scram_credentials([], [("alice", "SCRAM-SHA-512")])
    assert store.load().scram_credentials == (changed,)


def test_quotas_are_set_and_removed(store):
    store.change_quotas([QUOTA, QuotaRow("", "request_percentage", 0.5)], [])
    store.change_quotas([QuotaRow("user=alice", "producer_byte_rate", 2.0)], [("x", "y")])
    assert store.load().quotas == (
        QuotaRow("", "request_percentage", 0.5),
        QuotaRow("user=alice", "producer_byte_rate", 2.0),
    )
    store.change_quotas([], [("", "request_percentage"), ("user=alice", "producer_byte_rate")])
    assert store.load().quotas == ()


def test_a_secret_is_made_once(opener):
    store = opener()
    assert store.keep_secret("one", b"first") == b"first"
    assert store.keep_secret("one", b"second") == b"first"
    assert store.keep_secret("two", b"\0second") == b"\0second"
    store.close()
    store = opener()
    assert store.keep_secret("one", b"third") == b"first"
    store.close()


def test_secrets_do_not_show():
    assert "stored" not in repr(SCRAM)
