"""A remote, slow or unavailable MetaStore: the broker continues, and no request waits forever."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from barnabas.broker.handlers import alter_configs, metadata
from barnabas.broker.metadata import changes as changes_module
from barnabas.broker.metadata import producer_ids as producer_ids_module
from barnabas.broker.metadata.metastore_calls import CallsAside
from barnabas.broker.security.acls.acls import AclFilter
from barnabas.broker.security.acls.authorizer import acl_of
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.storage.metastore.interface import MetaStoreError, MetaStoreRefused, Outdated
from barnabas.storage.runtime.threads import new_event, thread_id
from tests.broker.data_plane import Wire
from tests.broker.test_following import broker_of, change_by, new_store, shown
from tests.cluster.watched import WatchedCluster
from tests.storage.metastore.histories import ACLS, histories, topic_id
from tests.waiting import until
from tests.worlds import world

__all__ = ["world"]

TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT
SHORT_MS = 20
"""The timeout of a request that expires completely."""
BEGUN_MS = 300
"""Like SHORT_MS, but long enough for a change to start."""
LONG_MS = 60_000
"""The timeout of a request that never expires."""


class AwayStore:
    """A store that blocks every call while it is cut off; ``close`` ends the blocked calls."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.identity = store.identity
        self.calls: list[str] = []
        """The called methods, in order, completed or not."""
        self.threads: set[int] = set()
        """Threads that have called a method since the first cut."""
        self.is_closed = False
        self._based_on: int | None = None
        self._was_cut = False
        self._is_there = new_event()
        self._is_there.set()

    def cut(self) -> None:
        """Cut off the store."""
        self._was_cut = True
        self._is_there.clear()

    def mend(self) -> None:
        """Restore access to the store."""
        self._is_there.set()

    @property
    def version(self) -> int:
        version: int = self.store.version
        return version

    def based_on(self, version: int, change: Callable[[], Any]) -> Any:
        """Make a change, which comes this way, too, and is compared when it arrives."""
        self._based_on = version
        try:
            return change()
        finally:
            self._based_on = None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            if self._was_cut:
                self.threads.add(thread_id())
            assert self._is_there.wait(60), "nobody has mended it"
            if self.is_closed:
                raise MetaStoreError("the metadata store was closed")
            if self._based_on is not None and self.store.version > self._based_on:
                raise Outdated
            return method(*arguments)

        return call

    def close(self) -> None:
        """End all blocked calls; the real store stays open."""
        self.is_closed = True
        self._is_there.set()


class Away:
    """A broker with a store that may be unavailable."""

    def __init__(self, store=None, **patience) -> None:
        self.store = AwayStore(store or new_store())
        self.calls = CallsAside(self.store.close, **patience)
        self.administration = broker_of(self.store, calls=self.calls)
        self.catalogue = self.administration.catalogue
        self.changes = self.catalogue.changes
        self.changes.load(self.store.load())  # The start has raised the version itself.
        self.store.calls.clear()

    async def create(self, name: str) -> None:
        await self.catalogue.create_topic(name, 1, {}, changes_module.FOREVER)

    async def end(self) -> None:
        """Restore the store and close the broker in good order."""
        self.store.mend()
        await self.changes.close()
        self.administration.stop()
        assert self.administration.fatal == []

    async def settled(self) -> None:
        """Restore the store, and wait for the end of all changes."""
        self.store.mend()
        await until(lambda: not self.changes._running)


@pytest.fixture
async def away():
    away = Away(patience_s=BEGUN_MS / 1000)
    yield away
    await away.end()


async def test_timed_out_change_is_made_when_store_returns(away):
    away.store.cut()
    with pytest.raises(KafkaError) as caught:
        await away.catalogue.create_topic("a", 1, {})
    assert caught.value.code == TIMED_OUT
    assert away.catalogue.topics == {}
    away.store.mend()
    await until(lambda: "a" in away.catalogue.topics)
    assert thread_id() not in away.store.threads


async def test_patient_client_gets_result_after_outage(away):
    away.store.cut()
    creation = asyncio.ensure_future(
        away.catalogue.create_topic("a", 1, {}, away.changes.time_in(LONG_MS))
    )
    await until(lambda: away.store.calls == ["create_topic"])
    assert not creation.done()
    away.store.mend()
    assert (await creation).name == "a"


