"""The catalogue: concurrency, cancellation, failures of the MetaStore, restarts, tombstones."""

import asyncio
from random import Random

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.types import ConfigError
from barnabas.broker.metadata.catalogue import LOGS_PER_TURN, new_cluster_id, new_topic_id
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.errors import StrayDirectory
from barnabas.storage.metastore.interface import MetaStoreError, MetaStoreRefused
from tests.broker.harness import Administration


@pytest.fixture
async def administration():
    administration = Administration()
    yield administration
    administration.stop()


def directories(administration, disk=None):
    disk = disk or administration.file_system
    return {
        name for name in disk.list_directory("/data") if disk.is_directory(disk.join("/data", name))
    }


def write_to(topic):
    """Give each partition its directory: that comes with the first record."""
    for partition in topic.partitions:
        batch = encode_batch([Record(0, 1_700_000_000_000, b"k", b"v", ())])
        partition.log.append(memoryview(bytearray(batch)))


async def settle(administration):
    """Commit the queue of the journal."""
    administration.logs.journal.flush()
    await asyncio.sleep(0)


async def test_directories_follow_topics(administration):
    catalogue = administration.catalogue
    a = await catalogue.create_topic("a", 2, {})
    b = await catalogue.create_topic("b", 1, {})
    await catalogue.create_topic("empty", 1, {})
    await catalogue.create_partitions("a", 3)
    await settle(administration)
    assert directories(administration) == set()
    write_to(a)
    write_to(b)
    await settle(administration)
    assert directories(administration) == {"a-0", "a-1", "a-2", "b-0"}
    await catalogue.delete_topic(a.topic_id)
    await settle(administration)
    assert directories(administration) == {"b-0"}


async def test_many_ask_for_one_name_and_one_gets_it(administration):
    outcomes = await asyncio.gather(
        *(administration.catalogue.create_topic("a", 1, {}) for _ in range(10)),
        return_exceptions=True,
    )
    refusals = [each for each in outcomes if isinstance(each, KafkaError)]
    assert len(refusals) == 9
    assert {each.code for each in refusals} == {ErrorCode.TOPIC_ALREADY_EXISTS}
    assert len(administration.metastore.load().topics) == 1


async def test_a_topic_is_seen_whole_or_not_at_all(administration):
    catalogue = administration.catalogue
    count = LOGS_PER_TURN * 3 + 1
    creation = asyncio.ensure_future(catalogue.create_topic("a", count, {}))
    seen = set()
    while not creation.done():
        topic = catalogue.topic("a")
        seen.add(topic and len(topic.partitions))
        await asyncio.sleep(0)
    assert seen <= {None, count}
    assert None in seen
    topic = await creation
    growth = asyncio.ensure_future(catalogue.create_partitions("a", 2 * count))
    seen = set()
    while not growth.done():
        seen.add(len(topic.partitions))
        await asyncio.sleep(0)
    assert seen <= {count, 2 * count}
    deletion = asyncio.ensure_future(catalogue.delete_topic(topic.topic_id))
    while catalogue.topic("a") is not None:  # noqa: ASYNC110  no event exists
        await asyncio.sleep(0)
    assert not deletion.done()
    await deletion


async def test_metadata_change_continues_after_client_disconnects(administration):
    catalogue = administration.catalogue
    creation = asyncio.ensure_future(catalogue.create_topic("a", LOGS_PER_TURN * 2, {}))
    while not administration.metastore.load().topics:  # noqa: ASYNC110  no event exists
        await asyncio.sleep(0)
    creation.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creation
    await catalogue.changes.close()
    assert len(catalogue.topics["a"].partitions) == LOGS_PER_TURN * 2
    assert [topic.name for topic in administration.metastore.load().topics] == ["a"]


async def test_refused_change_without_waiter_leaves_no_error(administration):
    catalogue = administration.catalogue
    await catalogue.create_topic("a", 1, {})
    creation = asyncio.ensure_future(catalogue.create_topic("a", 1, {}))
    await asyncio.sleep(0)
    creation.cancel()
    await catalogue.changes.close()
    assert creation.cancelled()


async def test_an_abandoned_catalogue_commits_nothing_more(administration):
    catalogue = administration.catalogue
    changes = [
        asyncio.ensure_future(catalogue.create_topic(name, LOGS_PER_TURN * 2, {}))
        for name in ("a", "b")
    ]
    while not administration.metastore.load().topics:  # noqa: ASYNC110  no event exists
        await asyncio.sleep(0)
    catalogue.changes.abandon()
    await asyncio.wait(changes)
    assert all(change.cancelled() for change in changes)
    assert [topic.name for topic in administration.metastore.load().topics] == ["a"]
    assert catalogue.topics == {}


