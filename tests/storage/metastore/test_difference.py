"""The difference of two images makes the newer one of the older one, and says no more than that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from barnabas.storage.metastore.difference import (
    ConfiguredTopic,
    Difference,
    GrownTopic,
    difference,
)
from barnabas.storage.metastore.interface import (
    AclRow,
    MetadataImage,
    PartitionRow,
    QuotaRow,
    ScramRow,
    TopicRow,
)
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from tests.storage.metastore.histories import histories, make

EMPTY = MetadataImage((), (), {})
ONE, TWO = (number.to_bytes(16) for number in (1, 2))


def topic(name="t", topic_id=ONE, partitions=1, **configs):
    rows = tuple(PartitionRow(topic_id[-1] * 100 + index, index) for index in range(partitions))
    return TopicRow(topic_id, name, rows, configs)


def image(*topics, **others):
    return replace(EMPTY, topics=topics, **others)


# ----------------------------------------------------------------------------------------- topics


def test_nothing_differs_from_itself():
    full = image(topic(), broker_configs={"": {"a": "b"}}, next_producer_id=7)
    assert difference(full, full) == Difference()


def test_topics_come_and_go():
    one, two = topic("one"), topic("two", TWO)
    assert difference(image(one), image(one, two)) == Difference(topics_created=(two,))
    assert difference(image(one, two), image(two)) == Difference(topics_deleted=(ONE,))


def test_a_topic_made_again_under_an_old_name_is_another_one():
    old, new = topic(partitions=2), topic(topic_id=TWO, partitions=3)
    expected = Difference(topics_deleted=(ONE,), topics_created=(new,))
    assert difference(image(old), image(new)) == expected


def test_a_tombstone_is_no_topic():
    gone = topic()
    assert difference(image(gone), image(deleted=(gone,))) == Difference(topics_deleted=(ONE,))
    assert difference(image(deleted=(gone,)), image()) == Difference()
    assert difference(image(), image(deleted=(gone,))) == Difference()


def test_a_topic_grows_and_is_configured():
    old, new = topic(partitions=2, a="1", b="2"), topic(partitions=4, b="3")
    assert difference(image(old), image(new)) == Difference(
        topics_grown=(GrownTopic(ONE, new.partitions[2:]),),
        topics_configured=(ConfiguredTopic(ONE, {"b": "3"}),),
    )


# ----------------------------------------------------------------------------------------- others


@pytest.mark.parametrize("kind", ["broker_configs", "group_configs"])
def test_settings_are_replaced_as_a_whole(kind):
    old = image(**{kind: {"same": {"a": "1"}, "other": {"a": "1", "b": "2"}, "gone": {"a": "1"}}})
    new = image(**{kind: {"same": {"a": "1"}, "other": {"a": "2"}, "new": {"c": "3"}}})
    changed = {"other": {"a": "2"}, "gone": {}, "new": {"c": "3"}}
    assert difference(old, new) == Difference(**{kind: changed})
    assert difference(image(**{kind: {"x": {}}}), image()) == Difference()


def test_acls_come_and_go():
    one, two = (AclRow(2, name, 3, "User:x", "*", 3, 3) for name in "ab")
    expected = Difference(acls_removed=(one,), acls_added=(two,))
    assert difference(image(acls=(one,)), image(acls=(two,))) == expected


def test_credentials_are_set_and_deleted():
    def row(user, salt=b"s"):
        return ScramRow(user, "SCRAM-SHA-256", salt, b"k", b"v", 4096)

    old = image(scram_credentials=(row("same"), row("other"), row("gone")))
    new = image(scram_credentials=(row("new"), row("other", b"z"), row("same")))
    assert difference(old, new) == Difference(
        scram_deleted=(("gone", "SCRAM-SHA-256"),),
        scram_upserted=(row("new"), row("other", b"z")),
    )


def test_quotas_are_set_and_removed():
    old = image(quotas=(QuotaRow("same", "k", 1.0), QuotaRow("x", "k", 1.0), QuotaRow("x", "l", 1)))
    new = image(quotas=(QuotaRow("same", "k", 1.0), QuotaRow("x", "k", 2.0)))
    assert difference(old, new) == Difference(
        quotas_removed=(("x", "l"),), quotas_set=(QuotaRow("x", "k", 2.0),)
    )


def test_producer_ids_are_given_out_once_s10():
    assert difference(image(next_producer_id=5), image(next_producer_id=9)).next_producer_id == 9
    assert difference(image(next_producer_id=9), image(next_producer_id=5)).next_producer_id is None


# ---------------------------------------------------------------------------------- any two images


def changed_by(old: MetadataImage, by: Difference) -> MetadataImage:
    """Return an image after a difference, without tombstones."""
    topics = {row.topic_id: row for row in old.topics}
    for topic_id in by.topics_deleted:
        del topics[topic_id]
    for grown in by.topics_grown:
        row = topics[grown.topic_id]
        topics[grown.topic_id] = replace(row, partitions=row.partitions + grown.partitions)
    for configured in by.topics_configured:
        row = topics[configured.topic_id]
        topics[configured.topic_id] = replace(row, configs=configured.configs)
    topics |= {row.topic_id: row for row in by.topics_created}
    credentials = {(row.user, row.mechanism): row for row in old.scram_credentials}
    for owner in by.scram_deleted:
        del credentials[owner]
    credentials |= {(row.user, row.mechanism): row for row in by.scram_upserted}
    quotas = {(row.entity, row.key): row for row in old.quotas}
    for limit in by.quotas_removed:
        del quotas[limit]
    quotas |= {(row.entity, row.key): row for row in by.quotas_set}
    return canonical(
        MetadataImage(
            tuple(topics.values()),
            (),
            {**old.broker_configs, **by.broker_configs},
            {**old.group_configs, **by.group_configs},
            acls=(*(row for row in old.acls if row not in by.acls_removed), *by.acls_added),
            scram_credentials=tuple(credentials.values()),
            quotas=tuple(quotas.values()),
            next_producer_id=by.next_producer_id or old.next_producer_id,
        )
    )


def canonical(image: MetadataImage) -> MetadataImage:
    """An image in an order of its own, without tombstones and empty settings."""
    return MetadataImage(
        tuple(sorted(image.topics, key=lambda row: row.topic_id)),
        (),
        {owner: configs for owner, configs in image.broker_configs.items() if configs},
        {owner: configs for owner, configs in image.group_configs.items() if configs},
        acls=tuple(sorted(image.acls, key=repr)),
        scram_credentials=tuple(
            sorted(image.scram_credentials, key=lambda row: (row.user, row.mechanism))
        ),
        quotas=tuple(sorted(image.quotas, key=repr)),
        next_producer_id=image.next_producer_id,
    )


@given(histories(), histories())
def test_difference_turns_the_older_image_into_the_newer(first, then):
    store = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id="x" * 22)
    number = make(store, first)
    old = store.load()
    make(store, then, number)
    new = store.load()
    store.close()
    found = difference(old, new)
    assert changed_by(old, found) == canonical(new)
    assert difference(new, new) == Difference()
    assert {row.topic_id for row in found.topics_created}.isdisjoint(found.topics_deleted)