async def test_a_request_waits_for_as_long_as_it_says(away):
    """The first change of a request starts, and is completed after the timeout."""
    await away.create("old")
    await away.create("doomed")
    ask = away.administration.ask
    away.store.cut()
    topics = [CreatableTopic(name, 1, 1, [], []) for name in ("a", "b")]
    created = await ask(CREATE_TOPICS, CreateTopicsRequest(topics, timeout_ms=BEGUN_MS), 7)
    assert [each.error_code for each in created.topics] == [TIMED_OUT] * 2
    grown = await ask(
        CREATE_PARTITIONS,
        CreatePartitionsRequest([CreatePartitionsTopic("old", 3, None)], timeout_ms=BEGUN_MS),
        3,
    )
    assert [each.error_code for each in grown.results] == [TIMED_OUT]
    states = [DeleteTopicState(name=name) for name in ("doomed", "old")]
    deleted = await ask(DELETE_TOPICS, DeleteTopicsRequest(states, timeout_ms=BEGUN_MS), 6)
    assert [each.error_code for each in deleted.responses] == [TIMED_OUT] * 2
    await away.settled()
    assert set(away.catalogue.topics) == {"a", "old"}
    assert len(away.catalogue.topics["old"].partitions) == 3


async def test_change_with_zero_timeout_is_not_started(away):
    request = CreateTopicsRequest([CreatableTopic("a", 1, 1, [], [])], timeout_ms=0)
    (topic,) = (await away.administration.ask(CREATE_TOPICS, request, 7)).topics
    assert topic.error_code == TIMED_OUT
    assert away.store.calls == []


async def test_requests_without_a_time_of_their_own_wait_for_some(away, monkeypatch):
    monkeypatch.setattr(alter_configs, "PATIENCE_MS", BEGUN_MS)
    await away.create("a")
    ask = away.administration.ask
    away.store.cut()
    resources = [
        AlterConfigsResource(kind, name, [AlterableConfig(key, 0, "70000")])
        for kind, name, key in (
            (2, "a", "retention.ms"),
            (4, "", "log.retention.ms"),
            (32, "g", "consumer.session.timeout.ms"),
        )
    ]
    request = IncrementalAlterConfigsRequest(resources)
    altered = await ask(INCREMENTAL_ALTER_CONFIGS, request, 1)
    assert [each.error_code for each in altered.responses] == [TIMED_OUT] * 3
    entry = EntryData([EntityData("user", "u")], [OpData("producer_byte_rate", 5.0)])
    quotas = await ask(ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest([entry]), 1)
    assert [each.error_code for each in quotas.entries] == [TIMED_OUT]
    with pytest.raises(KafkaError) as caught:
        await away.administration.access_rules.add([acl_of(ACLS[0])])
    assert caught.value.code == TIMED_OUT
    await away.settled()
    assert away.catalogue.topics["a"].configs == {"retention.ms": "70000"}
    assert away.catalogue.configs.broker_overrides == {}, "was not begun in time"
    assert len(away.administration.quotas.limits) == 1
    assert away.administration.access_rules.matching(AclFilter()) == [acl_of(ACLS[0])]


async def test_only_so_many_changes_wait(away, monkeypatch):
    monkeypatch.setattr(changes_module, "WAITING_MAX", 3)
    away.store.cut()
    create = away.catalogue.create_topic
    waiting = [
        asyncio.ensure_future(create(str(number), 1, {}, away.changes.time_in(LONG_MS)))
        for number in range(3)
    ]
    await until(lambda: away.store.calls)
    with pytest.raises(KafkaError) as caught:
        await create("more", 1, {}, away.changes.time_in(LONG_MS))
    assert caught.value.code == TIMED_OUT
    image = away.store.store.load()
    following = asyncio.ensure_future(away.changes.follow(image))  # Not a client's.
    await away.settled()
    await asyncio.gather(*waiting, following)
    assert set(away.catalogue.topics) == {"0", "1", "2"}


