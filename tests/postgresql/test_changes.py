"""A broker changes metadata in PostgreSQL, which goes away and comes back under it."""

import asyncio

import pytest

from barnabas.broker.metadata.changes import FOREVER
from barnabas.broker.metadata.metastore_calls import CallsAside
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.metastore.interface import TopicRow
from barnabas.storage.postgresql.metastore import PostgreSqlMetaStore
from tests.broker.test_following import broker_of, shown
from tests.storage.metastore.test_conformance import CLUSTER_ID
from tests.waiting import until

SHORT_MS = 300


async def timed_out(change) -> None:
    with pytest.raises(KafkaError) as caught:
        await change
    assert caught.value.code == ErrorCode.REQUEST_TIMED_OUT


async def test_cancelled_change_continues_in_background_and_shutdown_does_not_wait(pair):
    store = PostgreSqlMetaStore.open(pair.url, node_id=1, new_cluster_id=CLUSTER_ID)
    calls = CallsAside(store.close, closing_patience_s=SHORT_MS / 1000)
    administration = broker_of(store, calls=calls)
    catalogue = administration.catalogue
    kept = await catalogue.create_topic("kept", 2, {}, FOREVER)
    await catalogue.configs.alter_topic_configs("kept", lambda _: {"retention.ms": "5"}, FOREVER)
    await catalogue.producer_ids.next()
    pair.cut()
    await timed_out(catalogue.create_partitions("kept", 3, catalogue.changes.time_in(SHORT_MS)))
    assert len(kept.partitions) == 2
    pair.mend()
    await until(lambda: len(kept.partitions) == 3)
    live = shown(administration)
    pair.cut()
    dropped = asyncio.ensure_future(catalogue.create_topic("dropped", 1, {}))
    await asyncio.sleep(0)
    await asyncio.wait_for(catalogue.changes.close(), 60)
    await timed_out(dropped)
    administration.stop()
    assert administration.fatal == []
    pair.mend()
    again = PostgreSqlMetaStore.open(pair.url, node_id=1, new_cluster_id=CLUSTER_ID)
    topics: dict[str, TopicRow] = {row.name: row for row in again.load().topics}
    again.close()
    found = topics["kept"]
    assert live["topics"]["kept"][:2] == (found.topic_id, dict(found.configs))
    assert len(found.partitions) == 3
