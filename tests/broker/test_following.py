"""A broker shows the metadata's image, after changes of any broker and of any kind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.broker.config.types import ConfigError
from barnabas.broker.security.acls.access import Generation
from barnabas.broker.security.acls.acls import AclFilter
from barnabas.broker.security.acls.authorizer import Authorizer, acl_of
from barnabas.broker.security.quotas.quota_limits import entity_of
from barnabas.broker.security.sasl.scram_users import Owner
from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.metastore.interface import AclRow, MetadataImage, ScramRow
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from tests.broker.harness import CLUSTER_ID, NODE_ID, Administration
from tests.broker.several import ScriptedView, node
from tests.storage.metastore.histories import (
    ACLS,
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    LIMITS,
    NAMES,
    NODES,
    OWNERS,
    SALTS,
    TOPIC_CONFIGS,
    Step,
    histories,
    make,
    topic_id,
)

OTHER = 2
"""The id of another broker."""


class NoAudit:
    def decided(self, *_arguments, **_more):
        pass


def new_store(*happened: list[Step]) -> SqliteMetaStore:
    store = SqliteMetaStore.open(MEMORY, node_id=NODE_ID, new_cluster_id=CLUSTER_ID)
    number = 1
    for steps in happened:
        number = make(store, steps, number)
    return store


def broker_of(
    store: SqliteMetaStore, led_elsewhere=(), disk: SimulatedFileSystem | None = None, calls=None
) -> Administration:
    """A broker that has started on what a store holds."""
    view = ScriptedView(NODE_ID, [node(NODE_ID)], dict.fromkeys(led_elsewhere, OTHER))
    authorizer = Authorizer(Generation(), [], NoAudit(), allows_without_acls=False)
    return Administration(disk, store, view=view, authorizer=authorizer, calls=calls)


@contextlib.contextmanager
def running(*arguments, **more) -> Iterator[Administration]:
    administration = broker_of(*arguments, **more)
    yield administration
    administration.stop()


def shown(administration: Administration) -> dict[str, object]:
    """Everything that a broker shows, in a form that compares."""
    catalogue, configs = administration.catalogue, administration.catalogue.configs
    for each in catalogue.topics.values():
        assert catalogue.topics_by_id[each.topic_id] is each
        assert all(partition.topic is each for partition in each.partitions)
    assert len(catalogue.topics_by_id) == len(catalogue.topics)
    return {
        "topics": {name: described_topic(each) for name, each in catalogue.topics.items()},
        "logs": set(administration.logs.logs),
        "names taken": refused_names(administration),
        "broker config": configs.broker_config,
        "overrides": {entity: each for entity, each in configs.broker_overrides.items() if each},
        "groups": configs.group_overrides,
        "acls": set(administration.authorizer.acls),
        "quotas": {named: dict(each) for named, each in administration.quotas.limits.items()},
        "users": {(row.user, row.mechanism): row for row in administration.users.rows()},
        "next producer id": catalogue.producer_ids._end,
    }


def described_topic(topic):
    partitions = [described(each) for each in topic.partitions]
    return topic.topic_id, dict(topic.configs), topic.log_config, partitions


def described(partition):
    log = partition.log
    named = None if log is None else (log.topic, log.partition, log.topic_id, log.config)
    return partition.index, partition.partition_id, partition.topic_partition, named


def refused_names(administration: Administration) -> set[str]:
    refused = set()
    for name in ("a", "a.b", "a_b", "b", "c"):
        try:
            administration.catalogue.check_new_name(name)
        except KafkaError:
            refused.add(name)
    return refused


def write_everywhere(administration: Administration) -> None:
    """Give every log its directory: that comes with the first record."""
    batch = encode_batch([Record(0, 1_700_000_000_000, b"k", b"v", ())])
    for log in administration.logs.logs.values():
        log.append(memoryview(bytearray(batch)))
    administration.logs.journal.flush()


elsewhere = st.sets(st.integers(1, 40))
"""Ids of partitions that another broker leads."""

from_a_to_b = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


@given(histories(), histories(), elsewhere)
@from_a_to_b
def test_followed_metadata_equals_metadata_of_start(first, then, led_elsewhere):
    newer = new_store(first, then)

    async def follow() -> dict[str, object]:
        with running(new_store(first), led_elsewhere) as administration:
            write_everywhere(administration)
            await administration.catalogue.changes.follow(newer.load())
            await administration.catalogue.changes.follow(newer.load())
            assert administration.fatal == []
            return shown(administration)

    async def start() -> dict[str, object]:
        with running(newer, led_elsewhere) as administration:
            return shown(administration)

    assert asyncio.run(follow()) == asyncio.run(start())


@given(histories(), histories(), elsewhere, st.none() | st.integers(0, 6))
@from_a_to_b
def test_a_crash_between_commit_and_showing_it_changes_nothing(first, then, led_elsewhere, turns):
    """The broker has ``turns`` of the loop to show the commit, or no time at all if None."""

    async def crash() -> dict[str, object]:
        store = new_store(first)
        dying = broker_of(store, led_elsewhere)
        write_everywhere(dying)
        make(store, then, len(first) + 1)
        if turns is not None:
            following = asyncio.ensure_future(dying.catalogue.changes.follow(store.load()))
            for _ in range(turns):
                await asyncio.sleep(0)
            dying.catalogue.changes.abandon()
            await asyncio.wait([following])
        with running(store, led_elsewhere, dying.file_system.kill()) as administration:
            assert administration.fatal == []
            return shown(administration)

    async def start() -> dict[str, object]:
        with running(new_store(first, then), led_elsewhere) as administration:
            return shown(administration)

    assert asyncio.run(crash()) == asyncio.run(start())


@given(histories())
@from_a_to_b
def test_own_metadata_changes_equal_metadata_of_start(steps):
    store = new_store()

    async def change() -> dict[str, object]:
        with running(store) as administration:
            for step in steps:
                with contextlib.suppress(KafkaError):
                    await change_by(administration, step)
            live = shown(administration)
            await administration.catalogue.changes.follow(store.load())
            assert shown(administration) == live, "there was nothing to follow"
            assert administration.fatal == []
            return live

    async def start() -> dict[str, object]:
        with running(store) as administration:
            return shown(administration)

    assert asyncio.run(change()) == asyncio.run(start())


async def change_by(administration: Administration, step: Step) -> None:
    """Do what a step says, the way requests do it."""
    catalogue, configs = administration.catalogue, administration.catalogue.configs
    name = NAMES[step.which % len(NAMES)]
    owner = Owner(*OWNERS[step.which % len(OWNERS)])
    entity, key = LIMITS[step.which % len(LIMITS)]
    match step.name:
        case "create":
            await catalogue.create_topic(name, 1 + step.what % 3, {})
        case "grow":
            await catalogue.create_partitions(name, 1 + step.what)
        case "delete" if name in catalogue.topics:
            await catalogue.delete_topic(catalogue.topics[name].topic_id)
        case "configure":
            chosen = TOPIC_CONFIGS[step.what % len(TOPIC_CONFIGS)]
            await configs.alter_topic_configs(name, lambda _old: chosen)
        case "configure brokers":
            chosen = BROKER_CONFIGS[step.what % len(BROKER_CONFIGS)]
            await configs.alter_broker_configs(NODES[step.which % 2], lambda _old: chosen)
        case "configure group":
            chosen = GROUP_CONFIGS[step.what % len(GROUP_CONFIGS)]
            await configs.alter_group_configs(name, lambda _old: chosen)
        case "change acls" if step.what % 2:
            await administration.access_rules.add([acl_of(ACLS[step.which % len(ACLS)])])
        case "change acls":
            await administration.access_rules.remove([AclFilter(name=name)], len(ACLS))
        case "set credential":
            row = ScramRow(*owner, SALTS[step.what % 2], b"k", b"v", 4096)
            await administration.user_credentials.alter({owner.user: row}, {}, lambda _ended: None)
        case "delete credential":
            alter = administration.user_credentials.alter
            await alter({}, {owner.user: owner}, lambda _ended: None)
        case "set quota":
            await administration.quota_rules.change([(entity_of(entity), key, 1.0 + step.what % 2)])
        case "remove quota":
            await administration.quota_rules.change([(entity_of(entity), key, None)])
        case "give out ids":
            await catalogue.producer_ids.next()


# ------------------------------------------------------------------------------------- versions


@pytest.fixture
async def pair():
    """A broker, and the store of another one of whose changes it learns."""
    with running(new_store()) as administration:
        yield administration, new_store()


async def test_an_image_that_is_not_newer_changes_nothing(pair):
    administration, theirs = pair
    changes = administration.catalogue.changes
    theirs.create_topic("a", topic_id(1), 1, {})
    older = theirs.load()
    theirs.delete_topic(topic_id(1))
    theirs.create_topic("b", topic_id(2), 1, {})
    newer = theirs.load()
    newer = MetadataImage(newer.topics, (), {}, version=administration.metastore.version + 10)
    older = MetadataImage(older.topics, (), {}, version=newer.version - 1)
    await changes.follow(newer)
    version = administration.catalogue.topics_version
    for image in (older, newer):
        await changes.follow(image)
    assert list(administration.catalogue.topics) == ["b"]
    assert administration.catalogue.topics_version == version


async def test_an_image_older_than_an_own_change_does_not_undo_it(pair):
    """Others have committed before it: what they did is shown with a later image only."""
    administration, _ = pair
    store, catalogue = administration.metastore, administration.catalogue
    store.create_topic("theirs", topic_id(1), 1, {})  # Another broker has, at the same database.
    before = store.load()
    await catalogue.create_topic("own", 1, {})
    assert set(catalogue.topics) == {"own"}
    await catalogue.changes.follow(before)
    assert set(catalogue.topics) == {"own"}
    await catalogue.changes.follow(store.load())
    assert set(catalogue.topics) == {"own", "theirs"}


async def test_a_topic_made_again_under_its_name_is_another_one(pair):
    administration, _ = pair
    store, catalogue = administration.metastore, administration.catalogue
    old = await catalogue.create_topic("a", 2, {"retention.ms": "5"})
    write_everywhere(administration)
    (log, _) = (partition.log for partition in old.partitions)
    store.delete_topic(old.topic_id)
    store.create_topic("a", topic_id(1), 1, {})
    await catalogue.changes.follow(store.load())
    new = catalogue.topics["a"]
    assert (new.topic_id, len(new.partitions), new.configs) == (topic_id(1), 1, {})
    assert catalogue.topic_by_id(old.topic_id) is None
    assert log in administration.removed_logs
    assert new.partitions[0].log.next_offset == 0


async def test_a_tombstone_of_a_followed_deletion_goes_with_a_checkpoint(pair):
    administration, _ = pair
    store, catalogue = administration.metastore, administration.catalogue
    topic = await catalogue.create_topic("a", 1, {})
    store.delete_topic(topic.topic_id)
    await catalogue.changes.follow(store.load())
    assert len(store.load().deleted) == 1
    administration.logs.checkpoint(catalogue.forget_deleted)
    administration.logs.journal.flush()
    await asyncio.sleep(0)
    assert store.load().deleted == ()


async def test_settings_that_cannot_be_honoured_end_a_broker_d9(pair):
    """A start would refuse them: this broker cannot be what the metadata says."""
    administration, _ = pair
    administration.metastore.set_broker_configs("", {"log.retention.ms": "much"})
    with pytest.raises(ConfigError):
        await administration.catalogue.changes.follow(administration.metastore.load())
    (error,) = administration.fatal
    assert isinstance(error, ConfigError)
    administration.fatal.clear()


async def test_followed_changes_wait_for_those_under_way(pair):
    administration, _ = pair
    store, catalogue = administration.metastore, administration.catalogue
    creation = asyncio.ensure_future(catalogue.create_topic("a", 1000, {}))
    while not store.load().topics:  # noqa: ASYNC110  no event exists
        await asyncio.sleep(0)
    assert "a" not in catalogue.topics
    await catalogue.changes.follow(store.load())
    assert len(catalogue.topics["a"].partitions) == 1000
    await creation


async def test_producer_ids_of_other_brokers_are_allocated_s10(pair):
    administration, _ = pair
    store, catalogue = administration.metastore, administration.catalogue
    ids = catalogue.producer_ids
    await ids.ensure()
    own = ids.peek()
    theirs = store.allocate_producer_ids()
    assert not ids.was_given(theirs[0])
    await catalogue.changes.follow(store.load())
    assert ids.was_given(theirs[0])
    assert ids.was_given(theirs[-1])
    assert not ids.was_given(theirs.stop)
    assert not ids.was_given(own)
    assert await ids.next() == own
    assert ids.was_given(own)
    assert not ids.was_given(own + 1)


async def test_without_access_control_no_acl_is_looked_at():
    store = new_store()
    administration = Administration(metastore=store)
    store.change_acls([AclRow(2, "a", 3, "User:x", "*", 3, 3)], [])
    await administration.catalogue.changes.follow(store.load())
    assert not administration.access_rules.are_enforced
    administration.stop()
    assert administration.fatal == []