async def test_store_refusal_is_returned_and_store_error_is_fatal(away, monkeypatch):
    def raising(error):
        def call(*_arguments):
            raise error

        return call

    until_s = away.changes.time_in(LONG_MS)
    refusal = MetaStoreRefused("no room")
    monkeypatch.setattr(away.store.store, "create_topic", raising(refusal))
    with pytest.raises(KafkaError) as caught:
        await away.catalogue.create_topic("a", 1, {}, until_s)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert away.administration.fatal == []
    failure = MetaStoreError("nobody has closed it")
    monkeypatch.setattr(away.store.store, "create_topic", raising(failure))
    with pytest.raises(KafkaError):
        await away.catalogue.create_topic("a", 1, {}, until_s)
    assert away.administration.fatal == [failure]
    away.administration.fatal.clear()


async def test_one_change_for_all_who_need_a_topic(away, monkeypatch):
    """Repeated requests share one change, so that it does not fill the queue."""
    monkeypatch.setattr(changes_module, "WAITING_MAX", 2)
    away.store.cut()
    for _ in range(5):
        with pytest.raises(KafkaError) as caught:
            await away.catalogue.ensure_topic("a", 1, {}, away.changes.time_in(SHORT_MS))
        assert caught.value.code == TIMED_OUT
    other = asyncio.ensure_future(
        away.catalogue.ensure_topic("b", 1, {}, away.changes.time_in(LONG_MS))
    )
    await asyncio.sleep(0)
    with pytest.raises(KafkaError) as caught:
        await away.catalogue.ensure_topic("c", 1, {}, away.changes.time_in(LONG_MS))
    assert caught.value.code == TIMED_OUT
    await away.settled()
    await other
    assert set(away.catalogue.topics) == {"a", "b"}
    assert away.store.calls == ["create_topic"] * 2
    await away.catalogue.ensure_topic("a", 1, {}, away.changes.time_in(LONG_MS))
    assert away.catalogue._ensuring == {}


# ------------------------------------------------------------------------------- producer ids


async def test_producer_gets_loading_error_during_store_outage(away, monkeypatch):
    monkeypatch.setattr(producer_ids_module, "REPEATED_MS", SHORT_MS)
    away.store.cut()
    request = InitProducerIdRequest(None, 1000)
    answers = await asyncio.gather(
        *(away.administration.ask(INIT_PRODUCER_ID, request, 4) for _ in range(20))
    )
    assert {each.error_code for each in answers} == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    assert away.store.calls == ["allocate_producer_ids"], "one for all"
    assert away.catalogue.producer_ids.peek() == -1
    await away.settled()
    answers = [await away.administration.ask(INIT_PRODUCER_ID, request, 4) for _ in range(600)]
    assert len({each.producer_id for each in answers}) == 600, "S10"
    assert away.store.calls == ["allocate_producer_ids"]


async def test_more_producers_wait_than_a_block_has_ids_for(away, monkeypatch):
    monkeypatch.setattr(producer_ids_module, "REPEATED_MS", LONG_MS)
    ids = away.catalogue.producer_ids
    given = await asyncio.gather(*(ids.next() for _ in range(2500)))
    assert len(set(given)) == 2500


# -------------------------------------------------------------------------------------- the order


@given(histories())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=20)
def test_changes_on_thread_equal_metadata_of_start(world, steps):
    store = new_store()

    async def change() -> dict[str, object]:
        away = Away(store)
        for step in steps:
            with contextlib.suppress(KafkaError):
                await change_by(away.administration, step)
        await away.settled()
        live = shown(away.administration)
        await away.changes.follow(store.load())
        assert shown(away.administration) == live
        await away.end()
        return live

    async def start() -> dict[str, object]:
        administration = broker_of(store)
        found = shown(administration)
        administration.stop()
        return found

    assert world.run(change()) == world.run(start())


