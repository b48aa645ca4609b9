"""The cluster's metadata store does what every other does, and what only several brokers ask."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings

from barnabas.storage.metastore.interface import (
    AclRow,
    Identity,
    MetaStoreError,
    MetaStoreRefused,
    TopicExists,
)
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.storage.postgresql.metastore import PostgreSqlMetaStore
from barnabas.storage.replicated.log_index import Flush, Item, Lane, Outcome
from tests.postgresql.whole_index import WholeIndex
from tests.storage.metastore.histories import histories, make, topic_id
from tests.storage.metastore.test_conformance import (  # noqa: F401  Run here, too, on these fixtures.
    CLUSTER_ID,
    check_that_outdated_changes_are_refused,
    test_a_change_of_the_newest_picture_is_made,
    test_a_created_topic_is_in_the_image,
    test_a_name_is_taken_until_its_topic_is_deleted,
    test_a_new_store_is_empty_and_knows_who_it_is,
    test_a_refused_change_is_no_version,
    test_a_secret_is_made_once,
    test_acls_come_and_go_one_by_one_and_in_one_commit,
    test_any_thread_may_call,
    test_boot_epoch_only_rises_d6,
    test_changes_need_a_live_topic,
    test_credentials_are_set_and_deleted,
    test_deleting_is_two_steps_and_the_second_may_be_repeated,
    test_every_change_makes_a_newer_version,
    test_everything_is_there_after_reopening,
    test_group_configs_are_replaced,
    test_growing_adds_the_missing_indexes,
    test_partition_ids_are_never_reused,
    test_producer_id_blocks_never_overlap_s10,
    test_quotas_are_set_and_removed,
    test_settings_are_replaced_as_a_whole,
    test_version_survives_a_restart,
)
from tests.waiting import wait_until

WAITING = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
BROKERS = 3
TOPICS_EACH = 8


def open_store(server, node_id=1, **options):
    return PostgreSqlMetaStore.open(
        server.url, node_id=node_id, new_cluster_id=CLUSTER_ID, **options
    )


@pytest.fixture
def opener(server):
    """Opens what was empty at the beginning of the test."""
    server.execute("DROP SCHEMA IF EXISTS barnabas CASCADE")
    return lambda: open_store(server)


@pytest.fixture
def store(opener):
    opened = opener()
    yield opened
    opened.close()


# ------------------------------------------------------------------------------- as the others do


@given(steps=histories())
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_history_leads_to_the_same_picture(server, steps):
    server.execute("DROP SCHEMA IF EXISTS barnabas CASCADE")
    stores = [
        open_store(server),
        SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id=CLUSTER_ID),
    ]
    for store in stores:
        make(store, steps)
    images = [store.load() for store in stores]
    for store in stores:
        store.close()
    assert images[0] == images[1]


def test_unstorable_value_is_refused_and_the_store_continues(store):
    with pytest.raises(MetaStoreRefused, match="NUL"):
        store.set_group_configs("g", {"name": "a\0b"})
    store.set_group_configs("g", {"name": "ab"})
    assert store.load().group_configs == {"g": {"name": "ab"}}


# ------------------------------------------------------------------------------- several brokers


def test_a_cluster_has_one_identity_and_its_nodes_their_own(store, server):
    second = PostgreSqlMetaStore.open(server.url, node_id=2, new_cluster_id="another")
    assert second.identity == Identity(CLUSTER_ID, 2)
    assert store.identity == Identity(CLUSTER_ID, 1)
    second.close()


def test_a_change_of_an_older_picture_is_refused(store, server):
    with closing(open_store(server, 2)) as other:
        check_that_outdated_changes_are_refused(store, other)


def test_all_brokers_see_all_changes_in_one_order(store, server):
    others = [open_store(server, node_id) for node_id in range(2, 2 + BROKERS)]
    versions, names = [], []

    def change(broker, other):
        for number in range(TOPICS_EACH):
            name = f"{number}"
            try:
                other.create_topic(
                    name, bytes(14) + bytes([broker, number]), 2, {"by": f"{broker}"}
                )
            except TopicExists:
                continue
            names.append(name)
            versions.append(other.version)

    with ThreadPoolExecutor(BROKERS) as threads:
        list(threads.map(change, range(BROKERS), others))
    image = store.load()
    assert sorted(names) == [topic.name for topic in image.topics]
    assert len(image.topics) == TOPICS_EACH
    assert len(set(versions)) == len(versions)
    assert max(versions) == image.version
    ids = [row.partition_id for topic in image.topics for row in topic.partitions]
    assert len(set(ids)) == 2 * TOPICS_EACH
    for other in others:
        assert other.load() == image
        other.close()


def test_producer_ids_are_given_to_one_broker_s10(store, server):
    others = [open_store(server, node_id) for node_id in range(2, 2 + BROKERS)]
    with ThreadPoolExecutor(BROKERS) as threads:
        blocks = list(
            threads.map(lambda other: [other.allocate_producer_ids() for _ in range(5)], others)
        )
    given_out = list(chain(*chain(*blocks)))
    assert len(set(given_out)) == len(given_out)
    assert store.load().next_producer_id == max(given_out) + 1
    for other in others:
        other.close()


def test_partitions_of_a_topic_can_be_led_until_it_is_deleted(store, server):
    (partition, _) = store.create_topic("t", topic_id(1), 2, {}).partitions
    index = WholeIndex.open(server.url)
    session = index.register(uuid4(), 1, "", 60_000)
    assert index.assign_one(partition.partition_id, session, -1)
    item = Item(partition.partition_id, 0, 0, 1, 0, 1)
    flush = Flush(Lane.INLINE, 0, [item], payload=b"x")
    assert index.commit_flush(session, flush).outcome is Outcome.COMMITTED
    store.delete_topic(topic_id(1))
    item = Item(partition.partition_id, 0, 1, 2, 0, 1)
    answer = index.commit_flush(session, Flush(Lane.INLINE, 1, [item], payload=b"x"))
    assert answer == (Outcome.REFUSED, {partition.partition_id})
    index.close()


# -------------------------------------------------------------------------------- failures under it

CHANGES = {
    "create a topic": lambda store: store.create_topic("t", topic_id(1), 3, {"a": "b"}),
    "create partitions": lambda store: store.create_partitions(topic_id(9), 4),
    "give out ids": lambda store: store.allocate_producer_ids(),
    "begin": lambda store: store.begin_boot(),
    "delete": lambda store: store.delete_topic(topic_id(9)),
    "acls": lambda store: store.change_acls([AclRow(2, "t", 3, "User:x", "*", 3, 3)], []),
    "replace": lambda store: store.based_on(
        store.load().version, lambda: store.set_topic_configs(topic_id(1), {"c": "d"})
    ),
    "secret": lambda store: store.keep_secret("s", b"1"),
}


def test_a_change_that_was_not_answered_is_made_once(pair):
    """Each is visible before its answer is lost; made again it would be another one."""
    store = open_store(pair, patience_s=0.5)
    alone = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id=CLUSTER_ID)
    for each in (store, alone):
        each.create_topic("there", topic_id(9), 2, {})
    with ThreadPoolExecutor(1) as thread, closing(store):
        for name, change in CHANGES.items():
            failed = store._primary.attempts_failed
            pair.cut()
            answer = thread.submit(change, store)
            pair.primary.wait_for(WAITING)
            pair.primary.terminate_waiting()
            wait_until(lambda failed=failed: store._primary.attempts_failed > failed)
            pair.mend()
            assert answer.result() == change(alone), name
        assert store.load() == alone.load()
        assert store.boot_epoch == alone.boot_epoch == 1
        pair.fail_over()
        assert store.load() == alone.load()
    alone.close()


def test_read_waits_for_the_standby_and_ends_by_closing(pair):
    store = open_store(pair)
    pair.cut()
    answers = []

    def load():
        try:
            answers.append(store.load())
        except MetaStoreError as error:
            answers.append(str(error))

    thread = threading.Thread(target=load)
    thread.start()
    with closing(store):
        pair.primary.wait_for(WAITING)
        assert answers == []
    thread.join()
    assert answers == ["the metadata store was closed"]
