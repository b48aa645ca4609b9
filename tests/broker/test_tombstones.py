"""The tombstones of a cluster go with time, and by the controller alone."""

from __future__ import annotations

import pytest

from barnabas.broker.metadata.tombstones import KEPT_S, Tombstones
from barnabas.storage.metastore.interface import MetaStoreRefused
from tests.broker.harness import NODE_ID
from tests.broker.moves import led_cluster
from tests.broker.several import ScriptedView, node
from tests.broker.test_following import OTHER, broker_of, new_store
from tests.storage.metastore.histories import topic_id
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]


@pytest.fixture
async def administration():
    administration = broker_of(new_store())
    yield administration
    administration.stop()
    assert administration.fatal == []


def tombstones_of(administration, controller_id=NODE_ID) -> tuple[Tombstones, ScriptedView]:
    view = ScriptedView(NODE_ID, [node(NODE_ID)])
    view.controller_id = controller_id
    changes = administration.catalogue.changes
    return Tombstones(administration.metastore, changes, view), view


def there(administration) -> list[bytes]:
    return [row.topic_id for row in administration.metastore.load().deleted]


def bury(administration, number: int) -> None:
    """Another broker makes a topic and deletes it."""
    administration.metastore.create_topic(f"t{number}", topic_id(number), 2, {})
    administration.metastore.delete_topic(topic_id(number))


async def test_each_goes_when_it_was_seen_for_long_enough(administration):
    tombstones, _ = tombstones_of(administration)
    bury(administration, 1)
    await tombstones.remove_old(0.0)
    bury(administration, 2)
    await tombstones.remove_old(KEPT_S - 1)
    assert len(there(administration)) == 2
    await tombstones.remove_old(KEPT_S)
    assert there(administration) == [topic_id(2)]
    await tombstones.remove_old(2 * KEPT_S - 1)
    assert there(administration) == []


async def test_removed_tombstone_needs_no_image_load(administration):
    """The removal loads no image: no shown object has changed."""
    tombstones, _ = tombstones_of(administration)
    catalogue = administration.catalogue
    bury(administration, 1)
    await catalogue.catch_up()
    await tombstones.remove_old(0.0)
    await tombstones.remove_old(KEPT_S)
    assert catalogue.changes.shown_version == administration.metastore.version


async def test_only_the_controller_removes_them(administration):
    tombstones, view = tombstones_of(administration, OTHER)
    bury(administration, 1)
    for now_s in (0.0, KEPT_S, 2 * KEPT_S):
        await tombstones.remove_old(now_s)
    view.controller_id = NODE_ID
    await tombstones.remove_old(3 * KEPT_S)
    assert len(there(administration)) == 1, "a new controller waits anew"
    await tombstones.remove_old(4 * KEPT_S)
    assert there(administration) == []


async def test_one_that_another_controller_has_removed_is_forgotten(administration):
    tombstones, _ = tombstones_of(administration)
    bury(administration, 1)
    await tombstones.remove_old(0.0)
    administration.metastore.forget_topic(topic_id(1))
    await tombstones.remove_old(KEPT_S)
    assert tombstones._seen_s == {}


async def test_a_store_that_refuses_is_asked_again(administration, monkeypatch):
    def refuse(_topic_id):
        raise MetaStoreRefused("not now")

    tombstones, _ = tombstones_of(administration)
    bury(administration, 1)
    await tombstones.remove_old(0.0)
    with monkeypatch.context() as patch:
        patch.setattr(administration.metastore, "forget_topic", refuse)
        await tombstones.remove_old(KEPT_S)
    assert len(there(administration)) == 1
    await tombstones.remove_old(KEPT_S + 1)
    assert there(administration) == []


def test_controller_of_a_cluster_forgets_a_deleted_topic(world):
    """A broker's checkpoints prove nothing for a directory; the controller's clock counts."""
    with led_cluster({"t": [0, 1]}, brokers=2) as cluster:
        first = cluster.brokers[0]
        catalogue, store = first.server.catalogue, first.server.metastore
        first._do(catalogue.delete_topic(catalogue.topics["t"].topic_id))
        number = first.call(lambda: first.server.view.controller_id)
        controller, other = cluster.brokers[number], cluster.brokers[1 - number]
        for broker in cluster.brokers:
            broker.call(lambda broker=broker: broker.server.logs.checkpoint())
            broker.call(broker.server.catalogue.forget_deleted)
        assert len(store.load().deleted) == 1
        for _ in range(2):
            other.clock.advance(seconds=KEPT_S)
            world.sleep(1)
        assert len(store.load().deleted) == 1

        def is_forgotten() -> bool:
            # A check is due when the previous one has ended.
            controller.clock.advance(seconds=KEPT_S)
            return store.load().deleted == ()

        wait_until(is_forgotten, pause_s=0.1)