async def test_others_commit_while_a_change_is_on_its_way(away):
    """The change shows its own effects; those of others come with an image that has both."""
    store = away.store.store
    await away.create("own")
    doomed = await away.catalogue.create_topic("doomed", 1, {}, changes_module.FOREVER)
    away.store.calls.clear()
    away.store.cut()
    deletion = asyncio.ensure_future(
        away.catalogue.delete_topic(doomed.topic_id, away.changes.time_in(LONG_MS))
    )
    await until(lambda: away.store.calls == ["delete_topic"])
    store.create_topic("theirs", topic_id(1), 1, {})
    between = asyncio.ensure_future(away.changes.follow(store.load()))
    away.store.mend()
    await deletion
    await between
    assert set(away.catalogue.topics) == {"own"}, "an image without what was committed behind it"
    store.delete_topic(topic_id(1))
    store.create_topic("theirs", topic_id(2), 1, {})
    await away.catalogue.catch_up(changes_module.FOREVER)
    assert set(away.catalogue.topics) == {"own", "theirs"}
    assert away.changes.shown_version == store.version


async def test_overtaken_change_gets_error_from_store(away):
    """Another broker has made the topic while the change waited."""
    away.store.cut()
    creation = asyncio.ensure_future(
        away.catalogue.create_topic("a", 1, {}, away.changes.time_in(LONG_MS))
    )
    ensured = asyncio.ensure_future(
        away.catalogue.ensure_topic("a", 1, {}, away.changes.time_in(LONG_MS))
    )
    await until(lambda: away.store.calls)
    away.store.store.create_topic("a", topic_id(1), 4, {})
    away.store.mend()
    with pytest.raises(KafkaError) as caught:
        await creation
    assert caught.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
    await ensured
    assert away.catalogue.topics["a"].topic_id == topic_id(1)
    assert len(away.catalogue.topics["a"].partitions) == 4


# ---------------------------------------------------------------------------------------- the end


async def test_close_waits_for_changes_within_limit():
    away = Away(patience_s=SHORT_MS / 1000, closing_patience_s=SHORT_MS / 1000)
    away.store.cut()
    changes = [
        asyncio.ensure_future(away.catalogue.create_topic(name, 1, {})) for name in ("a", "b")
    ]
    await until(lambda: away.store.calls)
    await asyncio.wait_for(away.changes.close(), 60)
    refusals = await asyncio.gather(*changes, return_exceptions=True)
    assert [each.code for each in refusals] == [TIMED_OUT] * 2
    assert away.store.is_closed
    assert away.store.calls == ["create_topic"], "the second one is not begun"
    assert away.store.store.load().topics == ()
    away.administration.stop()
    assert away.administration.fatal == []


async def test_the_end_lets_a_change_that_is_under_way_come_to_its_end():
    away = Away(closing_patience_s=60)
    away.store.cut()
    creation = asyncio.ensure_future(away.catalogue.create_topic("a", 1, {}))
    await until(lambda: away.store.calls)
    closing = asyncio.ensure_future(away.changes.close())
    await asyncio.sleep(0)
    away.store.mend()
    await closing
    assert (await creation).name == "a"
    assert not away.store.is_closed
    with pytest.raises(KafkaError):
        await away.create("too late")
    assert away.store.calls == ["create_topic"]
    away.administration.stop()


async def test_a_crash_waits_for_nothing():
    away = Away()
    away.store.cut()
    changes = [
        asyncio.ensure_future(away.catalogue.create_topic(name, 1, {})) for name in ("a", "b")
    ]
    await until(lambda: away.store.calls)
    away.changes.abandon()
    await asyncio.wait(changes)
    assert all(change.cancelled() for change in changes)
    away.store.close()  # As its owner does.
    assert away.store.store.load().topics == ()
    assert away.administration.fatal == []


# ---------------------------------------------------------------------------------- whole brokers


def test_metadata_is_served_during_outage_and_stop(monkeypatch):
    monkeypatch.setattr(metadata, "REPEATED_MS", SHORT_MS)
    with WatchedCluster(1) as cluster:
        cluster.create_topic("t")
        cluster.cut_from_store(0)
        address = cluster.brokers[0].address
        with Wire(address) as wire, Wire(address) as waiting:
            topics = [CreatableTopic("new", 1, 1, [], [])]
            waiting.send(CREATE_TOPICS, CreateTopicsRequest(topics, timeout_ms=LONG_MS), 7)
            assert waiting.silent()
            asked = [MetadataRequestTopic(name=name) for name in ("t", "made-by-asking")]
            (old, new) = wire.ask(METADATA, MetadataRequest(asked), 12).topics
            assert old.error_code == 0
            assert new.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        cluster.stop(0)