async def test_full_metastore_refuses_change_and_recovers(administration, monkeypatch):
    def full(*_arguments):
        raise MetaStoreRefused("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(administration.metastore, "create_topic", full)
        with pytest.raises(KafkaError) as caught:
            await administration.catalogue.create_topic("a", 1, {})
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert administration.fatal == []
    await administration.catalogue.create_topic("a", 1, {})


async def test_a_metastore_that_failed_is_the_end_d9(administration, monkeypatch):
    error = MetaStoreError("disk I/O error")

    def broken(*_arguments):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(administration.metastore, "create_topic", broken)
        with pytest.raises(KafkaError):
            await administration.catalogue.create_topic("a", 1, {})
    assert administration.fatal == [error]
    assert administration.catalogue.topics == {}


async def test_committed_change_that_cannot_be_shown_is_fatal_d9(administration, monkeypatch):
    error = RuntimeError("no log")

    def broken(*_arguments):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(administration.logs, "create", broken)
        with pytest.raises(RuntimeError):
            await administration.catalogue.create_topic("a", 1, {})
    assert administration.fatal == [error]
    assert administration.catalogue.topics == {}
    administration.fatal.clear()


async def test_topics_are_there_after_a_restart():
    first = Administration()
    a = await first.catalogue.create_topic("a", 2, {"retention.ms": "5"})
    await first.catalogue.create_partitions("a", 3)
    first.stop()
    second = Administration(first.file_system, first.metastore)
    again = second.catalogue.topics["a"]
    assert again.topic_id == a.topic_id
    assert [each.partition_id for each in again.partitions] == [
        each.partition_id for each in a.partitions
    ]
    assert again.configs == {"retention.ms": "5"}
    assert all(each.log.config.retention_ms == 5 for each in again.partitions)
    assert second.report.clean
    second.stop()


async def test_the_leader_epoch_rises_with_every_start_d6():
    administration = Administration()
    epochs = [administration.logs.leader_epoch]
    for seed in range(5):
        disk = administration.file_system.crash(Random(seed))
        administration = Administration(disk, administration.metastore)
        epochs.append(administration.logs.leader_epoch)
        assert administration.metastore.boot_epoch == epochs[-1]
    assert epochs == sorted(set(epochs))
    administration.stop()


async def test_a_tombstone_stays_until_a_checkpoint_covers_the_removal(administration):
    catalogue, logs = administration.catalogue, administration.logs
    a = await catalogue.create_topic("a", 1, {})
    await catalogue.delete_topic(a.topic_id)
    assert [row.topic_id for row in administration.metastore.load().deleted] == [a.topic_id]
    catalogue.forget_deleted()
    assert len(administration.metastore.load().deleted) == 1, "no checkpoint yet"
    logs.checkpoint(catalogue.forget_deleted)
    await settle(administration)
    assert administration.metastore.load().deleted == ()
    assert directories(administration) == set()


async def test_a_tombstone_left_by_a_crash_goes_at_the_next_start():
    first = Administration()
    a = await first.catalogue.create_topic("a", 1, {})
    write_to(a)
    await settle(first)
    first.metastore.delete_topic(a.topic_id)
    second = Administration(first.file_system.kill(), first.metastore)
    assert second.report.directories_removed == 1
    assert second.metastore.load().deleted == ()
    assert directories(second) == set()
    second.stop()


async def test_without_its_metastore_a_directory_is_not_touched():
    first = Administration()
    write_to(await first.catalogue.create_topic("a", 1, {}))
    await settle(first)
    first.stop()
    before = directories(first)
    with pytest.raises(StrayDirectory, match="/data/a-0: no topic owns it"):
        Administration(first.file_system)
    assert directories(first) == before == {"a-0"}


async def test_a_full_metastore_keeps_tombstones_for_later(administration, monkeypatch):
    def full(*_arguments):
        raise MetaStoreRefused("database or disk is full")

    a = await administration.catalogue.create_topic("a", 1, {})
    await administration.catalogue.delete_topic(a.topic_id)
    with monkeypatch.context() as patch:
        patch.setattr(administration.metastore, "forget_topic", full)
        administration.logs.checkpoint(administration.catalogue.forget_deleted)
        await settle(administration)
    assert len(administration.metastore.load().deleted) == 1
    administration.logs.checkpoint(administration.catalogue.forget_deleted)
    await settle(administration)
    assert administration.metastore.load().deleted == ()


async def test_a_metastore_that_fails_over_tombstones_is_the_end_d9(administration, monkeypatch):
    error = MetaStoreError("disk I/O error")

    def broken(*_arguments):
        raise error

    a = await administration.catalogue.create_topic("a", 1, {})
    await administration.catalogue.delete_topic(a.topic_id)
    with monkeypatch.context() as patch:
        patch.setattr(administration.metastore, "forget_topic", broken)
        administration.logs.checkpoint(administration.catalogue.forget_deleted)
        await settle(administration)
    assert administration.fatal == [error]
    administration.fatal.clear()


async def test_names_that_collide_but_are_there_can_be_deleted():
    first = Administration()
    for number, name in enumerate(("q.y", "q_y"), start=1):
        first.metastore.create_topic(name, bytes([number] * 16), 1, {})
    first.stop()
    second = Administration(first.file_system, first.metastore)
    for number in (1, 2):
        await second.catalogue.delete_topic(bytes([number] * 16))
    assert second.catalogue.topics == {}
    await second.catalogue.create_topic("q.y", 1, {})
    second.stop()


async def test_stored_settings_that_no_longer_fit_stop_the_start():
    first = Administration()
    await first.catalogue.create_topic("a", 1, {"max.compaction.lag.ms": "10"})
    first.stop()
    with pytest.raises(ConfigError, match=r"min.compaction.lag.ms \(20\)"):
        Administration(
            first.file_system,
            first.metastore,
            BrokerConfig(node_id=1, log_cleaner_min_compaction_lag_ms=20),
        )


def test_ids_have_kafkas_forms():
    identities = {new_topic_id() for _ in range(1000)}
    assert len(identities) == 1000
    assert all(len(identity) == 16 for identity in identities)
    clusters = {new_cluster_id() for _ in range(1000)}
    assert all(len(each) == 22 and not each.startswith("-") for each in clusters)
